"""Train a small classifier of digits: the whole training loop, nothing hidden.

The data set is made here: ten 5x7 glyphs, each time shifted, rotated, scaled and covered with noise
on an 8x8 image. The network is a perceptron with one hidden layer; the loss is softmax
cross-entropy; the optimizer is Adam in minibatches, written out by hand.

    python examples/train_classifier.py
    python examples/train_classifier.py --quick
"""

import argparse
import sys
import time
from itertools import pairwise

import numpy as np

import weft as wf
import weft.nn.functional as F

FONT = """
.###. ..#.. .###. ####. ...#. ##### .###. ##### .###. .###.
#...# .##.. #...# ....# ..##. #.... #.... ....# #...# #...#
#...# ..#.. ....# ....# .#.#. #.... #.... ...#. #...# #...#
#...# ..#.. ...#. .###. #..#. ####. ####. ...#. .###. .####
#...# ..#.. ..#.. ....# ##### ....# #...# ..#.. #...# ....#
#...# ..#.. .#... ....# ...#. #...# #...# ..#.. #...# ....#
.###. .###. ##### ####. ...#. .###. .###. ..#.. .###. .###.
"""
SIDE = 8  # images are SIDE x SIDE pixels


def load_glyphs():
    """Return the font as an array (10, 7, 5) of zeros and ones."""
    rows = [line.split() for line in FONT.split("\n") if line]
    ink = [[[pixel == "#" for pixel in row[digit]] for row in rows] for digit in range(10)]
    return np.array(ink, np.float32)


def draw_digits(count, rng):
    """Return images (count, SIDE * SIDE) of randomly placed digits, and their labels."""
    labels = rng.integers(10, size=count)
    angle, scale, down, right = rng.uniform(
        [[-0.25], [0.9], [-0.7], [-1.0]], [[0.25], [1.1], [0.7], [1.0]], (4, count)
    )[..., None, None]
    # The map goes from image to glyph: each pixel asks where its ink comes from, so none is missed.
    y, x = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
    row = (np.cos(angle) * y - np.sin(angle) * x) / scale + 3 + down
    column = (np.sin(angle) * y + np.cos(angle) * x) / scale + 2 + right
    images = sample_ink(load_glyphs(), labels, row, column)
    images += rng.normal(0.0, 0.15, images.shape)
    return images.reshape(count, -1).astype(np.float32), labels


def sample_ink(glyphs, labels, row, column):
    """Return the ink at fractional positions of each label's glyph, by bilinear interpolation."""
    margin = 2  # blank paper around the glyph, where positions outside of it end up
    paper = np.pad(glyphs, ((0, 0), (margin, margin), (margin, margin)))
    row = np.clip(row + margin, 0, paper.shape[1] - 1.001)
    column = np.clip(column + margin, 0, paper.shape[2] - 1.001)
    i, j = row.astype(int), column.astype(int)
    a, b = row - i, column - j
    k = labels[:, None, None]
    upper = (1 - b) * paper[k, i, j] + b * paper[k, i, j + 1]
    lower = (1 - b) * paper[k, i + 1, j] + b * paper[k, i + 1, j + 1]
    return (1 - a) * upper + a * lower


def init_layers(sizes):
    """Return (weight, bias) of each layer, scaled to keep the variance under relu (He 2015)."""
    return [
        (
            (wf.randn(fan_out, fan_in) * (2 / fan_in) ** 0.5).requires_grad_(),
            wf.zeros(fan_out, requires_grad=True),
        )
        for fan_in, fan_out in pairwise(sizes)
    ]


def predict(layers, x):
    """Return the logits (batch, classes) of the images (batch, pixels)."""
    *hidden, last = layers
    for weight, bias in hidden:
        x = F.relu(F.linear(x, weight, bias))
    return F.linear(x, *last)


class Adam:
    """Adam, as in algorithm 1 of Kingma and Ba (2015)."""

    def __init__(self, parameters, lr=3e-3, beta1=0.9, beta2=0.999, eps=1e-8):
        self.slots = [(p, wf.zeros_like(p), wf.zeros_like(p)) for p in parameters]
        self.lr, self.beta1, self.beta2, self.eps = lr, beta1, beta2, eps
        self.t = 0

    def step(self):
        """Move every parameter against its gradient, and forget the gradient."""
        self.t += 1
        with wf.no_grad():  # the update is not part of the function we differentiate
            for p, m, v in self.slots:
                self.update(p, m, v)
                p.grad = None

    def update(self, p, m, v):
        """Update one parameter and its running mean `m` and mean square `v` of gradients."""
        m += (1 - self.beta1) * (p.grad - m)
        v += (1 - self.beta2) * (p.grad * p.grad - v)
        m_hat = m / (1 - self.beta1**self.t)  # both averages start at zero: undo that bias
        v_hat = v / (1 - self.beta2**self.t)
        p -= self.lr * m_hat / (wf.sqrt(v_hat) + self.eps)


def train_epoch(layers, optimizer, images, labels, batch_size, report):
    """Take one pass over the data in random order."""
    order = wf.permutation(len(images))
    loss_sum = correct = seen = 0
    started = time.perf_counter()
    for start in range(0, len(images), batch_size):
        batch = order[start : start + batch_size]
        logits = predict(layers, images[batch])
        loss = F.cross_entropy(logits, labels[batch])
        loss.backward()
        optimizer.step()
        seen += len(batch)
        loss_sum += loss.item() * len(batch)
        correct += (logits.argmax(axis=1) == labels[batch]).sum().item()
        speed = seen / (time.perf_counter() - started)
        report(f"loss {loss_sum / seen:.4f}  accuracy {correct / seen:6.1%}  {speed:7,.0f}/s", seen)


def progress(epoch, epochs, total):
    """Return a reporter: one line, rewritten on a terminal, printed when complete elsewhere."""

    def report(text, seen):
        line, done = f"epoch {epoch:2}/{epochs}  {seen / total:4.0%}  {text}", seen == total
        if sys.stdout.isatty():
            print(f"\r{line}", end="\n" if done else "", flush=True)
        elif done:
            print(line, flush=True)

    return report


def main():
    """Make the data, train, and print the accuracy on new images."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--samples", type=int, default=30000, help="training images")
    parser.add_argument("--hidden", type=int, default=64, help="hidden units")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a smaller run: 6 epochs of 12000")
    args = parser.parse_args()
    if args.quick:
        args.epochs, args.samples = 6, 12000

    wf.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    images, labels = map(wf.tensor, draw_digits(args.samples, rng))
    layers = init_layers([SIDE * SIDE, args.hidden, 10])
    optimizer = Adam([p for layer in layers for p in layer])
    for epoch in range(1, args.epochs + 1):
        report = progress(epoch, args.epochs, args.samples)
        train_epoch(layers, optimizer, images, labels, args.batch_size, report)

    images, labels = map(wf.tensor, draw_digits(2000, rng))  # never seen in training
    with wf.no_grad():
        correct = predict(layers, images).argmax(axis=1) == labels
    print(f"test accuracy: {correct.float().mean().item():.1%}")


if __name__ == "__main__":
    main()
