"""The networks of `steps.py`, written once for Weft and PyTorch; `step_jax.py` has them for JAX.

A workload is made for a framework: `nn` is its module of layers, `F` its module of functions, and
`over_time(step, state, xs)` how it runs a recurrence that is written by hand. Parameters have the
same names everywhere, and their initial values follow from name and shape.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

VOCABULARY = 65
HIDDEN = 256


class Framework(NamedTuple):
    """What a network needs of a framework."""

    nn: Any
    F: Any
    arange: Callable[[int], Any]
    gather: Callable[[Any, int, Any], Any]
    over_time: Callable[[Any, Any, Any], tuple[Any, Any]]


class Workload(NamedTuple):
    """One training step: what it is fed, its network, and its loss from network and batch."""

    batch: Callable[[], tuple[np.ndarray, ...]]
    net: Callable[[Framework], Any]
    loss: Callable[..., Any]
    images: bool = False  # PyTorch may hold them with channels last


def initial(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return where a parameter begins: normal by its inputs; biases zero, scales of norms one."""
    if len(shape) == 1:
        return np.full(shape, 0.0 if "bias" in name.rpartition(".")[2] else 1.0, np.float32)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return (rng.normal(size=shape) / math.sqrt(math.prod(shape[1:]))).astype(np.float32)


# -- batches -------------------------------------------------------------------------------------


def classified(*shape: int) -> Callable[[], tuple[np.ndarray, ...]]:
    """Return a function that draws normal inputs and one of 10 classes for each."""

    def batch() -> tuple[np.ndarray, ...]:
        rng = np.random.default_rng(0)
        return rng.normal(size=shape).astype(np.float32), rng.integers(0, 10, shape[0])

    return batch


def transitions() -> tuple[np.ndarray, ...]:
    """Return states, actions taken and targets."""
    rng = np.random.default_rng(0)
    states = rng.normal(size=(64, 4)).astype(np.float32)
    return states, rng.integers(0, 2, 64), rng.normal(size=64).astype(np.float32)


def texts(count: int, length: int) -> Callable[[], tuple[np.ndarray, ...]]:
    """Return a function that draws tokens, and the token that follows each."""

    def batch() -> tuple[np.ndarray, ...]:
        drawn = np.random.default_rng(0).integers(0, VOCABULARY, (count, length + 1))
        return np.ascontiguousarray(drawn[:, :-1]), np.ascontiguousarray(drawn[:, 1:])

    return batch


# -- losses --------------------------------------------------------------------------------------


def of_classes(lib: Framework, net: Any, x: Any, y: Any) -> Any:
    """Return the cross-entropy of one class for each row."""
    return lib.F.cross_entropy(net(x), y)


def of_actions(lib: Framework, net: Any, states: Any, actions: Any, targets: Any) -> Any:
    """Return the Huber loss of the values of actions taken."""
    chosen = lib.gather(net(states), 1, actions[:, None])[:, 0]
    return lib.F.smooth_l1_loss(chosen, targets)


def of_tokens(lib: Framework, net: Any, tokens: Any, following: Any) -> Any:
    """Return the cross-entropy of the token that follows each."""
    scores = net(tokens)
    return lib.F.cross_entropy(scores.reshape(-1, VOCABULARY), following.reshape(-1))


# -- networks ------------------------------------------------------------------------------------


def perceptron(*sizes: int) -> Callable[[Framework], Any]:
    """Return a function that makes a perceptron with ReLU between its layers."""

    def make(lib: Framework) -> Any:
        layers: list[Any] = []
        for m, n in pairwise(sizes):
            layers += [lib.nn.Linear(m, n), lib.nn.ReLU()]
        return lib.nn.Sequential(*layers[:-1])

    return make


def cnn(lib: Framework) -> Any:
    """Return two convolutions, a maximum over 2 by 2, and two linear layers."""
    nn = lib.nn
    return nn.Sequential(
        *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 14 * 14, 128), nn.ReLU()),
        nn.Linear(128, 10),
    )


def resnet18(lib: Framework) -> Any:
    """Return a residual network of 18 layers with a 3 by 3 stem (He et al. 2016)."""
    nn, F = lib.nn, lib.F

    class Block(nn.Module):
        def __init__(self, before: int, width: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(width)
            self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(width)
            self.down = nn.Identity()
            if before != width:
                conv = nn.Conv2d(before, width, 1, stride, bias=False)
                self.down = nn.Sequential(conv, nn.BatchNorm2d(width))

        def forward(self, x: Any) -> Any:
            y = F.relu(self.bn1(self.conv1(x)))
            return F.relu(self.bn2(self.conv2(y)) + self.down(x))

    layers = [nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    for before, width, stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)):
        layers += [Block(before, width, stride), Block(width, width, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def lstm(lib: Framework) -> Any:
    """Return a language model of characters: the framework's LSTM."""
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
            self.lstm = nn.LSTM(HIDDEN, HIDDEN, batch_first=True)
            self.head = nn.Linear(HIDDEN, VOCABULARY)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.lstm(self.embedding(tokens))[0])

    return Net()


def cell(lib: Framework) -> Any:
    """Return the same model with a cell written by hand, step after step."""
    nn, F = lib.nn, lib.F

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
            self.of_input = nn.Linear(HIDDEN, 4 * HIDDEN)
            self.of_state = nn.Linear(HIDDEN, 4 * HIDDEN)
            self.head = nn.Linear(HIDDEN, VOCABULARY)

        def step(self, state: Any, x: Any) -> tuple[Any, Any]:
            h, c = state
            i, f, g, o = (self.of_input(x) + self.of_state(h)).split(HIDDEN, -1)
            c = F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(g)
            h = F.sigmoid(o) * F.tanh(c)
            return (h, c), h

        def forward(self, tokens: Any) -> Any:
            xs = self.embedding(tokens).swapaxes(0, 1)
            zero = xs[0] * 0.0
            _, outputs = lib.over_time(self.step, (zero, zero), xs)
            return self.head(outputs.swapaxes(0, 1))

    return Net()


def gpt(lib: Framework) -> Any:
    """Return a decoder-only transformer of 4 layers (Radford et al. 2019)."""
    nn, F = lib.nn, lib.F
    size, heads, length = HIDDEN, 4, 128

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(size), nn.LayerNorm(size)
            self.qkv, self.proj = nn.Linear(size, 3 * size), nn.Linear(size, size)
            self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

        def attend(self, x: Any) -> Any:
            n, t, e = x.shape
            parts = self.qkv(x).reshape(n, t, 3, heads, e // heads)
            q, k, v = (parts[:, :, i].swapaxes(1, 2) for i in range(3))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.proj(y.swapaxes(1, 2).reshape(n, t, e))

        def forward(self, x: Any) -> Any:
            x = x + self.attend(self.ln1(x))
            return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, size)
            self.places = nn.Embedding(length, size)
            self.blocks = nn.Sequential(*(Block() for _ in range(4)))
            self.norm = nn.LayerNorm(size)
            self.head = nn.Linear(size, VOCABULARY, bias=False)

        def forward(self, tokens: Any) -> Any:
            x = self.tokens(tokens) + self.places(lib.arange(tokens.shape[1]))
            return self.head(self.norm(self.blocks(x)))

    return Net()


WORKLOADS = {
    "mlp": Workload(classified(128, 784), perceptron(784, 512, 512, 10), of_classes),
    "dqn": Workload(transitions, perceptron(4, 128, 128, 2), of_actions),
    "cnn": Workload(classified(64, 1, 28, 28), cnn, of_classes, images=True),
    "resnet18": Workload(classified(16, 3, 32, 32), resnet18, of_classes, images=True),
    "lstm": Workload(texts(32, 64), lstm, of_tokens),
    "gpt": Workload(texts(8, 128), gpt, of_tokens),
    "cell": Workload(texts(32, 64), cell, of_tokens),
}
