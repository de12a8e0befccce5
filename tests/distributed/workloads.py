"""Small networks that are trained by one process and by several, to compare the losses."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

import numpy as np

import weft as wf
from weft import distributed as dist
from weft.cli.assemble import build_run, build_updater
from weft.cli.config import read_source
from weft.cli.schedules import build_schedule
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


def train(
    name,
    mode,
    *,
    steps=4,
    dtype="float64",
    alone=False,
    clip=None,
    accumulate=1,
    schedule=False,
    look=None,
    **options,
):
    """Return the losses of the global batches: on this process alone, or on all of them.

    accumulate   batches whose mean gradient makes a step
    schedule     whether the learning rate falls
    look         called with the model and the optimizer in the end
    options      of `parallel`
    """
    before = wf.default_float()
    wf.set_default_dtype(dtype)
    try:
        wf.manual_seed(3 if alone or dist.rank() == 0 else 99)
        model = WORKLOADS[name][0]()
        if alone or dist.rank() == 0:
            wf.manual_seed(4)
        rank, size, handle = 0, 1, None
        if not alone:
            options.setdefault("sync_batch_norm", name == "cnn")
            handle = dist.parallel(model, **options)
            rank, size = dist.rank(), dist.size()
        optimizer = wf.optim.AdamW(model.parameters(), lr=1e-2)
        falling = wf.optim.lr.CosineAnnealingLR(optimizer, 2 * steps) if schedule else None
        step = made_step(model, optimizer, mode, handle, clip)
        losses = []
        for given in grouped(batches(name, steps * accumulate, dtype), accumulate):
            rows = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
            loss = wf.tensor(np.asarray(step(*[wf.tensor(part[rows]) for part in given])))
            losses.append(float(loss if alone else dist.all_reduce(loss, "mean")))
            if falling is not None:
                falling.step()
        if look is not None:
            look(model, optimizer)
        if handle is not None:
            handle.close()
            print(f"trained {name}, {mode}", flush=True)  # a sign of life
        return losses
    finally:
        wf.set_default_dtype(before)


def grouped(pairs, count):
    """Yield the parts of so many batches one after another: x, y, x, y, ..."""
    pairs = list(pairs)
    for i in range(0, len(pairs), count):
        yield [part for pair in pairs[i : i + count] for part in pair]


def made_step(model, optimizer, mode, handle=None, clip=None):
    """Return a training step of one or several batches, as the mode runs it."""
    if mode == "static":
        return static_step(model, optimizer, clip)

    def step(*given):
        optimizer.zero_grad()
        count, total = len(given) // 2, 0.0
        for i in range(count):
            loss = loss_of(model, *given[2 * i : 2 * i + 2]) / count
            with handle.no_sync() if handle and i < count - 1 else nullcontext():
                loss.backward()
            total = total + loss.detach()
        if clip is not None:
            wf.optim.clip_grad_norm_(list(model.parameters()), clip)
        optimizer.step()
        return total

    return wf.jit(step, strict=True) if mode == "jit" else step


def static_step(model, optimizer, clip):
    held = {}

    def step(*given):
        if not held:
            with wf.Graph() as graph:
                feeds = [wf.placeholder(v.shape, v.dtype) for v in given]
                pairs = list(zip(feeds[::2], feeds[1::2], strict=True))
                loss = sum(loss_of(model, *pair) for pair in pairs) / len(pairs)
                taken = optimizer.minimize(loss, clip_norm=clip)
                held.update(feeds=feeds, fetch=[loss, taken])
            held["session"] = wf.Session(graph)
        fed = dict(zip(held["feeds"], given, strict=True))
        return held["session"].run(held["fetch"], fed)[0]

    return step


def train_by_shards(name, mode, steps):
    """Return the losses of four virtual shards, and sums of running statistics."""
    wf.manual_seed(3)
    model = WORKLOADS[name][0]()
    optimizer = wf.optim.Adam(model.parameters(), lr=1e-2)
    handle = dist.parallel(model, shards=4, sync_batch_norm=True)
    loss = partial(loss_of, model)
    loss = wf.jit(loss) if mode == "jit" else loss
    rows = slice(dist.rank() * BATCH // dist.size(), (dist.rank() + 1) * BATCH // dist.size())
    found = []
    for x, y in batches(name, steps, "float32"):
        optimizer.zero_grad()
        found.append(float(handle.backward(loss, wf.tensor(x[rows]), wf.tensor(y[rows]))))
        optimizer.step()
    handle.close()
    return found + [float(buffer.sum()) for buffer in model.buffers()]


# -- by TOML ---------------------------------------------------------------------------------------

IMAGES = """
[data.source]
type = "npz"
path = "{folder}/images.npz"
[model]
"""
TEXT = """
[data.source]
type = "characters"
path = "{folder}/text.txt"
length = 7
[model]
"""


def layers(*kinds):
    lines = []
    for kind in kinds:
        lines += ["[[model.layers]]", f"type = {kind}"]
    return "\n".join(lines)


MODELS = {
    "mlp": IMAGES
    + layers('"Flatten"', '"Linear"\nout_features = 16', '"Tanh"', '"Dropout"\np = 0.3')
    + "\n"
    + layers('"Linear"\nout_features = 3'),
    "cnn": IMAGES
    + layers('"Conv2d"\nout_channels = 4\nkernel_size = 3', '"BatchNorm2d"', '"ReLU"')
    + "\n"
    + layers('"Flatten"', '"Linear"\nout_features = 3'),
    "lstm": TEXT + 'type = "lstm_lm"\nembed_size = 8\nhidden_size = 8\ndropout = 0.1',
    "gpt": TEXT
    + 'type = "gpt"\nblock_size = 7\nn_layer = 2\nn_head = 2\nn_embd = 16\ndropout = 0.1',
}
CONFIG = """
loss = "cross_entropy"
precision = "{precision}"
seed = 5
{model}
[data]
batch_size = 8
split = [0.9, 0.1]
drop_last = true
[optimizer]
type = "adamw"
lr = 0.01
[schedule]
type = "cosine"
unit = "iteration"
[trainer]
iterations = {steps}
accumulate = {accumulate}
clip_norm = 0.5
{parallel}
"""


def write_data(folder):
    rng = np.random.default_rng(8)
    x = rng.standard_normal((120, 1, 6, 6))
    np.savez(folder / "images.npz", x=x, y=rng.integers(0, 3, 120))
    letters = rng.choice(list("abc defgh"), 400)
    (folder / "text.txt").write_text("".join(letters))


def train_by_toml(name, folder, parallel, *, steps=4, accumulate=1, precision="float64"):
    """Return the losses of a run that a TOML file describes: clipped, with a schedule."""
    head, _, model = MODELS[name].partition("[model]")
    text = CONFIG.format(
        model="",
        steps=steps,
        accumulate=accumulate,
        parallel=f"parallel = {parallel}",
        precision=precision,
    )
    text += head.format(folder=folder) + "[model]" + model
    file = folder / f"run-{dist.rank()}.toml"
    file.write_text(text)
    run = build_run(read_source(file))
    trainer = wf.train.Trainer(build_updater(run), stop=(steps, "iteration"), out=None)
    made = build_schedule(
        run.source, run.config, trainer.updater.optimizer, trainer.updater.feed.length
    )
    trainer.extend(made[0], trigger=made[1])
    losses = []

    @trainer.extend(trigger=(1, "iteration"))
    def note(trainer):
        losses.append(trainer.observation["train/loss"])

    trainer.run()
    if trainer.updater.parallel is not None:
        trainer.updater.parallel.close()
    return losses
