"""Expressions over the turns of a kernel's loops, all turns at once.

The value of an expression is an array that broadcasts to the sizes of the loops: it has one element
along a loop that it does not depend on. What is computed for rows has one along the last loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.dtype import float16, float32
from ...core.rng import philox_blocks
from ...core.scalar.builder import Expr
from ...core.scalar.functions import FUNCTIONS
from ...core.shape import size_of
from ...lower.kernels import Operand
from .memory import Array, Memory

BLOCK_BYTES = 32  # of the random generator
COMBINE: dict[str, Any] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


class Elements:
    """The elements of a kernel.

    loops      sizes of the loops
    operands   what loads refer to
    iotas      for each number that is linear in the loops' counters, what a turn of each loop adds
    known      values of expressions that are not to be computed, by their identity
    """

    def __init__(
        self,
        memory: Memory,
        loops: Sequence[int],
        operands: Sequence[Operand],
        iotas: Sequence[Sequence[int]] = (),
        known: Mapping[int, Any] | None = None,
    ) -> None:
        self.memory = memory
        self.loops = tuple(loops)
        self.operands = operands
        self.iotas = iotas
        self._values: dict[int, Any] = dict(known or {})

    def values(self, roots: Sequence[Expr]) -> list[Array]:
        """Return the values of expressions, as arrays of their own."""
        stack = list(roots)
        while stack:
            expr = stack[-1]
            missing = [arg for arg in expr.args if id(arg) not in self._values]
            if id(expr) in self._values:
                stack.pop()
            elif missing:
                stack.extend(missing)
            else:
                self._values[id(expr)] = self._value(expr)
        return [np.array(self._values[id(root)]) for root in roots]

    def spread(self, *roots: Expr) -> list[Array]:
        """Return the values of expressions for each turn of the loops."""
        return [np.broadcast_to(value, self.loops) for value in self.values(roots)]

    def _value(self, expr: Expr) -> Any:
        args = [self._values[id(arg)] for arg in expr.args]
        special = _SPECIAL.get(expr.kind)
        if special is not None:
            return special(self, expr, *args)
        return apply(expr, args)

    # -- what depends on where the loops stand -----------------------------------------------------

    def counted(self, strides: Sequence[int]) -> Array:
        """Return the sum of each loop's counter times a stride."""
        total: Array = np.zeros((1,) * len(self.loops), np.int64)
        for axis, stride in enumerate(strides):
            counter = np.arange(self.loops[axis] if stride else 1, dtype=np.int64)
            shape = [-1 if a == axis else 1 for a in range(len(self.loops))]
            total = total + stride * counter.reshape(shape)
        return total

    def _load(self, expr: Expr) -> Array:
        view, strides = self.operands[expr.data].view, self.operands[expr.data].strides
        turns = [size if stride else 1 for size, stride in zip(self.loops, strides, strict=True)]
        return self.memory.strided(view, turns, strides)

    def _load_at(self, expr: Expr, *args: Any) -> Array:
        """Return elements so far behind the loops' place; zero where the guard is false."""
        number, has_offset, has_guard = expr.data
        given = list(args)
        offset = given.pop(0) if has_offset else 0
        guard = given.pop(0) if has_guard else True
        operand = self.operands[number]
        offsets, there = np.broadcast_arrays(self.counted(operand.strides) + offset, guard)
        flat, places = self.memory.places(operand.view, offsets[there])
        found = np.zeros(there.shape, flat.dtype)
        found[there] = flat[places]
        return found

    def _checked(self, expr: Expr, index: Any) -> Array:
        """Return an index within its axis; one outside is reported and becomes 0."""
        size, flag, wraps, ignored = expr.data
        place = np.where(index < 0, index + size, index) if wraps else index
        skipped = False if ignored is None else index == ignored
        wrong = ((place < 0) | (place >= size)) & ~np.asarray(skipped)
        if flag is not None and np.broadcast_to(wrong, self.loops).any():
            self.memory.strided(self.operands[flag].view, (), ())[...] = 1
        return np.where(skipped, -1, np.where(wrong, 0, place))

    def _random(self, expr: Expr, low: Any, high: Any, counter: Any, place: Any) -> Array:
        """Return lanes of a draw: places count them, so many to a block of the generator."""
        if not place.size:
            return np.zeros(place.shape, expr.dtype)
        key = int(np.ravel(low)[0]) | int(np.ravel(high)[0]) << 64
        per_block = BLOCK_BYTES // expr.dtype.itemsize
        blocks, lanes = np.divmod(place, per_block)
        counters = np.ravel(counter)[0] + blocks.astype(np.uint64)
        words = philox_blocks(key, counters).view(expr.dtype)
        return np.take_along_axis(words, lanes[..., None], axis=-1)[..., 0]

    def _reduce(self, expr: Expr, x: Any) -> Array:
        row = np.broadcast_to(x, (*np.shape(x)[:-1], self.loops[-1]))
        return reduced(expr.data, row, (-1,), keepdims=True)


def apply(expr: Expr, args: Sequence[Any]) -> Any:
    """Return a scalar function of values; that of halves is computed in float32."""
    function = FUNCTIONS[expr.kind].numpy
    if all(arg.dtype != float16 for arg in expr.args):
        return function(*args)
    wide = [np.asarray(x, float32) if x.dtype == float16 else x for x in args]
    return np.asarray(function(*wide)).astype(expr.dtype)


def reduced(way: str, x: Array, axes: tuple[int, ...], *, keepdims: bool = False) -> Array:
    """Return an array with some axes combined, sums in pairs so that errors do not add up."""
    if not axes:
        return x
    kept = [a for a in range(x.ndim) if a - x.ndim not in axes and a not in axes]
    gone = [a for a in range(x.ndim) if a not in kept]
    rows = np.ascontiguousarray(x.transpose([*kept, *gone]))
    rows = rows.reshape([*(x.shape[a] for a in kept), size_of(x.shape[a] for a in gone)])
    found = COMBINE[way].reduce(rows, -1, dtype=x.dtype, initial=neutral(way, x.dtype))
    return np.expand_dims(found, gone) if keepdims else found


def neutral(way: str, dtype: np.dtype[Any]) -> Any:
    """Return the value that changes nothing in a reduction."""
    if way in ("sum", "prod"):
        return dtype.type(way == "prod")
    if dtype.kind == "f":
        return dtype.type(-np.inf if way == "max" else np.inf)
    if dtype.kind == "b":
        return way == "min"
    limits = np.iinfo(dtype)
    return limits.min if way == "max" else limits.max


_SPECIAL: dict[str, Callable[..., Any]] = {
    "const": lambda e, expr: expr.dtype.type(expr.data),
    "load": Elements._load,
    "bits": lambda e, expr, x: np.asarray(x).view(expr.dtype),
    "cast": lambda e, expr, x: np.asarray(x).astype(expr.dtype),
    "index": lambda e, expr: np.arange(e.loops[-1], dtype=np.int64),
    "iota": lambda e, expr: e.counted(e.iotas[expr.data]),
    "load_at": Elements._load_at,
    "checked": Elements._checked,
    "random": Elements._random,
    "reduce": Elements._reduce,
}
