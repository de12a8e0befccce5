"""Small networks that are trained by one process and by several, to compare the losses."""

from __future__ import annotations

import numpy as np

import weft as wf
from weft import distributed as dist
from weft.nn import functional as F

BATCH = 8


class Recurrent(wf.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = wf.nn.LSTM(5, 8, batch_first=True)
        self.head = wf.nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


class Gpt(wf.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = wf.nn.Embedding(11, 16)
        layer = wf.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.blocks = wf.nn.TransformerEncoder(layer, 2)
        self.head = wf.nn.Linear(16, 11)

    def forward(self, tokens):
        length = tokens.shape[1]
        mask = wf.triu(wf.full((length, length), float("-inf")), 1)
        return self.head(self.blocks(self.table(tokens), mask=mask))


def mlp():
    return wf.nn.Sequential(
        wf.nn.Linear(6, 16), wf.nn.Tanh(), wf.nn.Dropout(0.3), wf.nn.Linear(16, 3)
    )


def cnn():
    return wf.nn.Sequential(
        wf.nn.Conv2d(1, 4, 3),
        wf.nn.BatchNorm2d(4),
        wf.nn.ReLU(),
        wf.nn.Flatten(),
        wf.nn.Linear(64, 3),
    )


WORKLOADS = {
    "mlp": (mlp, (6,), (), 3),
    "cnn": (cnn, (1, 6, 6), (), 3),
    "lstm": (Recurrent, (4, 5), (), 3),
    "gpt": (Gpt, (7,), (7,), 11),
}
MODES = ("eager", "jit", "static")


def batches(name, count, dtype):
    """Return global batches, the same on all processes."""
    _, given, expected, classes = WORKLOADS[name]
    rng = np.random.default_rng(5)
    for _ in range(count):
        targets = rng.integers(0, classes, (BATCH, *expected))
        if name == "gpt":
            yield rng.integers(0, classes, (BATCH, *given)), targets
        else:
            yield rng.standard_normal((BATCH, *given)).astype(dtype), targets


def loss_of(model, x, y):
    out = model(x)
    return F.cross_entropy(out.reshape((-1, out.shape[-1])), y.reshape((-1,)))


def train(name, mode, *, steps=4, dtype="float64", alone=False, clip=None, make=None, **options):
    """Return the losses of the global batches: on this process alone, or on all of them."""
    before = wf.default_float()
    wf.set_default_dtype(dtype)
    try:
        wf.manual_seed(3 if alone or dist.rank() == 0 else 99)
        model = WORKLOADS[name][0]()
        optimizer = wf.optim.AdamW(model.parameters(), lr=1e-2)
        if alone:
            wf.manual_seed(4)
            rank, size, handle = 0, 1, None
        else:
            if dist.rank() == 0:
                wf.manual_seed(4)
            options.setdefault("sync_batch_norm", name == "cnn")
            handle = (make or dist.parallel)(model, **options)
            rank, size = dist.rank(), dist.size()
        step = made_step(model, optimizer, mode, name, clip)
        losses = []
        for x, y in batches(name, steps, dtype):
            rows = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
            loss = wf.tensor(np.asarray(step(wf.tensor(x[rows]), wf.tensor(y[rows]))))
            losses.append(float(loss if alone else dist.all_reduce(loss, "mean")))
        if handle is not None:
            handle.close()
        return losses
    finally:
        wf.set_default_dtype(before)


def made_step(model, optimizer, mode, name, clip, clipping=wf.optim.clip_grad_norm_):
    """Return a training step as the mode runs it."""
    if mode == "static":
        return static_step(model, optimizer, name)

    def step(x, y):
        optimizer.zero_grad()
        loss = loss_of(model, x, y)
        loss.backward()
        if clip is not None:
            clipping(list(model.parameters()), clip)
        optimizer.step()
        return loss.detach()

    return wf.jit(step, strict=True) if mode == "jit" else step


def static_step(model, optimizer, name):
    held = {}

    def step(x, y):
        if not held:
            with wf.Graph() as graph:
                feeds = [wf.placeholder(v.shape, v.dtype) for v in (x, y)]
                loss = loss_of(model, *feeds)
                held.update(feeds=feeds, fetch=[loss, optimizer.minimize(loss)])
            held["session"] = wf.Session(graph)
        fed = dict(zip(held["feeds"], (x, y), strict=True))
        return held["session"].run(held["fetch"], fed)[0]

    return step
