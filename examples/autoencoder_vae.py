"""Teach a variational autoencoder to draw digits: a Trainer with extensions.

An encoder turns an image into a normal distribution over 8 numbers, a decoder turns numbers drawn
from it back into the image; a second term of the loss keeps the distributions near the standard
one (Kingma and Welling 2014). So numbers drawn from that one decode to digits nobody wrote. The
images are the 8x8 digits of scikit-learn (pip install "weft[train]").

    python examples/autoencoder_vae.py
    python examples/autoencoder_vae.py --quick --out runs/vae

The directory gets samples.png (drawn digits), reconstructions.png (images above what is left of
them after the bottleneck), curves.png and log.jsonl.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

import weft as wf
import weft.nn.functional as F
from weft.nn.models import VAE, VAELoss

ROWS, COLUMNS = 8, 16  # of the pictures
ZOOM = 4  # pixels on the screen for one of an image


def image_to_itself(batch):
    """Return (input, target) of a batch (image, label): the image is both."""
    images, _ = batch
    return images, images


def reconstruction_error(model, images):
    """Return the mean square of the differences between images and their reconstructions."""
    return F.mse_loss(wf.tensor(reconstruct(model, images)), images).item()


def reconstruct(model, images):
    """Return what the decoder makes of the means of the codes, as an array."""
    scores, _, _ = model.predict(images, batch_size=256, verbose=0)
    return wf.sigmoid(wf.tensor(scores)).numpy()


def write_grid(path, images):
    """Write images (ROWS * COLUMNS, 1, 8, 8) with values from 0 to 1 as one picture."""
    framed = np.pad(images[:, 0], ((0, 0), (1, 1), (1, 1)))
    height, width = framed.shape[1:]
    grid = framed.reshape(ROWS, COLUMNS, height, width).transpose(0, 2, 1, 3)
    pixels = np.rint(grid.reshape(ROWS * height, COLUMNS * width) * 255).astype(np.uint8)
    picture = Image.fromarray(255 - pixels)  # dark ink on light paper
    picture.resize((picture.width * ZOOM, picture.height * ZOOM), Image.Resampling.NEAREST).save(
        path
    )


def write_pictures(model, images, out):
    """Write digits drawn by the model, and images beside their reconstructions."""
    with wf.no_grad():
        write_grid(out / "samples.png", model.sample(ROWS * COLUMNS).numpy())
    shown = images[: ROWS * COLUMNS // 2]
    pairs = np.stack([shown.numpy(), reconstruct(model, shown)])  # (2, 64, 1, 8, 8)
    rows = pairs.reshape(2, ROWS // 2, COLUMNS, 1, 8, 8).swapaxes(0, 1)
    write_grid(out / "reconstructions.png", rows.reshape(-1, 1, 8, 8))


def make_trainer(model, train_set, test_set, epochs, out, seed):
    """Return a trainer that evaluates and logs each epoch, and draws curves every fifth."""
    updater = wf.train.Updater(
        model,
        wf.optim.Adam(model.parameters(), lr=2e-3),
        VAELoss(),
        wf.data.DataLoader(train_set, batch_size=64, shuffle=True, seed=seed),
        prepare=image_to_itself,
    )
    trainer = wf.train.Trainer(updater, stop=(epochs, "epoch"), out=out)
    trainer.extend(wf.train.Evaluator(wf.data.DataLoader(test_set, batch_size=256)))
    trainer.extend(wf.train.Log(console=False))
    trainer.extend(wf.train.Log(None, keys=("train/loss", "val/loss")), trigger=(10, "epoch"))
    trainer.extend(wf.train.PlotCurves(), trigger=(5, "epoch"))
    return trainer


def main():
    """Train, write the pictures, and print the reconstruction error before and after."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("runs/vae"), help="where to write")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="train for 5 epochs")
    args = parser.parse_args()

    wf.manual_seed(args.seed)
    train_set, test_set = wf.data.random_split(wf.data.load_digits(), [0.9, 0.1], seed=args.seed)
    images, _ = next(iter(wf.data.DataLoader(test_set, batch_size=len(test_set))))
    model = VAE([1, 8, 8], latent=8, hidden=[128, 64])
    before = reconstruction_error(model, images)
    epochs = 5 if args.quick else args.epochs
    make_trainer(model, train_set, test_set, epochs, args.out, args.seed).run()
    write_pictures(model, images, args.out)
    print(f"wrote samples.png and reconstructions.png to {args.out}")
    print(f"reconstruction error: {before:.4f} -> {reconstruction_error(model, images):.4f}")


if __name__ == "__main__":
    main()
