"""What is compared of a call: sums of results and of gradients, weighted by a wave."""

from __future__ import annotations

from typing import Any

import numpy as np

from .cases import Case


def figures(chainer: Any, case: Case) -> list[list[float]]:
    """Return the sums of a call's results, and of the gradients of its arguments."""
    args = [_as_variable(chainer, x) for x in case.args]
    results = _flat(case.function(*args))
    sums = [_sum(y.array if isinstance(y, chainer.Variable) else y) for y in results]
    smooth = [y for y in results if isinstance(y, chainer.Variable) and y.dtype.kind == "f"]
    if not smooth or all(y.creator is None for y in smooth):
        return [sums, []]
    total = None
    for y in smooth:
        part = chainer.functions.sum(y * _wave(y.shape).astype(y.dtype))
        total = part if total is None else total + part
    total.backward()
    given = [x for x in args if isinstance(x, chainer.Variable)]
    return [sums, [_sum(x.grad) for x in given if x.grad is not None]]


def _as_variable(chainer: Any, x: Any) -> Any:
    is_float = isinstance(x, np.ndarray) and x.dtype.kind == "f"
    return chainer.Variable(x.copy()) if is_float else x


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [y for part in value for y in _flat(part)]
    return [value]


def _wave(shape: tuple[int, ...]) -> Any:
    return np.cos(np.arange(int(np.prod(shape)))).reshape(shape)


def _sum(array: Any) -> float:
    return float((np.asarray(array, np.float64) * _wave(np.shape(array))).sum())
