"""Make a folder of small images, one subfolder for each class, as resnet.toml reads it.

Circles, squares, triangles and crosses of random colour, size and place on a noisy ground, written
as shapes/circle/0000.png and so on (needs pillow: pip install "weft[image]"):

    python examples/make_image_folder.py
    weft train examples/resnet.toml
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

import weft as wf

CLASSES = ("circle", "square", "triangle", "cross")  # in the order of wf.data.make_shapes


def draw_shapes(count, size, seed):
    """Return images (count, size, size, 3) of bytes, and the name of the shape on each."""
    shapes = wf.data.make_shapes(count, size=size, classes=len(CLASSES), seed=seed)
    images, labels = shapes.tensors
    pixels = np.rint(images.permute(0, 2, 3, 1).numpy() * 255).astype(np.uint8)
    return pixels, [CLASSES[label] for label in labels.tolist()]


def write_images(folder, images, names):
    """Write each image into the subfolder of its name."""
    for name in CLASSES:
        (folder / name).mkdir(parents=True, exist_ok=True)
    written = dict.fromkeys(CLASSES, 0)
    for image, name in zip(images, names, strict=True):
        Image.fromarray(image).save(folder / name / f"{written[name]:04}.png")
        written[name] += 1


def main():
    """Write the images."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, default=Path("runs/shapes"), help="the folder")
    parser.add_argument("--count", type=int, default=1000, help="images, of all classes together")
    parser.add_argument("--size", type=int, default=32, help="pixels on each side")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="make 80 images")
    args = parser.parse_args()

    count = 80 if args.quick else args.count
    write_images(args.out, *draw_shapes(count, args.size, args.seed))
    print(f"images: {count} in {args.out}")


if __name__ == "__main__":
    main()
