"""Random programs of views, writes in place and gradients, in PyTorch's words.

A program is a list of steps; `run` executes it with a module that has PyTorch's names.
`expected` is its meaning without gradients, by NumPy, whose views share memory as PyTorch's do.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np

VIEWS = ("row", "part", "turn", "flat", "axis", "pick", "diagonal", "detach", "chunk", "column")
WRITES = ("add", "mul", "zero", "copy", "fill", "item", "slice", "relu", "augmented")
VALUES = ("sum", "product", "clone", "exp", "square")


class Step(NamedTuple):
    """One line of a program: what is done to which of the tensors so far, with which numbers."""

    kind: str
    target: int
    other: int
    numbers: tuple[float, ...]


class Program(NamedTuple):
    """A program: whether its first tensor requires gradients, and what is done."""

    shape: tuple[int, ...]
    tracked: bool
    steps: list[Step]


def drawn_program(seed: int, steps: int = 8) -> Program:
    """Return a random program."""
    source = random.Random(seed)
    shape = source.choice([(4,), (2, 3), (3, 2), (2, 2, 2)])
    kinds = [*VIEWS, *WRITES, *WRITES, *VALUES]
    made = [
        Step(
            source.choice(kinds),
            source.randrange(100),
            source.randrange(100),
            tuple(source.randrange(4) for _ in range(3)),
        )
        for _ in range(steps)
    ]
    return Program(shape, source.random() < 0.6, made)


def start_values(shape: tuple[int, ...]) -> Any:
    """Return what the first tensor holds."""
    return (np.arange(np.prod(shape)).reshape(shape) * 0.25 + 0.5).astype(np.float64)


# -- with a module that has PyTorch's names -------------------------------------------------------


def run(program: Program, torch: Any) -> tuple[list[Any], Any, str | None]:
    """Return the values of all tensors, the gradient, and the kind of error that ended it."""
    leaf = torch.tensor(start_values(program.shape), requires_grad=program.tracked)
    tensors = [leaf * 1.0]
    error = None
    for step in program.steps:
        try:
            _do(step, tensors, torch)
        except (RuntimeError, IndexError, ValueError) as raised:
            error = type(raised).__name__
            break
    values = [np.array(x.detach().numpy()) for x in tensors]
    grad: Any = None
    if program.tracked and error is None:
        try:
            sum(((i + 1) * x).sum() for i, x in enumerate(tensors)).backward()
            grad = np.array(leaf.grad.numpy())
        except RuntimeError:
            grad = "raised"
    return values, grad, error


def _do(step: Step, tensors: list[Any], torch: Any) -> None:
    x = tensors[step.target % len(tensors)]
    other = tensors[step.other % len(tensors)]
    a, b, c = (int(n) for n in step.numbers)
    made = _view(step.kind, x, a, b) if step.kind in VIEWS else None
    if made is not None:
        tensors.append(made)
    elif step.kind in VALUES:
        tensors.append(_value(step.kind, x, other))
    elif step.kind in WRITES:
        _write(step.kind, x, other, a, b, c)


def _view(  # noqa: C901, PLR0911, PLR0912  (one line for each kind of view)
    kind: str, x: Any, a: int, b: int
) -> Any:
    if kind == "detach":
        return x.detach()
    if kind == "flat":
        return x.reshape(-1)
    if x.ndim == 0:
        return None
    dim = a % x.ndim
    size = x.shape[dim]
    if kind == "row":
        return x[b % x.shape[0]]
    if kind == "part":
        return x[: max(1, b % (x.shape[0] + 1))]
    if kind == "turn":
        return x.transpose(dim, b % x.ndim)
    if kind == "axis":
        return x.unsqueeze(dim)
    if kind == "pick":
        return x.select(dim, b % size)
    if kind == "column":
        return x[..., ::2]
    if kind == "chunk":
        return x.chunk(2, dim)[0]
    if kind == "diagonal" and x.ndim > 1:
        return x.diagonal(0, 0, 1)
    return None


def _value(kind: str, x: Any, other: Any) -> Any:
    if kind == "sum":
        return x + other.sum()
    if kind == "product":
        return x * other.mean()
    if kind == "clone":
        return x.clone()
    if kind == "exp":
        return (x * 0.1).exp()
    return x * x


def _write(kind: str, x: Any, other: Any, a: int, b: int, c: int) -> None:
    if kind == "add":
        x.add_(other.mean())
    elif kind == "mul":
        x.mul_(1 + 0.5 * a)
    elif kind == "zero":
        x.zero_()
    elif kind == "copy":
        x.copy_(other.sum() * 0.5)
    elif kind == "fill":
        x.fill_(float(a))
    elif kind == "relu":
        x.sub_(1.0).relu_()
    elif kind == "augmented":
        x += 1.5
    elif kind == "item" and x.ndim:
        x[a % x.shape[0]] = float(b)
    elif kind == "slice" and x.ndim:
        x[: 1 + a % x.shape[0]] = other.mean()


# -- with NumPy -----------------------------------------------------------------------------------


def expected(program: Program) -> list[Any]:
    """Return the values of all tensors of a program without gradients."""
    arrays = [start_values(program.shape) * 1.0]
    for step in program.steps:
        x = arrays[step.target % len(arrays)]
        other = arrays[step.other % len(arrays)]
        a, b, _ = (int(n) for n in step.numbers)
        made = _array_view(step.kind, x, a, b) if step.kind in VIEWS else None
        if made is not None:
            arrays.append(made)
        elif step.kind in VALUES:
            arrays.append(_array_value(step.kind, x, other))
        elif step.kind in WRITES:
            _array_write(step.kind, x, other, a, b)
    return [np.array(x) for x in arrays]


def _array_view(  # noqa: C901, PLR0911, PLR0912  (one line for each kind of view)
    kind: str, x: Any, a: int, b: int
) -> Any:
    if kind == "detach":
        return x[...]
    if kind == "flat":
        return x.reshape(-1)
    if x.ndim == 0:
        return None
    dim = a % x.ndim
    size = x.shape[dim]
    front = (slice(None),) * dim
    if kind == "row":
        return x[b % x.shape[0], ...]
    if kind == "part":
        return x[: max(1, b % (x.shape[0] + 1))]
    if kind == "turn":
        return x.swapaxes(dim, b % x.ndim)
    if kind == "axis":
        return np.expand_dims(x, dim)
    if kind == "pick":
        return x[(*front, b % size, ...)]
    if kind == "column":
        return x[..., ::2]
    if kind == "chunk":
        return x[(*front, slice(0, -(-size // 2)))]
    if kind == "diagonal" and x.ndim > 1:
        found = np.diagonal(x, 0, 0, 1)
        found.flags.writeable = True
        return found
    return None


def _array_value(kind: str, x: Any, other: Any) -> Any:
    if kind == "sum":
        return np.asarray(x + other.sum())
    if kind == "product":
        return np.asarray(x * other.mean())
    if kind == "clone":
        return x.copy()
    if kind == "exp":
        return np.asarray(np.exp(x * 0.1))
    return np.asarray(x * x)


def _array_write(kind: str, x: Any, other: Any, a: int, b: int) -> None:
    if kind == "add":
        x[...] = x + other.mean()
    elif kind == "mul":
        x[...] = x * (1 + 0.5 * a)
    elif kind == "zero":
        x[...] = 0
    elif kind == "copy":
        x[...] = other.sum() * 0.5
    elif kind == "fill":
        x[...] = float(a)
    elif kind == "relu":
        x[...] = np.maximum(x - 1.0, 0)
    elif kind == "augmented":
        x[...] = x + 1.5
    elif kind == "item" and x.ndim:
        x[a % x.shape[0]] = float(b)
    elif kind == "slice" and x.ndim:
        x[: 1 + a % x.shape[0]] = other.mean()
