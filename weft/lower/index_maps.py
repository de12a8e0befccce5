"""Index maps: which elements of operands make an element; movement and indexing inside loops.

An operator's `place` rule says which elements of its operands an element of its result follows
from:

    @roll.place
    def _(b, x, shifts, axis):
        i = b.coordinates[0]
        ...
        return x.at(...)

`b` is `IndexMaps`: it knows the shape of the result and the coordinates of the element, and has all
functions of a `ScalarBuilder`. An operand is a `Source`: `x.at(i, j)` is one of its elements,
`x.here()` the one at the place of the result. Coordinates that are linear in the loops' counters
become strides, so that a flip or a window costs no more than a plain load; others are computed and
loaded from, element by element or row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..core.dim import raise_if_told
from ..core.dtype import Array, DType, int64
from ..core.scalar.builder import Expr, ScalarBuilder, is_defined, postorder
from ..core.shape import Shape, TensorType
from ..graph.node import Node, Value
from .remember import remembered
from .storage import Buffer, View, contiguous, contiguous_strides


class Check(NamedTuple):
    """Indices that are checked: where they lie, and what they must be."""

    view: View
    size: int
    wraps: bool
    ignored: int | None


class Loops(Protocol):
    """What a rule needs of the loop nest that it writes into."""

    builder: ScalarBuilder

    def iota(self, strides: tuple[int, ...]) -> Expr:
        """Return the sum of each loop's counter times its stride."""

    def load_from(self, view: View, offset: Expr | None, guard: Expr | None) -> Expr:
        """Return the element of a view of the loops' shape, moved on by an offset."""

    def load_here(self, value: Value) -> Expr:
        """Return the element of a value that broadcasts to the loops' shape."""

    def flag(self, check: Check | None) -> int | None:
        """Return the operand that takes the report of an index out of range.

        None if an earlier kernel has checked the same indices.
        """

    def table(self, array: Array) -> View:
        """Return where a constant array lies."""


class Affine:
    """A whole number that is linear in the coordinates of the element."""

    __slots__ = ("constant", "places", "strides")

    def __init__(self, places: IndexMaps, strides: tuple[int, ...], constant: int = 0) -> None:
        self.places = places
        self.strides = strides
        self.constant = constant

    @property
    def expr(self) -> Expr:
        """Return the number as an expression."""
        number = self.places.loops.iota(self.strides)
        return number + self.constant if self.constant else number

    def __add__(self, other: Any) -> Any:
        if isinstance(other, int):
            return Affine(self.places, self.strides, self.constant + other)
        if isinstance(other, Affine):
            strides = tuple(a + b for a, b in zip(self.strides, other.strides, strict=True))
            return Affine(self.places, strides, self.constant + other.constant)
        return self.expr + other

    __radd__ = __add__

    def __mul__(self, factor: int) -> Affine:
        strides = tuple(factor * s for s in self.strides)
        return Affine(self.places, strides, factor * self.constant)

    __rmul__ = __mul__

    def __neg__(self) -> Affine:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __lt__(self, other: Any) -> Expr:
        truth: Expr = self.expr < _plain(other)
        return truth

    def __le__(self, other: Any) -> Expr:
        truth: Expr = self.expr <= _plain(other)
        return truth

    def __gt__(self, other: Any) -> Expr:
        truth: Expr = self.expr > _plain(other)
        return truth

    def __ge__(self, other: Any) -> Expr:
        truth: Expr = self.expr >= _plain(other)
        return truth


Coordinate = int | Affine | Expr


def _plain(number: Any) -> Any:
    return number.expr if isinstance(number, Affine) else number


class Source:
    """An operand of a place rule."""

    def __init__(
        self,
        places: IndexMaps,
        value: Value | View,
        number: int,
        view_of: Callable[[Any], View | None],
    ) -> None:
        self.places = places
        self.value = value  # the view itself of a table
        self.number = number
        self.view_of = view_of
        self.shape: Shape = value.shape
        self.dtype: DType = value.dtype

    @property
    def ndim(self) -> int:
        """Return the number of its axes."""
        return len(self.shape)

    def here(self) -> Expr:
        """Return the element at the place of the result, where the shapes broadcast."""
        assert not isinstance(self.value, View)
        found: Expr = self.places.widened(self.places.loops.load_here(self.value))
        origin = self.view_of(self.value)
        if origin is not None:
            self.places.origins[id(found)] = origin
        return found

    def at(self, *places: Coordinate, where: Expr | None = None) -> Expr:
        """Return the element at a place; with `where`, zero elsewhere without looking there."""
        if not isinstance(self.value, View):
            self.places.stored.add(self.number)
        origin = self.view_of(self.value)
        assert origin is not None, self.value
        strides, offset = [0] * len(self.places.shape), origin.offset
        moved: Expr | None = None
        for place, stride in zip(places, origin.strides, strict=True):
            if isinstance(place, Expr):
                part = place * stride
                moved = part if moved is None else moved + part
            elif isinstance(place, int):
                offset += place * stride
            else:
                offset += place.constant * stride
                strides = [s + p * stride for s, p in zip(strides, place.strides, strict=True)]
        view = View(origin.buffer, self.places.shape, tuple(strides), offset)
        found: Expr = self.places.widened(self.places.loops.load_from(view, moved, where))
        self.places.origins[id(found)] = origin
        return found


class IndexMaps:
    """What a place rule is given beside its operands.

    shape         of the result
    coordinates   of the element, one for each axis
    stored        the numbers of the operands that must lie in memory
    """

    def __init__(self, loops: Loops, shape: Shape, result: DType) -> None:
        self.loops = loops
        self.shape = shape
        self.result = result
        self.stored: set[int] = set()
        self.origins: dict[int, View] = {}  # of loaded elements
        axes = range(len(shape))
        self.coordinates = [Affine(self, tuple(int(a == b) for b in axes)) for a in axes]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loops.builder, name)

    @property
    def flat(self) -> Affine:
        """Return the place of the element in the flattened result."""
        return Affine(self, contiguous_strides(self.shape))

    def table(self, array: Array) -> Source:
        """Return a constant array as an operand."""
        view = self.loops.table(np.ascontiguousarray(array))
        return Source(self, view, -1, lambda _: view)

    def number(self, place: Coordinate) -> Expr:
        """Return a place as an expression."""
        if isinstance(place, int):
            return self.loops.builder.constant(place, int64)
        return place.expr if isinstance(place, Affine) else place

    def both(self, a: Expr | None, b: Expr | None) -> Expr | None:
        """Return whether two truth values hold; None stands for one that always does."""
        if a is None or b is None:
            return b if a is None else a
        return a & b

    def inside(self, place: Coordinate, size: int) -> Expr:
        """Tell whether a place lies within an axis."""
        number = self.number(place)
        truth: Expr = (number >= 0) & (number < size)
        return truth

    def window_of(self, place: Affine, step: int, count: int) -> tuple[Coordinate, Expr]:
        """Return which of `count` windows, `step` apart, starts at a place; and if one does."""
        if step == 1:
            return place, self.inside(place, count)
        number = place.expr
        held = self.maximum(number, 0)
        window = self.quotient(held, step)
        starts = self.eq(self.remainder(held, step), 0)
        return window, (number >= 0) & (window < count) & starts

    def unravelled(self, flat: Expr, shape: Shape) -> list[Expr]:
        """Return the coordinates of a place in a flattened tensor."""
        places: list[Expr] = []
        for size in reversed(shape[1:]):
            places.append(self.remainder(flat, size))
            flat = self.quotient(flat, size)
        return [flat, *reversed(places)] if shape else []

    def index(self, x: Expr, size: int, *, wraps: bool = True, ignored: int | None = None) -> Expr:
        """Return an index into an axis, checked; negative ones may count from the end."""
        wraps = wraps and x.dtype.kind == "i"
        origin = self.origins.get(id(x))
        check = None if origin is None else Check(origin, size, wraps, ignored)
        flag = self.loops.flag(check)
        return self.loops.builder.checked(x, size, flag, wraps, ignored)


def mapped_expressions(
    node: Node, loops: Loops, view_of: Callable[[Any], View | None]
) -> tuple[list[Expr] | None, set[int]]:
    """Return what the place rule of a node gives, and which operands must lie in memory."""
    return _given(node.op, node.attrs, node.inputs, node.outputs, loops, view_of)


def _given(
    op: Any,
    attrs: tuple[Any, ...],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    loops: Loops,
    view_of: Callable[[Any], View | None],
) -> tuple[list[Expr] | None, set[int]]:
    places = IndexMaps(loops, outputs[0].shape, outputs[0].dtype)
    args: list[Any] = [
        None if x is None else Source(places, x, i, view_of) for i, x in enumerate(inputs)
    ]
    if op.variadic:
        fixed = len(op.inputs) - 1
        args = [*args[:fixed], args[fixed:]]
    made = op.place_rule(places, *args, *attrs)
    if made is None:
        return None, places.stored
    exprs = made if isinstance(made, tuple) else (made,)
    pairs = zip(exprs, outputs, strict=True)
    return [loops.builder.cast(expr, value.dtype) for expr, value in pairs], places.stored


class _Trial:
    """Loops for a rule that is only asked what it would give."""

    def __init__(self) -> None:
        self.builder = ScalarBuilder()
        self._numbers: dict[Any, int] = {}

    def _number(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def iota(self, strides: tuple[int, ...]) -> Expr:
        return self.builder.iota(self._number(strides))

    def load_from(self, view: View, offset: Expr | None, guard: Expr | None) -> Expr:
        number = self._number((view.buffer, view.strides, view.offset))
        return self.builder.load_at(number, view.dtype, offset, guard)

    def load_here(self, value: Value) -> Expr:
        return self.builder.load(self._number(value), value.dtype)

    def flag(self, check: Check | None) -> int | None:
        return 0

    def table(self, array: Array) -> View:
        return contiguous(Buffer("trial", array.shape, array.dtype, "table"), array.shape)


def stored_operands(node: Node) -> frozenset[int] | None:
    """Return the operands that a place rule needs in memory; None if it gives no code."""
    if getattr(node.op, "place_rule", None) is None:
        return None
    inputs = tuple(None if x is None else x.type for x in node.inputs)
    outputs = tuple(value.type for value in node.outputs)
    if len({t.shape for t in outputs}) != 1:
        return None
    return _tried(node.op, node.attrs, inputs, outputs)


@remembered
def _tried(
    op: Any,
    attrs: tuple[Any, ...],
    inputs: tuple[TensorType | None, ...],
    outputs: tuple[TensorType, ...],
) -> frozenset[int] | None:
    try:
        exprs, stored = _given(op, attrs, inputs, outputs, _Trial(), _somewhere)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise_if_told(error)  # else the reference kernel says what is wrong
        return None
    if exprs is None or not all(map(is_defined, postorder(exprs))):
        return None
    return frozenset(stored)


def stored_values(node: Node) -> list[Value]:
    """Return the values that a node with a place rule needs in memory."""
    numbers = stored_operands(node) or ()
    return [x for i, x in enumerate(node.inputs) if i in numbers and x is not None]


def has_plain_rows(domain: Shape, split: int | None) -> bool:
    """Tell whether the row of a loop nest is one axis, so that coordinates are linear along it."""
    return split is None or sum(size != 1 for size in domain[split:]) <= 1


def _somewhere(type: TensorType) -> View:
    return contiguous(Buffer("trial", type.shape, type.dtype, ""), type.shape)
