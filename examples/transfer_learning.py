"""Transfer what was learned: features saved as safetensors help with a task of few labels.

A convolutional network learns from many images to tell the digits 0 to 4 apart, wherever they lie
on the paper. Its weights go to a file; a network with another head for the digits 5 to 9 takes the
features from there, keeps them fixed, and learns from a few labelled images. The same network
without the file is the comparison: it must learn from the few what a change of place means. The
digits are scikit-learn's (pip install "weft[train]").

    python examples/transfer_learning.py
    python examples/transfer_learning.py --labels 30
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

import weft as wf
from weft import nn

SIDE = 14  # of the paper on which an 8x8 digit lies somewhere
COPIES = 4  # of each image of the first task, in different places


class DigitNet(nn.Module):
    """Features of images, and a head that makes scores of classes from them."""

    def __init__(self, head):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),  # (N, 16, 6, 6)
            nn.Conv2d(16, 32, 3),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Flatten(),  # (N, 32 * 4 * 4)
            nn.Linear(512, 64),
            nn.BatchNorm1d(64),
            nn.ReLU(),
        )
        self.head = head

    def forward(self, images):
        """Return the scores (N, classes) of images (N, 1, SIDE, SIDE)."""
        return self.head(self.features(images))


def old_net():
    """Return a network for the first task."""
    return DigitNet(head=nn.Linear(64, 5))


def new_net():
    """Return a network for the second task, with another head."""
    return DigitNet(head=nn.Sequential(nn.Dropout(0.2), nn.Linear(64, 5)))


def load_task(digits, count, copies, rng):
    """Return `count` samples of each digit for training, several times, and the rest for the test.

    Classes are numbered from 0.
    """
    images, labels = (column.numpy() for column in wf.data.load_digits().tensors)
    order = rng.permutation(np.flatnonzero(np.isin(labels, digits)))
    few = np.concatenate([order[labels[order] == digit][:count] for digit in digits])
    rest = np.setdiff1d(order, few)
    return [
        (scatter(images[rows], rng), labels[rows] - min(digits))
        for rows in (np.repeat(few, copies), rest)
    ]


def scatter(images, rng):
    """Return each image somewhere on a larger sheet of paper."""
    sheets = np.zeros((len(images), 1, SIDE, SIDE), np.float32)
    corners = rng.integers(SIDE - 8 + 1, size=(len(images), 2))
    for sheet, image, (i, j) in zip(sheets, images, corners, strict=True):
        sheet[:, i : i + 8, j : j + 8] = image
    return sheets


def train(net, data, epochs, rate):
    """Train the parameters that are not frozen."""
    learned = [p for p in net.parameters() if p.requires_grad]
    net.compile(wf.optim.Adam(learned, lr=rate), "cross_entropy", metrics=["accuracy"])
    net.fit(*data, batch_size=32, epochs=epochs, verbose=0)


def accuracy(net, data):
    """Return the share of images whose class is recognised."""
    return net.evaluate(*data, batch_size=256, verbose=0, return_dict=True)["accuracy"]


def load_features(net, path):
    """Load all weights that fit, and print which did not."""
    report = wf.io.load_into(net, path, strict=False)
    print(f"loaded {path.name}: {wf.load_metadata(path)['task']}")
    print("  missing in the file:", ", ".join(report.missing))
    print("  not wanted by the network:", ", ".join(report.unexpected))


def freeze(module):
    """Keep parameters as they are, and running means as well: these change in training mode."""
    module.requires_grad_(False)
    module.eval()


def trainable(net):
    """Return the number of numbers that training changes."""
    return sum(p.size for p in net.parameters() if p.requires_grad)


def first_task(path, epochs, rng):
    """Learn the digits 0 to 4 from many images and save the weights."""
    net = old_net()
    many, unseen = load_task(range(5), 150, COPIES, rng)
    train(net, many, epochs, rate=2e-3)
    print(f"digits 0-4: accuracy {accuracy(net, unseen):.1%} on images not seen in training")
    wf.save(path, net.state_dict(), metadata={"task": "features and head for the digits 0 to 4"})


def second_task(path, labels, epochs, rng):
    """Learn the digits 5 to 9 from few images, with the saved features and without."""
    few, unseen = load_task(range(5, 10), labels, 1, rng)
    helped, alone = new_net(), new_net()
    load_features(helped, path)
    freeze(helped.features)
    for net in (helped, alone):
        train(net, few, epochs, rate=5e-3)
    share = f"{trainable(helped)} of {trainable(alone)} parameters trained"
    print(f"digits 5-9, {labels} labelled images of each, {share}")
    print(f"accuracy without transfer: {accuracy(alone, unseen):.1%}")
    print(f"accuracy with transfer: {accuracy(helped, unseen):.1%}")


def main():
    """Print the accuracy at few labels with and without transfer."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--labels", type=int, default=10, help="labelled images of each new digit")
    parser.add_argument("--epochs", type=int, default=12, help="of the first task")
    parser.add_argument("--out", type=Path, help="a directory to keep the weights in")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="fewer epochs of both tasks")
    args = parser.parse_args()

    wf.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    with tempfile.TemporaryDirectory() as scratch:
        path = (args.out or Path(scratch)) / "digits_0_to_4.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        first_task(path, 1 if args.quick else args.epochs, rng)
        second_task(path, args.labels, 20 if args.quick else 60, rng)


if __name__ == "__main__":
    main()
