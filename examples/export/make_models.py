"""Export five models as shared libraries, with inputs and outputs to compare others with.

    python examples/export/make_models.py out [NAME ...]

Each becomes `out/NAME.so` and `out/NAME.h`, and `out/NAME.bin` holds inputs and what Python
computed of them, which the programs beside this file (C, C++, R, Python) read:

    mlp      a classifier of digits
    resnet18 a convolutional network on an image
    lstm     a recurrent network on a sequence
    gpt      one step of a language model, with a cache of keys and values as states
    train    a training step of a classifier with Adam: weights and moments are states
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import weft as wf
from weft import nn
from weft.nn import models

RUNS = 3
Array = np.ndarray[Any, Any]
Made = tuple[Any, list[Array]]  # what is compiled, and its inputs
DTYPES = {"bool": 0, "int32": 3, "int64": 4, "float32": 11, "float64": 12}


class Decoder(nn.Module):
    """A GPT that takes one token at a time, and keeps keys and values of those before it."""

    def __init__(self, net: models.GPT) -> None:
        super().__init__()
        self.net = net
        attention = net.h[0].attn
        heads, size = attention.n_head, attention.c_proj.weight.shape[0] // attention.n_head
        shape = (len(net.h), 2, heads, net.block_size, size)
        self.register_buffer("cache", wf.zeros(*shape))
        self.register_buffer("position", wf.zeros((), dtype=wf.int64))

    def forward(self, token: wf.Tensor) -> wf.Tensor:
        """Return the scores of the token that follows one token (1,)."""
        net, at = self.net, self.position
        places = wf.arange(net.block_size)
        x = net.wte(token) + net.wpe(at.reshape(1))
        kept = []
        for i, block in enumerate(net.h):
            gathered, cache = self._attend(block.attn, block.ln_1(x), self.cache[i], places, at)
            kept.append(cache)
            x = x + gathered
            x = x + block.mlp(block.ln_2(x))
        self.cache.assign(wf.stack(kept))
        self.position.assign((at + 1) % net.block_size)  # a full cache begins anew
        return net.lm_head(net.ln_f(x))

    def _attend(
        self, attention: Any, x: wf.Tensor, cache: wf.Tensor, places: wf.Tensor, at: wf.Tensor
    ) -> tuple[wf.Tensor, wf.Tensor]:
        _, heads, length, size = cache.shape
        q, k, v = attention.c_attn(x).reshape(3, heads, 1, size)
        now = (places == at).reshape(1, 1, length, 1)
        cache = wf.where(now, wf.stack([k, v]), cache)
        scores = (cache[0] @ q.reshape(heads, size, 1)).reshape(heads, length) / size**0.5
        seen = wf.where(places <= at, scores, -np.inf)
        gathered = nn.functional.softmax(seen, axis=-1).reshape(heads, 1, length) @ cache[1]
        return attention.c_proj(gathered.reshape(1, heads * size)), cache


def mlp(draw: np.random.Generator) -> Made:
    """Return a classifier of 32 digits."""
    net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10), nn.Softmax(-1))
    x = draw.random((32, 784), np.float32)
    return wf.compile(net.eval(), x), [x]


def resnet18(draw: np.random.Generator) -> Made:
    """Return a network on an image of 224 x 224."""
    x = draw.standard_normal((1, 3, 224, 224)).astype(np.float32)
    return wf.compile(models.resnet18(num_classes=1000).eval(), x), [x]


def lstm(draw: np.random.Generator) -> Made:
    """Return a recurrent network on 4 sequences of 32 vectors."""
    net = nn.LSTM(64, 128, batch_first=True)
    x = draw.standard_normal((4, 32, 64)).astype(np.float32)
    return wf.compile(lambda x: net(x)[0], x), [x]


def gpt(draw: np.random.Generator) -> Made:
    """Return the step of a language model of characters."""
    net = Decoder(models.GPT(65, block_size=128, n_layer=4, n_head=4, n_embd=128)).eval()
    token = draw.integers(0, 65, 1)
    return wf.compile(net, token), [token]


def train(draw: np.random.Generator) -> Made:
    """Return a step of Adam on 32 digits; the loss is what it returns."""
    net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = wf.optim.Adam(net.parameters(), lr=1e-3)

    def step(x: wf.Tensor, y: wf.Tensor) -> wf.Tensor:
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.minimize(loss)
        return loss

    x, y = draw.random((32, 784), np.float32), draw.integers(0, 10, 32)
    return wf.compile(step, x, y), [x, y]


MODELS: dict[str, Callable[[np.random.Generator], Made]] = {
    made.__name__: made for made in (mlp, resnet18, lstm, gpt, train)
}


def write_model(folder: Path, name: str, **options: Any) -> Made:
    """Export a model by its name, with some runs of Python's; return it."""
    wf.manual_seed(0)
    compiled, inputs = MODELS[name](np.random.default_rng(0))
    compiled.export(folder / f"{name}.so", **options)
    runs = [[as_array(x) for x in as_list(compiled(*inputs))] for _ in range(RUNS)]
    write_arrays(folder / f"{name}.bin", inputs, runs)
    return compiled, inputs


def as_list(value: Any) -> list[Any]:
    """Return one result, or several, as a list."""
    return list(value) if isinstance(value, (tuple, list)) else [value]


def as_array(tensor: Any) -> Array:
    """Return a tensor's array."""
    array: Array = tensor.numpy()
    return array


def write_arrays(path: Path, inputs: Sequence[Array], runs: Sequence[Sequence[Array]]) -> None:
    """Write inputs and the outputs of some runs: counts, then each array with its type."""
    with open(path, "wb") as file:
        file.write(struct.pack("<3q", len(inputs), len(runs), len(runs[0])))
        for array in (*inputs, *(array for run in runs for array in run)):
            file.write(struct.pack("<2q", DTYPES[array.dtype.name], array.ndim))
            file.write(struct.pack(f"<{array.ndim}q", *array.shape))
            file.write(np.ascontiguousarray(array).tobytes())


def main() -> None:
    """Export the models that were asked for, or all."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or MODELS:
        write_model(folder, name)
        print(f"{folder / name}.so  {(folder / name).with_suffix('.so').stat().st_size} bytes")


if __name__ == "__main__":
    main()
