"""Scalar expressions: what a kernel computes for one element.

An operator's `lower` rule says how its result follows from its operands, element by element:

    @exp.lower
    def _(b, x):
        return b.exp(x)

`b` is a `ScalarBuilder`, x an `Expr`; Python's operators work on expressions too. Expressions are
shared: building the same one twice gives the same object, so that a kernel computes it once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..dim import Dim
from ..dtype import DType, bool_, float16, float32, int64
from .functions import FUNCTIONS, Scalar, named

Number = bool | int | float

LEAVES = frozenset(("const", "index", "load"))
PLACED = frozenset(("checked", "iota", "load_at", "random"))  # they depend on where the loops stand
CHEAP = named(lambda record: record.cheap) | {"const", "load"}


class Expr:
    """A scalar computed from others: a node of a kernel's expression graph.

    kind    one of FUNCTIONS, of LEAVES or PLACED, "carry" or "step" (in a scan), or "reduce"
    args    what it is computed from
    dtype   of its value
    data    the operand of a load, the value of a constant, the way of a reduction
    """

    __slots__ = ("args", "builder", "data", "dtype", "key", "kind")

    def __init__(
        self, builder: ScalarBuilder, kind: str, args: tuple[Expr, ...], dtype: DType, data: Any
    ) -> None:
        self.builder = builder
        self.kind = kind
        self.args = args
        self.dtype = dtype
        self.data = data

    def __add__(self, other: Any) -> Expr:
        return self.builder.binary("add", self, other)

    def __radd__(self, other: Any) -> Expr:
        return self.builder.binary("add", other, self)

    def __sub__(self, other: Any) -> Expr:
        return self.builder.binary("sub", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return self.builder.binary("sub", other, self)

    def __mul__(self, other: Any) -> Expr:
        return self.builder.binary("mul", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return self.builder.binary("mul", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return self.builder.binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return self.builder.binary("div", other, self)

    def __neg__(self) -> Expr:
        return self.builder.unary("neg", self)

    def __lt__(self, other: Any) -> Expr:
        return self.builder.compare("lt", self, other)

    def __le__(self, other: Any) -> Expr:
        return self.builder.compare("le", self, other)

    def __gt__(self, other: Any) -> Expr:
        return self.builder.compare("gt", self, other)

    def __ge__(self, other: Any) -> Expr:
        return self.builder.compare("ge", self, other)

    def __and__(self, other: Any) -> Expr:
        return self.builder.binary("and", self, other)

    def __or__(self, other: Any) -> Expr:
        return self.builder.binary("or", self, other)

    def __xor__(self, other: Any) -> Expr:
        return self.builder.binary("xor", self, other)

    def __invert__(self) -> Expr:
        return self.builder.unary("not", self)

    def __repr__(self) -> str:
        if self.kind in ("load", "const"):
            return f"{self.kind}({self.data!r})"
        return f"{self.kind}({', '.join(map(repr, self.args))})"


class ScalarBuilder:
    """Makes expressions, each of them once."""

    def __init__(self) -> None:
        self._known: dict[Any, Expr] = {}
        self.count = 1  # of the elements a reduction runs over, for the rule of a mean
        self.row: int | None = None  # how many elements a row has, if that is known
        self.result: DType = bool_  # the dtype of the result that a rule is asked for

    def make(self, kind: str, args: tuple[Expr, ...], dtype: DType, data: Any = None) -> Expr:
        """Return the expression of a kind on arguments."""
        key = (kind, tuple(map(id, args)), dtype, _hashable(data))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Expr(self, kind, args, dtype, data)
        return known

    # -- leaves ------------------------------------------------------------------------------------

    def load(self, operand: int, dtype: DType) -> Expr:
        """Return the element of an operand at the place of the loop."""
        return self.make("load", (), dtype, operand)

    def constant(self, value: Number | Dim, dtype: DType) -> Expr:
        """Return a constant, or a size that only a run knows."""
        if isinstance(value, Dim):
            return self.make("const", (), dtype, value)
        return self.make("const", (), dtype, np.dtype(dtype).type(value).item())

    def index(self) -> Expr:
        """Return the place of the element in its row."""
        # The one element of a row is the row: what is computed for rows has no places.
        return self.constant(0, int64) if self.row == 1 else self.make("index", (), int64)

    def picked(self, index: Expr, x: Any) -> Expr:
        """Return x at the place of the row that an index names, and zero elsewhere."""
        return self.select(self.eq(self.index(), self.cast(index, int64)), x, 0)

    def iota(self, number: int) -> Expr:
        """Return a sum of multiples of the loops' counters: an entry of the kernel's iotas."""
        return self.make("iota", (), int64, number)

    def load_at(
        self, operand: int, dtype: DType, offset: Expr | None, guard: Expr | None = None
    ) -> Expr:
        """Return the element so far behind an operand's place; zero where the guard is false."""
        args = tuple(x for x in (offset, guard) if x is not None)
        return self.make("load_at", args, dtype, (operand, offset is not None, guard is not None))

    def checked(
        self, index: Expr, size: int, flag: int | None, wraps: bool, ignored: int | None = None
    ) -> Expr:
        """Return an index within 0..size-1; one outside sets the flag operand and becomes 0.

        wraps     whether negative ones count from the end
        ignored   an index that becomes -1 instead
        """
        wide = self.cast(index, int64)
        return self.make("checked", (wide,), int64, (size, flag, wraps, ignored))

    def random(self, state: tuple[Expr, Expr, Expr], place: Expr, dtype: DType) -> Expr:
        """Return the lane at a place of the draw that a state names: 32 or 64 random bits."""
        return self.make("random", (*state, place), dtype)

    def bits(self, x: Expr, dtype: Any) -> Expr:
        """Return the same bits as a value of another dtype of that size."""
        wanted = np.dtype(dtype)
        return x if x.dtype == wanted else self.make("bits", (x,), wanted)

    def quotient(self, x: Expr, divisor: int) -> Expr:
        """Return an integer that is not negative divided by a positive constant."""
        return x if divisor == 1 else self.binary("quotient", x, divisor)

    def remainder(self, x: Expr, divisor: int) -> Expr:
        """Return what that division leaves."""
        return self.binary("remainder", x, divisor)

    def upper_product(self, x: Expr, factor: int) -> Expr:
        """Return the upper 64 bits of the product of two numbers of 64 bits."""
        return self.binary("upper_product", x, factor)

    def reduce(self, way: str, x: Expr) -> Expr:
        """Return a row reduced to one value: "sum", "max", "min" or "prod"."""
        return self.make("reduce", (x,), x.dtype, way)

    def number(self, rule: Callable[..., Any], *given: Any) -> Any:
        """Return a number that follows from attributes and the count."""
        return rule(*given)

    # -- operations --------------------------------------------------------------------------------

    def unary(self, kind: str, x: Expr) -> Expr:
        """Return a function of one value, of the same dtype."""
        return self.make(kind, (x,), x.dtype)

    def binary(self, kind: str, x: Any, y: Any) -> Expr:
        """Return a function of two values of one dtype; a number takes the other's."""
        a, b = self._pair(x, y)
        return self.make(kind, (a, b), a.dtype)

    def compare(self, kind: str, x: Any, y: Any) -> Expr:
        """Return a truth value: "lt", "le", "gt", "ge", "eq" or "ne"."""
        return self.make(kind, self._pair(x, y), bool_)

    def _pair(self, x: Any, y: Any) -> tuple[Expr, Expr]:
        x, y = getattr(x, "expr", x), getattr(y, "expr", y)  # a place is a number too
        if not isinstance(x, Expr):
            return self.constant(x, y.dtype), y
        if not isinstance(y, Expr):
            return x, self.constant(y, x.dtype)
        assert x.dtype == y.dtype, f"{x.dtype} meets {y.dtype}"
        return x, y

    def select(self, condition: Expr, yes: Any, no: Any) -> Expr:
        """Return one of two values."""
        a, b = self._pair(yes, no)
        return self.make("select", (condition, a, b), a.dtype)

    def rare(
        self, condition: Expr, formula: Callable[..., Expr], operands: Sequence[Expr], no: Expr
    ) -> Expr:
        """Return a formula of operands where a condition holds, which is seldom, else a value.

        In NumPy it is computed for those elements alone, of arrays of one axis.
        """
        return self.select(condition, formula(self, *operands), no)

    def cast(self, x: Expr, dtype: Any) -> Expr:
        """Return a value converted to a dtype."""
        wanted = np.dtype(dtype)
        return x if x.dtype == wanted else self.make("cast", (x,), wanted)

    def widened(self, x: Expr) -> Expr:
        """Return a value in the dtype in which it is computed: halves are, in float32."""
        return self.cast(x, computed_dtype(x.dtype))

    def eq(self, x: Any, y: Any) -> Expr:
        """Tell whether two values are equal."""
        return self.compare("eq", x, y)

    def ne(self, x: Any, y: Any) -> Expr:
        """Tell whether two values differ."""
        return self.compare("ne", x, y)

    def truth(self, x: Expr) -> Expr:
        """Tell whether a value is not zero."""
        return self.cast(x, bool_)

    def is_nan(self, x: Expr) -> Expr:
        """Tell whether a value is NaN."""
        return self.compare("ne", x, x)

    def sign(self, x: Expr) -> Expr:
        """Return -1, 0 or 1 by the sign of a value."""
        if x.dtype.kind == "f":
            return self.unary("sign", x)
        negative = -1 if x.dtype.kind == "i" else 0
        below = self.select(x < 0, self.constant(negative, x.dtype), 0)
        return self.select(x > 0, 1, below)

    def __getattr__(self, name: str) -> Any:
        """Return the builder of a function by its name: b.exp(x), b.maximum(x, y)."""
        record = FUNCTIONS.get(name)
        if record is None:
            raise AttributeError(f"scalar code has no function {name!r}")
        return partial(self.apply, record)

    def apply(self, record: Scalar, *operands: Any) -> Expr:
        """Return a scalar function of values."""
        if record.composed is not None:
            made: Expr = record.composed(self, *operands)
            return made
        if record.whole and operands[0].dtype.kind != "f":
            whole: Expr = operands[0]
            return whole
        return (self.unary if record.arity == 1 else self.binary)(record.name, *operands)


def computed_dtype(dtype: DType) -> DType:
    """Return the dtype in which values of a dtype are computed."""
    return float32 if dtype == float16 else dtype


def is_defined(expr: Expr) -> bool:
    """Tell whether there is code for an operation on the dtypes it meets."""
    kind = expr.kind
    if kind == "reduce":
        return expr.dtype.kind != "b" or expr.data in ("max", "min")
    record = FUNCTIONS.get(kind)
    return record is None or expr.args[0].dtype.kind in record.on


def _hashable(data: Any) -> Any:
    # 0.0 and -0.0 are equal keys, and NaN is no key of itself.
    return data.hex() if isinstance(data, float) else (type(data), data)


def postorder(roots: list[Expr]) -> list[Expr]:
    """Return expressions and all they depend on, arguments first, without recursion."""
    found: dict[int, Expr] = {}
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        expr, ready = stack.pop()
        if id(expr) in found:
            continue
        if ready:
            found[id(expr)] = expr
        else:
            stack.append((expr, True))
            stack.extend((arg, False) for arg in reversed(expr.args) if id(arg) not in found)
    return list(found.values())


def substituted(builder: ScalarBuilder, root: Expr, known: dict[Expr, Expr]) -> Expr:
    """Return an expression rebuilt by another builder, with some of its parts replaced."""
    made = dict(known)
    stack = [root]
    while stack:
        expr = stack[-1]
        missing = [a for a in expr.args if a not in made] if expr not in made else []
        if missing:
            stack.extend(missing)
            continue
        if expr not in made:
            args = tuple(made[a] for a in expr.args)
            made[expr] = builder.make(expr.kind, args, expr.dtype, expr.data)
        stack.pop()
    return made[root]
