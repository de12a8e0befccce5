"""Train one network in four ways - loop, fit, Trainer, configuration - with the same result.

The programming models are only different ways of writing the same program down: from one seed they
draw the same weights, the same order of the data and the same dropout, and end with the same
numbers, bit for bit. The data are the digits of scikit-learn (pip install "weft[train]").

    python examples/four_ways.py
"""

import argparse
import contextlib
import hashlib
import io
import tempfile
from pathlib import Path

import weft as wf
import weft.nn.functional as F
from weft import nn
from weft.cli import main as weft_command

SEED, BATCH = 7, 64

CONFIG = """
seed = {seed}
loss = "cross_entropy"

[data]
source = {{ type = "digits", flat = true }}
split = [0.8, 0.2]
batch_size = {batch}

[model]
layers = [
    {{ type = "Linear", name = "fc1", in_features = 64, out_features = 48 }},
    {{ type = "ReLU" }},
    {{ type = "Dropout", p = 0.2 }},
    {{ type = "Linear", name = "fc2", in_features = 48, out_features = 10 }},
]

[optimizer]
type = "adam"
lr = 0.01

[trainer]
epochs = {epochs}
plot = false
progress = false
tensorboard = false
"""


class Net(nn.Module):
    """A perceptron with one hidden layer."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 48)
        self.fc2 = nn.Linear(48, 10)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x):
        """Return the scores (N, 10) of images (N, 64)."""
        return self.fc2(self.dropout(F.relu(self.fc1(x))))


def start():
    """Return a new network and the data to train it with; the same each time."""
    digits, _ = wf.data.random_split(wf.data.load_digits(flat=True), [0.8, 0.2], seed=0)
    wf.manual_seed(SEED)
    return Net(), digits


def batches_of(digits):
    """Return a loader of the data, shuffled anew in each epoch."""
    return wf.data.DataLoader(digits, batch_size=BATCH, shuffle=True, seed=SEED)


def by_loop(epochs):
    """Train in a loop of one's own: everything can be seen and changed."""
    net, digits = start()
    loader = batches_of(digits)
    optimizer = wf.optim.Adam(net.parameters(), lr=0.01)

    @wf.jit  # as the other ways do it; without it, the last bits are those of eager operations
    def step(images, labels):
        optimizer.zero_grad()
        F.cross_entropy(net(images), labels).backward()
        optimizer.step()

    for _ in range(epochs):
        for images, labels in loader:
            step(images, labels)
    return net.state_dict()


def by_fit(epochs):
    """Train as in Keras: say what to do, then do it."""
    net, digits = start()
    net.compile(wf.optim.Adam(net.parameters(), lr=0.01), "cross_entropy")
    net.fit(digits, batch_size=BATCH, epochs=epochs, seed=SEED, verbose=0)
    return net.state_dict()


def by_trainer(epochs):
    """Train with a Trainer, to which evaluation, logs, checkpoints ... can be added."""
    net, digits = start()
    optimizer = wf.optim.Adam(net.parameters(), lr=0.01)
    updater = wf.train.Updater(net, optimizer, F.cross_entropy, batches_of(digits))
    wf.train.Trainer(updater, stop=(epochs, "epoch"), out=None).run()
    return net.state_dict()


def by_command(epochs):
    """Train by `weft train`, without a program."""
    with tempfile.TemporaryDirectory() as directory:
        config, run = Path(directory, "digits.toml"), Path(directory, "run")
        config.write_text(CONFIG.format(seed=SEED, batch=BATCH, epochs=epochs))
        with contextlib.redirect_stdout(io.StringIO()) as output:
            status = weft_command(["train", str(config), "--out", str(run)])
        if status:
            raise SystemExit(f"weft train failed:\n{output.getvalue()}")
        return wf.load(run / "model.safetensors")


def fingerprint(state):
    """Return the SHA-256 of all weights, by name."""
    digest = hashlib.sha256()
    for name in sorted(state):
        digest.update(name.encode())
        digest.update(state[name].numpy().tobytes())
    return digest.hexdigest()


def main():
    """Train four times and compare the weights."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="train for 2 epochs")
    args = parser.parse_args()
    epochs = 2 if args.quick else args.epochs

    found = []
    for way in (by_loop, by_fit, by_trainer, by_command):
        found.append(fingerprint(way(epochs)))
        print(f"{way.__name__:10} {found[-1]}", flush=True)
    if len(set(found)) > 1:
        raise SystemExit("the weights differ")
    print("identical")


if __name__ == "__main__":
    main()
