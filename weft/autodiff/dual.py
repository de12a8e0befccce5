"""Dual numbers: a value p and a tangent t, standing for p + eps t with eps**2 = 0.

Each belongs to a level, one running jvp; levels tell nested perturbations apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np

from ..core.dtype import DType
from ..core.errors import GradientError, ShapeError
from ..core.op import F
from ..core.tape import Leaf
from ..core.tensor import Tensor
from .reverse import gradients

_next_level = count(1).__next__


class Dual(Tensor):
    """A value with its derivative along a direction, at one level of forward mode.

    It has no `_value`, so generated code hands every operation on it to the interpreter. Reading it
    in Python (`if x > 0`, float(x), print) reads the value.

    Its parts lie in the slots of a Tensor under other names: of the same layout, a plain tensor can
    become a dual number when one is written into it.
    """

    __slots__ = ()

    primal: Tensor = vars(Tensor)["_value"]
    tangent: Tensor | None = vars(Tensor)["_site"]
    level: Level = vars(Tensor)["_node"]

    _node = None  # the tape sees the primal and the tangent, never the dual
    _site = None
    _paused = None  # type: ignore[assignment]  # a dual is never a leaf

    @property
    def _value(self) -> Any:  # type: ignore[override]  # a slot in the base class
        if self.level.running:
            raise AttributeError("_value")  # sends generated code to the interpreter
        raise GradientError(
            "this value belongs to a jvp that has ended; return it from the function instead of "
            "keeping it in a variable outside"
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the sizes of all dimensions."""
        return self.primal.shape

    @property
    def dtype(self) -> DType:
        """Return the element type."""
        return self.primal.dtype

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return self.primal.ndim

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return self.primal.size

    def detach(self) -> Tensor:
        """Return the value without its derivative."""
        return self.primal.detach()

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the value as a read-only NumPy view."""
        return self.primal.numpy()

    def item(self) -> Any:
        """Return the only element as a Python number."""
        return self.primal.item()

    def tolist(self) -> Any:
        """Return the value as nested Python lists."""
        return self.primal.tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self.primal.__array__(dtype, copy)

    def __bool__(self) -> bool:
        return bool(self.primal)

    def __float__(self) -> float:
        return float(self.primal)

    def __int__(self) -> int:
        return int(self.primal)

    def __index__(self) -> int:
        return self.primal.__index__()

    def __repr__(self) -> str:
        return f"dual({self.primal!r}, tangent={self.tangent!r})"

    def _rebind(self, result: Tensor) -> Tensor:
        if result.shape != self.shape or result.dtype != self.dtype:
            raise ShapeError(
                f"writing in place cannot change {self.dtype}{list(self.shape)} "
                f"to {result.dtype}{list(result.shape)}"
            )
        if isinstance(result, Dual) and result.level is self.level:
            _fill(self, result.primal, result.tangent, self.level)
        else:
            _fill(self, result, None, self.level)
        return self

    def _move_into(self, target: Tensor) -> None:
        if type(target) is not Tensor or isinstance(target._node, Leaf):
            raise GradientError(
                "a leaf or parameter cannot take a value with a derivative inside jvp; write into "
                "a plain tensor, e.g. x.detach()"
            )
        target.__class__ = Dual
        _fill(target, self.primal, self.tangent, self.level)


class Level:
    """One running jvp; its number grows inwards."""

    __slots__ = ("number", "running")

    def __init__(self) -> None:
        self.number = _next_level()
        self.running = True


def make_dual(primal: Tensor, tangent: Tensor | None, level: Level) -> Tensor:
    """Return a dual number, or the value itself if its tangent is zero."""
    if tangent is None:
        return primal
    dual = object.__new__(Dual)
    _fill(dual, primal, tangent, level)
    return dual


def _fill(dual: Any, primal: Tensor, tangent: Tensor | None, level: Level) -> None:
    dual.primal, dual.tangent, dual.level = primal, tangent, level


# -- gradients of dual numbers ---------------------------------------------------------------------


def innermost(x: Tensor) -> Tensor:
    """Return the plain tensor at the heart of a dual number."""
    while isinstance(x, Dual):
        x = x.primal
    return x


def dual_gradients(
    ys: Sequence[Any], xs: Sequence[Any], grad_ys: Sequence[Any], *, create_graph: bool = True
) -> list[Any]:
    """Return the gradients of <grad_ys, ys> where any of them may be dual numbers.

    The tangent of a gradient follows from the product rule: with y = p + eps t and g = q + eps r,
    d<g, y>/dx = d<q, p>/dx + eps (d<q, t>/dx + d<r, p>/dx).
    """
    level = max(
        (v.level for v in (*ys, *grad_ys) if isinstance(v, Dual)), key=_number, default=None
    )
    if level is None:
        places = [innermost(x) for x in xs]
        found: list[Any] = gradients(
            list(ys), places, list(grad_ys), retain_graph=True, create_graph=create_graph
        )
        return found
    p, t = _split_all(ys, level)
    q, r = _split_all(grad_ys, level)
    primals = dual_gradients(p, xs, q, create_graph=create_graph)
    moved = [*zip(t, q, strict=True), *zip(p, r, strict=True)]
    kept = [(y, g) for y, g in moved if y is not None and g is not None]
    tangents = dual_gradients(
        [y for y, _ in kept], xs, [g for _, g in kept], create_graph=create_graph
    )
    return [_join(*pair, level) for pair in zip(primals, tangents, strict=True)]


def _number(level: Level) -> int:
    return level.number


def _split_all(values: Sequence[Any], level: Level) -> tuple[list[Any], list[Any]]:
    pairs = [
        (v.primal, v.tangent) if isinstance(v, Dual) and v.level is level else (v, None)
        for v in values
    ]
    return [p for p, _ in pairs], [t for _, t in pairs]


def _join(primal: Any, tangent: Any, level: Level) -> Any:
    if primal is None and tangent is not None:
        primal = F.zeros_like(innermost(tangent))
    return primal if primal is None else make_dual(primal, tangent, level)
