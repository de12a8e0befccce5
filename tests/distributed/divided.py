"""Models whose layers, parameters or stages are divided among processes, and how they train."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

import weft as wf
from tests.distributed.workloads import batches, loss_of, made_step
from weft import distributed as dist


@contextmanager
def computing_in(dtype):
    """Make parameters and tensors of another kind than float32."""
    before = wf.default_float()
    wf.set_default_dtype(dtype)
    try:
        yield
    finally:
        wf.set_default_dtype(before)


# -- layers and parameters -------------------------------------------------------------------------


class Block(wf.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = wf.nn.Embedding(12, 8)
        self.attention = wf.nn.MultiheadAttention(8, 4, dropout=0.1, batch_first=True)
        self.norm = wf.nn.LayerNorm(8)
        self.up, self.down = wf.nn.Linear(8, 16), wf.nn.Linear(16, 8)
        self.drop, self.drop_in = wf.nn.Dropout(0.1), wf.nn.Dropout(0.2)
        self.head = wf.nn.Linear(8, 12)

    def forward(self, tokens):
        x = self.table(tokens)
        if isinstance(self.attention, wf.nn.MultiheadAttention):
            x = x + self.attention(x, x, x, need_weights=False)[0]
        else:
            x = x + self.attention(x)
        x = self.norm(self.drop(x))
        return self.head(x + self.down(self.drop_in(wf.nn.functional.gelu(self.up(x)))))


class PlainBlock(wf.nn.Module):
    """A transformer block whose queries, keys and values have layers of their own."""

    def __init__(self):
        super().__init__()
        self.table = wf.nn.Embedding(12, 8)
        self.looks = wf.nn.ModuleList([wf.nn.Linear(8, 8) for _ in range(3)])
        self.out, self.norm = wf.nn.Linear(8, 8), wf.nn.LayerNorm(8)
        self.up, self.down = wf.nn.Linear(8, 16), wf.nn.Linear(16, 8)
        self.head, self.drop = wf.nn.Linear(8, 12), wf.nn.Dropout(0.2)

    def forward(self, tokens):
        x = self.table(tokens)
        split = [look(x).reshape(*x.shape[:2], 4, 2).permute(0, 2, 1, 3) for look in self.looks]
        y = wf.nn.functional.scaled_dot_product_attention(*split, dropout_p=0.1, is_causal=True)
        x = self.norm(x + self.out(y.permute(0, 2, 1, 3).reshape(*x.shape)))
        return self.head(x + self.down(self.drop(wf.nn.functional.gelu(self.up(x)))))


class Perceptron(wf.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = wf.nn.Embedding(12, 6)
        self.up, self.down = wf.nn.Linear(6, 16), wf.nn.Linear(16, 8)
        self.head, self.drop = wf.nn.Linear(8, 12), wf.nn.Dropout(0.2)

    def forward(self, tokens):
        return self.head(self.down(self.drop(self.up(self.table(tokens)).tanh())))


LAYERS = {
    "mlp": (
        Perceptron,
        {"up": "column", "drop": "dropout", "down": "row", "head": "column_to_all"},
    ),
    "gpt": (
        Block,
        {
            "table": "table",
            "attention": "heads",
            "up": "column",
            "drop_in": "dropout",
            "down": "row",
            "head": "column_to_all",
        },
    ),
}
PLACES = {
    "mlp": (Perceptron, {"up.*": 0, "down.weight": 1, "head.*": 0}),
    "gpt": (
        PlainBlock,
        {
            **{f"{layer}.*": 0 for layer in ("looks.?", "up", "head")},
            **{f"{layer}.weight": 1 for layer in ("out", "down")},
            "table.weight": 0,
        },
    ),
}
DIVIDED = {
    "tensor parallel": (LAYERS, dist.tensor_parallel),
    "placed": (PLACES, dist.place_parameters),
}


def divided_losses(name, kind, mode, *, steps, dtype="float64", alone=False):
    """Return the losses of a model that is divided, and how many parameters are here."""
    models, divide = DIVIDED[kind]
    make, plan = models[name]
    with computing_in(dtype):
        wf.manual_seed(5)
        model = make()
        if not alone:
            divide(model, plan)
        step = made_step(model, wf.optim.Adam(model.parameters(), lr=1e-2), mode)
        rng = np.random.default_rng(0)
        losses = []
        for _ in range(steps):
            tokens = wf.tensor(rng.integers(0, 12, (4, 6)))
            losses.append(float(np.asarray(step(tokens, tokens))))
    return losses, sum(p.numel() for p in model.parameters())


# -- stages ----------------------------------------------------------------------------------------


class Over(wf.nn.Module):
    """A recurrent layer of which the states, or the last one, are wanted."""

    def __init__(self, inputs, last=False):
        super().__init__()
        self.lstm, self.last = wf.nn.LSTM(inputs, 8, batch_first=True), last

    def forward(self, x):
        states = self.lstm(x)[0]
        return states[:, -1] if self.last else states


class Causal(wf.nn.Module):
    """A transformer layer that looks back."""

    def __init__(self):
        super().__init__()
        self.layer = wf.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)

    def forward(self, x):
        mask = wf.triu(wf.full((x.shape[1], x.shape[1]), float("-inf")), 1)
        return self.layer(x, src_mask=mask)


def four_layers(name):
    """Return a model as four layers, which one, two or four processes share."""
    nn = wf.nn
    return {
        "mlp": lambda: [
            nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Dropout(0.3)),
            nn.Linear(16, 16),
            nn.Sequential(nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 16)),
            nn.Sequential(nn.Dropout(0.2), nn.Linear(16, 3)),
        ],
        "cnn": lambda: [
            nn.Conv2d(1, 4, 3),
            nn.BatchNorm2d(4),
            nn.Sequential(nn.ReLU(), nn.Conv2d(4, 4, 1)),
            nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(64, 3)),
        ],
        "lstm": lambda: [
            nn.Sequential(Over(5), nn.Dropout(0.2)),
            nn.Sequential(Over(8), nn.Dropout(0.2)),
            Over(8, last=True),
            nn.Linear(8, 3),
        ],
        "gpt": lambda: [nn.Embedding(11, 16), Causal(), Causal(), nn.Linear(16, 11)],
    }[name]()


def pipeline_losses(name, schedule, mode, *, steps, dtype="float64", alone=False):
    """Return the losses of a model in stages; of a normalised one each batch is one part."""
    with computing_in(dtype):
        wf.manual_seed(7)
        layers = four_layers(name)
        if alone:
            return whole_losses(name, wf.nn.Sequential(*layers), steps, dtype)
        share = len(layers) // dist.size()
        stage = wf.nn.Sequential(*layers[dist.rank() * share : (dist.rank() + 1) * share])
        optimizer = wf.optim.Adam(stage.parameters(), lr=1e-2)
        run, loss = (wf.jit(stage), wf.jit(of_output)) if mode == "jit" else (stage, of_output)
        parts = 1 if name == "cnn" else 4
        pipeline = dist.Pipeline(run, loss, parts=parts, schedule=schedule)
        losses = []
        for x, y in batches(name, steps, dtype):
            optimizer.zero_grad()
            losses.append(float(pipeline.backward(wf.tensor(x), wf.tensor(y))))
            optimizer.step()
        return losses


def of_output(output, target):
    return wf.nn.functional.cross_entropy(
        output.reshape((-1, output.shape[-1])), target.reshape((-1,))
    )


def whole_losses(name, model, steps, dtype):
    optimizer = wf.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for x, y in batches(name, steps, dtype):
        optimizer.zero_grad()
        loss = loss_of(model, wf.tensor(x), wf.tensor(y))
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses
