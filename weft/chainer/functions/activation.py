"""Activation functions."""

from __future__ import annotations

from typing import Any

from ...core.op import F
from ...core.tensor import Tensor
from ...ops.random.draw import rand
from ..configuration import config
from ..utils.type_check import expect
from ._common import function, named

relu = named("relu")
relu6 = named("relu6")
sigmoid = named("sigmoid")
tanh = named("tanh")


@function
def clipped_relu(x: Tensor, z: float = 20.0) -> Tensor:
    """Return min(max(0, x), z)."""
    return F.clip(x, 0.0, z)


@function
def crelu(x: Tensor, axis: int = 1) -> Tensor:
    """Return relu of x and of -x, joined along an axis."""
    return F.concat([F.relu(x), F.relu(-x)], axis)


@function
def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """Return x where it is positive, else alpha * (exp(x) - 1)."""
    return F.elu(x, alpha)


@function
def hard_sigmoid(x: Tensor) -> Tensor:
    """Return 0.2 x + 0.5, kept between 0 and 1."""
    return F.clip(x * 0.2 + 0.5, 0.0, 1.0)


@function
def leaky_relu(x: Tensor, slope: float = 0.2) -> Tensor:
    """Return x where it is positive, else slope * x."""
    return F.leaky_relu(x, slope)


@function
def log_softmax(x: Tensor, axis: int = 1) -> Tensor:
    """Return the logarithm of softmax along an axis."""
    return F.log_softmax(x, axis)


@function
def softmax(x: Tensor, axis: int = 1) -> Tensor:
    """Return softmax along an axis, by default the second."""
    return F.softmax(x, axis)


@function
def maxout(x: Tensor, pool_size: int, axis: int = 1) -> Tensor:
    """Return the largest of each `pool_size` neighbours along an axis."""
    size = x.shape[axis]
    expect(
        "maxout", size % pool_size == 0, "x.shape[axis] % pool_size == 0", f"{size} % {pool_size}"
    )
    axis = axis % x.ndim
    shape = (*x.shape[:axis], size // pool_size, pool_size, *x.shape[axis + 1 :])
    return F.max(F.reshape(x, shape), axis + 1)


@function
def prelu(x: Tensor, W: Tensor) -> Tensor:
    """Return x where it is positive, else W * x, with a slope for each element W has."""
    slopes = F.reshape(W, (1, *W.shape, *([1] * (x.ndim - W.ndim - 1))))
    return F.where(x >= 0, x, x * slopes)


@function
def rrelu(x: Tensor, l: float = 1.0 / 8, u: float = 1.0 / 3, **_: Any) -> Tensor:  # noqa: E741  (Chainer's name)
    """Return leaky relu with slopes that are drawn in training and fixed otherwise."""
    slope: Any = (l + u) / 2
    if config.train:
        slope = rand(*x.shape, dtype=x.dtype) * (u - l) + l
    return F.where(x >= 0, x, x * slope)


@function
def selu(x: Tensor, alpha: float = 1.6732632423543772, scale: float = 1.0507009873554805) -> Tensor:
    """Return the scaled exponential linear unit."""
    return F.elu(x, alpha) * scale


@function
def softplus(x: Tensor, beta: float = 1.0) -> Tensor:
    """Return log(1 + exp(beta x)) / beta."""
    return F.softplus(x, beta)


@function
def swish(x: Tensor, beta: Tensor) -> Tensor:
    """Return x * sigmoid(beta x), with a beta for each element of an example."""
    shape = (1, *beta.shape, *([1] * (x.ndim - beta.ndim - 1)))
    return x * F.sigmoid(F.reshape(beta, shape) * x)


def _gates(x: Tensor, count: int) -> tuple[Tensor, ...]:
    """Return the gates that stand interleaved along the second axis, as Chainer lays them out."""
    parts = F.reshape(x, (x.shape[0], x.shape[1] // count, count, *x.shape[2:]))
    return tuple(parts[:, :, i] for i in range(count))


@function
def lstm(c_prev: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the next cell state and output of an LSTM from its gates a, i, f, o, interleaved.

    The batch may be smaller than that of the state: states of sequences that have ended stay.
    """
    expect(
        "lstm",
        x.shape[1] == 4 * c_prev.shape[1],
        "4 * c.shape[1] == x.shape[1]",
        f"{4 * c_prev.shape[1]} != {x.shape[1]}",
    )
    batch = x.shape[0]
    a, i, f, o = _gates(x, 4)
    held = c_prev if c_prev.shape[0] == batch else c_prev[:batch]
    c = F.tanh(a) * F.sigmoid(i) + F.sigmoid(f) * held
    h = F.sigmoid(o) * F.tanh(c)
    return (c if held is c_prev else F.concat([c, c_prev[batch:]], 0)), h


@function
def slstm(c_prev1: Tensor, c_prev2: Tensor, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
    """Return the next cell state and output of an S-LSTM, which joins two branches."""
    a1, i1, f1, o1 = _gates(x1, 4)
    a2, i2, f2, o2 = _gates(x2, 4)
    fresh = F.tanh(a1) * F.sigmoid(i1) + F.tanh(a2) * F.sigmoid(i2)
    c = fresh + F.sigmoid(f1) * c_prev1 + F.sigmoid(f2) * c_prev2
    return c, F.sigmoid(o1 + o2) * F.tanh(c)


@function
def tree_lstm(*inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return the state and output of a node from its children's states and its gates.

    The last input holds a, i, o and one forget gate for each child, one after another.
    """
    states, gates = inputs[:-1], inputs[-1]
    a, i, o, *forgets = F.split(gates, gates.shape[1] // (3 + len(states)), 1)
    c = F.tanh(a) * F.sigmoid(i)
    for forget, state in zip(forgets, states, strict=True):
        c = c + F.sigmoid(forget) * state
    return c, F.sigmoid(o) * F.tanh(c)
