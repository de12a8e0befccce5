"""Epochs of training by every face of Weft, beside a plain loop in PyTorch.

    python benchmarks/faces.py --peer-python /path/to/python/with/torch [--data FOLDER_OF_MNIST]

digits       two convolutions with ReLU and pooling and a linear layer, batch 64; MNIST from a
             folder, or random images of its shape
characters   a language model: embedding 64, LSTM 128, windows of 64 characters, batch 32
table        32-128-128-4 with ReLU, batch 64

Faces are a plain loop, the same with its step under `wf.jit`, a Trainer, `fit`, the scikit-learn
estimator and `weft train`; PyTorch runs its loop eagerly and with the loss under `torch.compile`.
All of them shuffle the same arrays, made into batches in the process itself, take steps of Adam
(PyTorch's is fused), know the mean loss of the epoch at its end, and use two threads (--threads; on
a machine with other work, one thread measures fairly: PyTorch's wait for one another busily).

Each is a process of its own, and only one is active at a time: they take turns after each epoch.
The first epoch, in which code is compiled, is not counted. A row gives the best time of an epoch
and its ratio to PyTorch's faster loop: the median of the ratios within a round, and in parentheses
that of the best times. Faces that end with the same weights, bit for bit, have the same letter.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.util
import io
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from harness import Worker, come_to_rest

BAR = 0.7
LEARNING_RATE = 1e-3
WINDOW = 64
BATCH = {"digits": 64, "characters": 32, "table": 64}
SIZES = {"digits": 6_000, "characters": 1_600, "table": 20_000}  # samples
# What an estimator with random_state=0 seeds its weights and its shuffling with.
SEED = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))

# -- data ------------------------------------------------------------------------------------------


def write_data(folder: Path, mnist: Path | None) -> None:
    """Write what is trained on, as an npz file for each task."""
    rng = np.random.default_rng(0)
    images, labels = digits(rng, mnist)
    np.savez(folder / "digits.npz", x=images, y=labels)
    tokens = characters()
    windows = [tokens[i : i + WINDOW + 1] for i in range(0, len(tokens) - WINDOW, WINDOW)]
    chosen = np.stack(windows[: SIZES["characters"]])
    np.savez(folder / "characters.npz", x=chosen[:, :-1], y=chosen[:, 1:])
    rows = rng.normal(size=(SIZES["table"], 32)).astype(np.float32)
    classes = (rows @ rng.normal(size=(32, 4))).argmax(axis=1)
    np.savez(folder / "table.npz", x=rows, y=classes)


def digits(rng: np.random.Generator, mnist: Path | None) -> tuple[Any, Any]:
    """Return images (n, 1, 28, 28) and labels: MNIST's, or noise around a pattern of each class."""
    if mnist is not None:
        import weft as wf

        images, labels = wf.data.load_mnist(mnist).tensors
        return images.numpy(), labels.numpy()
    labels = rng.integers(0, 10, SIZES["digits"])
    patterns = rng.random((10, 1, 28, 28))
    images = 0.5 * patterns[labels] + 0.5 * rng.random((len(labels), 1, 28, 28))
    return images.astype(np.float32), labels


def characters() -> Any:
    """Return the text of Python's own documentation as numbers of its characters."""
    from pydoc_data.topics import topics

    text = "\n".join(topics[name] for name in sorted(topics))
    numbers = {c: i for i, c in enumerate(sorted(set(text)))}
    return np.array([numbers[c] for c in text])


class Task:
    """Data to train on, and how long."""

    def __init__(self, name: str, folder: str, epochs: int, threads: int) -> None:
        self.name, self.epochs, self.threads = name, epochs, threads
        self.path = Path(folder, f"{name}.npz")
        with np.load(self.path) as arrays:
            self.x, self.y = arrays["x"], arrays["y"]
        self.batch = BATCH[name]
        self.outputs = int(self.y.max()) + 1


# -- taking turns ----------------------------------------------------------------------------------


class Turns:
    """What a face calls after each epoch: it reports the time, and waits to be asked to go on."""

    def __init__(self, epochs: int) -> None:
        self.left = epochs
        self.answers = sys.stdout  # faces may print elsewhere meanwhile
        self.start = time.perf_counter()

    def epoch_done(self) -> None:
        """End an epoch."""
        seconds = time.perf_counter() - self.start
        come_to_rest()
        print(json.dumps({"seconds": seconds}), file=self.answers, flush=True)
        self.left -= 1
        if self.left:
            sys.stdin.readline()
        self.start = time.perf_counter()


class EpochLines(io.TextIOBase):
    """A stand-in for the terminal: a line that begins with a number ends an epoch."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns

    def write(self, text: str) -> int:
        """Look at a line."""
        words = text.split()
        if words and words[0].isdigit():
            self.turns.epoch_done()
        return len(text)


# -- Weft ------------------------------------------------------------------------------------------


def weft_net(task: Task) -> Any:
    """Return the network of a task, from the seed."""
    import weft as wf
    from weft import nn

    wf.set_num_threads(task.threads)
    wf.manual_seed(SEED)
    if task.name == "characters":
        return nn.models.LSTMLanguageModel(task.outputs, 64, 128, classes_first=True)
    if task.name == "table":
        return nn.Sequential(
            nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4)
        )
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 10),
    )


def weft_parts(task: Task) -> tuple[Any, Any, Any]:
    """Return network, optimizer and loader."""
    import weft as wf

    net = weft_net(task)
    dataset = wf.data.TensorDataset(task.x, task.y)
    loader = wf.data.DataLoader(dataset, batch_size=task.batch, shuffle=True, seed=SEED)
    return net, wf.optim.Adam(net.parameters(), lr=LEARNING_RATE), loader


def by_loop(task: Task, turns: Turns, *, jit: bool) -> tuple[Any, float]:
    """Train in a loop."""
    import weft as wf
    import weft.nn.functional as F

    net, optimizer, loader = weft_parts(task)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    if jit:
        step = wf.jit(step)
    for _ in range(task.epochs):
        losses = [step(x, y) for x, y in loader]
        mean = float(wf.stack(losses).mean())
        turns.epoch_done()
    return net, mean


def by_trainer(task: Task, turns: Turns) -> tuple[Any, float]:
    """Train with a Trainer that logs."""
    import weft as wf
    import weft.nn.functional as F

    net, optimizer, loader = weft_parts(task)
    updater = wf.train.Updater(net, optimizer, F.cross_entropy, loader)
    log = wf.train.Log(filename=None, console=False)
    trainer = wf.train.Trainer(updater, stop=(task.epochs, "epoch"), out=None, extensions=[log])
    trainer.extend(lambda _: turns.epoch_done(), trigger=(1, "epoch"), priority=-1000)
    trainer.run()
    return net, log.entries[-1]["train/loss"]


def by_fit(task: Task, turns: Turns) -> tuple[Any, float]:
    """Train by `fit`."""
    import weft as wf

    net = weft_net(task)
    net.compile(wf.optim.Adam(net.parameters(), lr=LEARNING_RATE), "cross_entropy")
    ends = wf.train.callbacks.LambdaCallback(on_epoch_end=lambda *_: turns.epoch_done())
    options = {"batch_size": task.batch, "epochs": task.epochs, "seed": SEED, "verbose": 0}
    history = net.fit(task.x, task.y, callbacks=[ends], **options)
    return net, history.history["loss"][-1]


def by_estimator(task: Task, turns: Turns) -> tuple[Any, float]:
    """Train by a scikit-learn estimator, which takes rows of numbers."""
    import weft as wf
    from weft import nn

    shape = task.x.shape[1:]

    def module(inputs, outputs):
        net = weft_net(task)
        return net if len(shape) == 1 else nn.Sequential(nn.Unflatten(1, shape), net)

    model = wf.train.WeftClassifier(
        module,
        lr=LEARNING_RATE,
        epochs=task.epochs,
        batch_size=task.batch,
        dtype="float32",
        random_state=0,
        verbose=1,
    )
    with contextlib.redirect_stdout(EpochLines(turns)):
        model.fit(task.x.reshape(len(task.x), -1), task.y)
    return model.module_, model.loss_curve_[-1]


LAYERS = {
    "table": """layers = [
    { type = "Linear", out_features = 128 }, { type = "ReLU" },
    { type = "Linear", out_features = 128 }, { type = "ReLU" },
    { type = "Linear", out_features = 4 },
]""",
    "digits": """layers = [
    { type = "Conv2d", out_channels = 16, kernel_size = 3, padding = 1 }, { type = "ReLU" },
    { type = "MaxPool2d", kernel_size = 2 },
    { type = "Conv2d", out_channels = 32, kernel_size = 3, padding = 1 }, { type = "ReLU" },
    { type = "MaxPool2d", kernel_size = 2 },
    { type = "Flatten" }, { type = "Linear", out_features = 10 },
]""",
    "characters": """type = "lstm_lm"
embed_size = 64
hidden_size = 128
vocab_size = %d""",
}
CONFIG = """
seed = {seed}
loss = "cross_entropy"

[data]
train = {{ type = "npz", path = "{path}" }}
batch_size = {batch}

[model]
{model}

[optimizer]
type = "adam"
lr = {lr}

[trainer]
epochs = {epochs}
plot = false
progress = false
tensorboard = false
checkpoint = {{ every = 1000 }}
"""


def by_command(task: Task, turns: Turns) -> tuple[Any, float]:
    """Train by `weft train`."""
    import weft as wf
    from weft.cli import main as weft_command

    wf.set_num_threads(task.threads)
    model = LAYERS[task.name]
    with tempfile.TemporaryDirectory() as folder:
        config, run = Path(folder, "run.toml"), Path(folder, "run")
        text = CONFIG.format(
            seed=SEED,
            path=task.path,
            batch=task.batch,
            model=model % task.outputs if "%d" in model else model,
            lr=LEARNING_RATE,
            epochs=task.epochs,
        )
        config.write_text(text, encoding="utf-8")
        with contextlib.redirect_stdout(EpochLines(turns)):
            status = weft_command(["train", str(config), "--out", str(run)])
        if status:
            raise SystemExit(f"weft train failed with status {status}")
        state = wf.load(run / "model.safetensors")
        return state, wf.train.read_log(run / "log.jsonl")[-1]["train/loss"]


# -- PyTorch ---------------------------------------------------------------------------------------


def torch_net(task: Task) -> Any:
    """Return the network of a task."""
    from torch import nn

    if task.name == "table":
        return nn.Sequential(
            nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4)
        )
    if task.name == "digits":
        return nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * 7 * 7, 10),
        )

    class LanguageModel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(task.outputs, 64)
            self.lstm = nn.LSTM(64, 128, batch_first=True)
            self.head = nn.Linear(128, task.outputs)

        def forward(self, x: Any) -> Any:
            return self.head(self.lstm(self.embedding(x))[0]).transpose(1, 2)

    return LanguageModel()


def by_torch(task: Task, turns: Turns, *, compiled: bool) -> tuple[Any, float]:
    """Train in a loop of PyTorch."""
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(task.threads)
    torch.manual_seed(0)
    net = torch_net(task)
    optimizer = torch.optim.Adam(net.parameters(), lr=LEARNING_RATE, fused=True)
    dataset = torch.utils.data.TensorDataset(torch.from_numpy(task.x), torch.from_numpy(task.y))
    loader = torch.utils.data.DataLoader(dataset, batch_size=task.batch, shuffle=True)

    def objective(x, y):
        return F.cross_entropy(net(x), y)

    if compiled:
        objective = torch.compile(objective, dynamic=False)  # also for the last, smaller batch
    for _ in range(task.epochs):
        losses = []
        for x, y in loader:
            optimizer.zero_grad()
            loss = objective(x, y)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        mean = float(torch.stack(losses).mean())
        turns.epoch_done()
    return None, mean


# -- a face in its process -------------------------------------------------------------------------

Face = Callable[[Task, Turns], tuple[Any, float]]
PEERS: dict[str, Face] = {
    "torch": partial(by_torch, compiled=False),
    "torch.compile": partial(by_torch, compiled=True),
}
FACES: dict[str, Face] = {
    "loop": partial(by_loop, jit=False),
    "loop + jit": partial(by_loop, jit=True),
    "Trainer": by_trainer,
    "fit": by_fit,
    "estimator": by_estimator,
    "weft train": by_command,
}


def serve(name: str) -> None:
    """Train as asked on standard input."""
    missing = _missing(name)
    if missing:
        print(json.dumps({"missing": missing}), flush=True)
        return
    tasks = [task for task in BATCH if (name, task) != ("estimator", "characters")]
    print(json.dumps({"workloads": tasks}), flush=True)
    for line in sys.stdin:
        task = Task(**json.loads(line))
        net, loss = {**PEERS, **FACES}[name](task, Turns(task.epochs))
        sys.stdin.readline()
        print(json.dumps({"loss": loss, "weights": fingerprint(net)}), flush=True)


def _missing(name: str) -> str | None:
    """Return why a face cannot be measured."""
    if name in PEERS:
        return None if importlib.util.find_spec("torch") else "torch is not installed"
    import weft as wf

    return "there is no wf.jit" if name == "loop + jit" and not hasattr(wf, "jit") else None


def fingerprint(net: Any) -> str | None:
    """Return the SHA-256 of all weights in their order, or None for none of Weft's."""
    if net is None:
        return None
    state = net if isinstance(net, dict) else net.state_dict()
    digest = hashlib.sha256()
    for array in sorted((w.numpy() for w in state.values()), key=_order):
        digest.update(array.tobytes())
    return digest.hexdigest()


def _order(array: Any) -> tuple[Any, ...]:
    """Return a key that does not depend on the names, which faces choose differently."""
    return array.shape, array.tobytes()


# -- comparison ------------------------------------------------------------------------------------


def main() -> None:
    """Print a table for each task, or serve as one of the processes that are measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help="a folder with MNIST's files")
    parser.add_argument("--rounds", type=int, default=5, help="epochs that are measured")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="tasks whose name contains this")
    parser.add_argument("--faces", nargs="*", default=list(FACES), help="these alone")
    parser.add_argument("--peer-python", default=os.environ.get("WEFT_PEER_PYTHON", sys.executable))
    options = parser.parse_args()
    if options.worker:
        serve(options.worker)
        return
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder), options.data)
        for task in BATCH:
            if options.only in task:
                compare(task, folder, options)


def compare(task: str, folder: str, options: argparse.Namespace) -> None:
    """Print the times of all faces on one task."""
    workers = [w for w in _started(options) if task in w.workloads]
    request = {"name": task, "folder": folder, "threads": options.threads}
    request["epochs"] = options.rounds + 1
    for worker in workers:
        worker.ask(**request)  # the first epoch
    times: dict[str, list[float]] = {w.framework: [] for w in workers}
    for _ in range(options.rounds):
        for worker in workers:
            times[worker.framework].append(worker.ask(go=True)["seconds"])
    results = {w.framework: w.ask(end=True) for w in workers}
    for worker in workers:
        worker.close()
    print(f"\n{task}: {'seconds':>24}{'vs PyTorch':>18}{'bar':>7}{'loss':>9}  weights")
    letters: dict[str, str] = {}
    for name, result in results.items():
        shown = ratio = ""
        if name in FACES:
            shown = letters.setdefault(result["weights"], chr(ord("a") + len(letters)))
            ratio = _ratio(times, name)
        bar = f"{BAR:7.2f}" if ratio else " " * 7
        row = f"{min(times[name]):>16.4f}{ratio:>18}{bar}{result['loss']:>9.4f}"
        print(f"  {name:<{len(task) + 15}}{row}  {shown}", flush=True)


def _started(options: argparse.Namespace) -> list[Worker]:
    """Return the processes that can be measured; say why others cannot."""
    workers = []
    for name in (*PEERS, *options.faces):
        python = options.peer_python if name in PEERS else sys.executable
        worker = Worker(__file__, name, python)
        if worker.missing:
            print(f"{name}: not measured ({worker.missing})")
        else:
            workers.append(worker)
    return workers


def _ratio(times: dict[str, list[float]], name: str) -> str:
    """Return the ratio to PyTorch's faster loop, if PyTorch was measured."""
    peers = [times[peer] for peer in PEERS if peer in times]
    if not peers:
        return ""
    best = min(peers, key=min)
    median = statistics.median(a / b for a, b in zip(times[name], best, strict=True))
    return f"{median:.2f} ({min(times[name]) / min(best):.2f})"


if __name__ == "__main__":
    main()
