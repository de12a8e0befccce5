"""Write scalar expressions as straight-line NumPy source.

Each expression becomes one line: an operator where Python has one, else a call. A temporary that
nothing else needs takes the result (`t0 *= c0`) where shapes and dtypes allow it. Constants are
arrays of no axes, which NumPy takes in half the time that Python's numbers need; after reductions,
whose results often are NumPy's scalars, they are such scalars.

Values are full (of the operands' shape) or per row (what a reduction leaves). Rows keep their
reduced axes (`kept`) where they meet full values; the result does as the operator's keepdims says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import copysign
from typing import Any, NamedTuple

import numpy as np

from ..sums import sum_array
from .arrays import on_arrays
from .attributes import Attribute
from .builder import Expr, ScalarBuilder, postorder
from .functions import FUNCTIONS, Scalar

OPERATORS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "and": "&",
    "or": "|",
    "xor": "^",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
    "shift_left": "<<",
    "shift_right": ">>",
}
SIGNS = {"neg": "-", "not": "~"}
IN_PLACE = frozenset(("add", "sub", "mul", "div", "and", "or", "xor"))
COMMUTATIVE = IN_PLACE - {"sub", "div"}
REDUCTIONS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
IDENTITIES = {"max": -np.inf, "min": np.inf}


class NumpyBuilder(ScalarBuilder):
    """Makes expressions for NumPy: attributes may stay parameters, some functions become steps."""

    def __init__(self) -> None:
        super().__init__()
        self.rules: dict[str, Any] = {}  # of numbers

    def constant(self, value: Any, dtype: Any) -> Expr:
        """Return a constant, or an attribute in its place."""
        if isinstance(value, Attribute):
            return self.make("attribute", (), dtype, value.text)
        return super().constant(value, dtype)

    def number(self, rule: Callable[..., Any], *given: Any) -> Any:
        """Return a number that follows from attributes when the kernel runs."""
        texts = [x.text if isinstance(x, Attribute) else repr(x) for x in given]
        return Attribute(f"{self._named(rule, rule)}({', '.join(texts)})", None, set())

    def rare(
        self, condition: Expr, formula: Callable[..., Expr], operands: Sequence[Expr], no: Expr
    ) -> Expr:
        """Return a formula of operands where a condition holds, which is seldom, else a value."""
        name = self._named(formula, on_arrays(formula))
        return self.make("rare", (condition, no, *operands), no.dtype, name)

    def _named(self, rule: Callable[..., Any], function: Callable[..., Any]) -> str:
        """Return the name under which the source calls a function."""
        name = rule.__name__ if rule.__name__.isidentifier() else "rule"
        if self.rules.get(name, function) is not function:
            name = f"{name}_{len(self.rules)}"
        self.rules[name] = function
        return name

    def sign(self, x: Expr) -> Expr:
        """Return -1, 0 or 1 by the sign of a value."""
        return self.unary("sign", x)

    def apply(self, record: Scalar, *operands: Any) -> Expr:
        """Return a scalar function of values."""
        if record.steps is not None:
            made: Expr = record.steps(self, *operands)
            return made
        return super().apply(record._replace(composed=None), *operands)


class Numbers(dict[Any, Any]):
    """Numbers of a dtype by value, as arrays of no axes or as NumPy's scalars."""

    MOST = 1024

    def __init__(self, dtype: Any, scalars: bool) -> None:
        self.dtype = dtype
        self.scalars = scalars
        self.zeros = {sign: self._made(sign * 0.0) for sign in (1.0, -1.0)}

    def _made(self, number: Any) -> Any:
        made = np.array(number).astype(self.dtype)
        return made[()] if self.scalars else made

    def __missing__(self, number: Any) -> Any:
        if number == 0:  # 0.0 and -0.0 are equal keys
            return self.zeros[copysign(1.0, number)]
        made = self._made(number)
        if len(self) < self.MOST:
            self[number] = made
        return made


@cache
def numbers_of(dtype: Any, scalars: bool) -> Numbers:
    """Return the numbers of a dtype."""
    return Numbers(dtype, scalars)


class Level(NamedTuple):
    """The operands whose shape a value has, in full and per row."""

    full: frozenset[int] = frozenset()
    rows: frozenset[int] = frozenset()

    def joined(self, other: Level) -> Level:
        """Return the level of a value that follows from two."""
        return Level(self.full | other.full, self.rows | other.rows)

    def holds(self, other: Level) -> bool:
        """Tell whether values of another level broadcast to the shape of this one."""
        return other.full <= self.full and other.rows <= self.full | self.rows

    @property
    def is_row(self) -> bool:
        """Tell whether a value is per row."""
        return bool(self.rows) and not self.full


def _absorbs(expr: Expr, arg: Expr) -> bool:
    """Tell whether a reduction converts integers by itself."""
    exact = arg.kind == "cast" and arg.dtype.kind in "iu" and arg.args[0].dtype.kind in "biu"
    return expr.kind == "reduce" and expr.data in ("sum", "prod") and exact


class ExpressionSource:
    """The lines that compute an expression, and the names they use."""

    def __init__(
        self, parameters: Sequence[str], root: Expr, *, alone: bool = False, axes: bool = False
    ) -> None:
        self.alone = alone  # nothing but NumPy is there
        self.axes = axes  # operands have axes: results are no scalars, and can be written over
        self.parameters = parameters
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {}
        self.count = self.constants = 0
        self.owned: set[str] = set()  # temporaries that share memory with nothing
        self.names: dict[tuple[int, bool], str] = {}  # by expression and whether axes are kept
        self.order = postorder([root])
        self.absorbed = {arg for expr in self.order for arg in expr.args if _absorbs(expr, arg)}
        self.reduces = any(expr.kind == "reduce" for expr in self.order)
        self.levels: dict[int, Level] = {}
        for expr in self.order:
            self.levels[id(expr)] = self._level(expr)
        self.needed = self._needed(root)
        self.uses = self._uses()
        for expr in self.order:
            for kept in sorted(self.needed[id(expr)], reverse=True):
                self._write(expr, kept)
        self.result = self._result(root)

    # -- what is needed ----------------------------------------------------------------------------

    def _level(self, expr: Expr) -> Level:
        if expr.kind == "load":
            return Level(frozenset((expr.data,)))
        found = Level()
        for arg in expr.args:
            found = found.joined(self.levels[id(arg)])
        if expr.kind == "reduce":
            return Level(rows=found.full | found.rows)
        return found

    def _needed(self, root: Expr) -> dict[int, set[bool]]:
        """Return in which forms expressions are needed: with reduced axes kept, or as the result.

        A full value has one form, which counts as kept.
        """
        needed: dict[int, set[bool]] = {id(root): {not self.levels[id(root)].is_row}}
        for expr in reversed(self.order):
            kept = True in needed[id(expr)] or expr.kind == "reduce"
            for arg in expr.args:
                needed.setdefault(id(arg), set()).add(kept or not self.levels[id(arg)].is_row)
        return needed

    def _uses(self) -> dict[tuple[int, bool], int]:
        uses: dict[tuple[int, bool], int] = {}
        for expr in self.order:
            kept = True in self.needed[id(expr)] or expr.kind == "reduce"
            for arg in expr.args:
                key = self._key(arg, kept)
                uses[key] = uses.get(key, 0) + 1
        return uses

    def _key(self, expr: Expr, kept: bool) -> tuple[int, bool]:
        return id(expr), kept or not self.levels[id(expr)].is_row

    # -- lines -------------------------------------------------------------------------------------

    def _write(self, expr: Expr, kept: bool) -> None:
        if kept or True not in self.needed[id(expr)]:
            self.names[self._key(expr, kept)] = self._value(expr, kept)
            return
        whole = self.names[id(expr), True]
        self.owned.discard(whole)  # the other form shares its memory
        self.names[id(expr), False] = self._new(f"{whole} if keepdims else {whole}.squeeze(axis)")

    def _value(self, expr: Expr, kept: bool) -> str:
        if expr.kind == "load":
            return str(self.parameters[expr.data])
        if expr.kind == "const":
            return self._constant(expr)
        if expr.kind == "attribute":
            return self._attribute(expr)
        if expr.kind == "reduce":
            return self._reduced(expr, kept)
        if expr in self.absorbed:  # NumPy converts while it adds up
            return self._taken(expr.args[0], kept)
        args = [self._taken(arg, kept) for arg in expr.args]
        return self._overwritten(expr, args, kept) or self._computed(expr, args)

    def _taken(self, arg: Expr, kept: bool) -> str:
        key = self._key(arg, kept)
        self.uses[key] -= 1
        return self.names[key]

    def _overwritten(self, expr: Expr, args: list[str], kept: bool) -> str | None:
        """Write the result over an operand that nobody needs again; None if there is none."""
        function = FUNCTIONS[expr.kind].numpy if expr.kind in FUNCTIONS else None
        if not (self.axes and isinstance(function, np.ufunc)) and expr.kind not in IN_PLACE:
            return None
        for place, (name, arg) in enumerate(zip(args, expr.args, strict=True)):
            free = not self.uses[self._key(arg, kept)] and name in self.owned
            fits = all(self.levels[id(arg)].holds(self.levels[id(x)]) for x in expr.args)
            if free and fits and arg.dtype == expr.dtype:
                if place == 0 and expr.kind in IN_PLACE:
                    self.lines.append(f"{name} {OPERATORS[expr.kind]}= {args[1]}")
                elif self.axes:
                    self.lines.append(f"{self._bound(function)}({', '.join(args)}, out={name})")
                elif expr.kind in COMMUTATIVE:
                    self.lines.append(f"{name} {OPERATORS[expr.kind]}= {args[0]}")
                else:
                    continue
                return name
        return None

    def _computed(self, expr: Expr, args: list[str]) -> str:
        kind = expr.kind
        if kind in OPERATORS:
            return self._own(f"{args[0]} {OPERATORS[kind]} {args[1]}")
        if kind in SIGNS:
            return self._own(f"{SIGNS[kind]}{args[0]}")
        if kind == "cast":
            return self._own(f"{args[0]}.astype({self._dtype(expr.dtype)})")
        if kind == "rare":
            return self._replaced(expr, *args)
        if kind == "bits":  # shares its operand's memory
            self.owned.discard(args[0])
            return self._new(f"{args[0]}.view({self._dtype(expr.dtype)})")
        function = self._bound(FUNCTIONS[kind].numpy)
        return self._own(f"{function}({', '.join(args)})")

    def _replaced(self, expr: Expr, condition: str, name: str, *operands: str) -> str:
        """Write the elements of a rare case over those of the usual one."""
        if name not in self.owned or self.uses[self._key(expr.args[1], True)]:
            name = self._own(f"{name}.copy()")
        chosen = self._new(f"{self._bound(np.flatnonzero)}({condition})")
        given = ", ".join(f"{x}[{chosen}]" for x in operands)
        self.lines += [f"if {chosen}.size:", f"    {name}[{chosen}] = {expr.data}({given})"]
        return name

    def _reduced(self, expr: Expr, kept: bool) -> str:
        (arg,) = expr.args
        taken, way = self._taken(arg, True), expr.data
        keepdims = "True" if kept else "keepdims"
        if way == "sum" and arg.dtype.kind == "f":
            return self._own(f"{self._bound(sum_array)}({taken}, axis, {keepdims})")
        options = f"axis=axis, keepdims={keepdims}"
        if way in ("sum", "prod"):
            options += f", dtype={self._dtype(expr.dtype)}"
        elif expr is not self.order[-1]:  # as a result, an extremum of none is refused
            self.scope["inf"] = np.inf
            options += f", initial={IDENTITIES[way]}"
        return self._own(f"{self._bound(REDUCTIONS[way])}.reduce({taken}, {options})")

    def _result(self, root: Expr) -> str:
        name = self.names[self._key(root, False)]
        return name if name in self.owned else f"{name}.copy()"

    # -- names -------------------------------------------------------------------------------------

    def _new(self, text: str) -> str:
        name = f"t{self.count}"
        self.count += 1
        self.lines.append(f"{name} = {text}")
        return name

    def _own(self, text: str) -> str:
        name = self._new(text)
        self.owned.add(name)
        return name

    def _constant(self, expr: Expr) -> str:
        value = np.array(expr.data, expr.dtype)
        value.flags.writeable = False
        value = value[()] if self.reduces else value
        name = f"c{self.constants}"
        self.constants += 1
        self.scope[name] = value
        return name

    def _attribute(self, expr: Expr) -> str:
        if self.alone:
            return self._new(f"{self._dtype(expr.dtype)}.type({expr.data})")
        numbers = self._named(f"numbers_{expr.dtype.name}", numbers_of(expr.dtype, self.reduces))
        return self._new(f"{numbers}[{expr.data}]")

    def _dtype(self, dtype: Any) -> str:
        return self._named(dtype.name, dtype)

    def _bound(self, function: Any) -> str:
        return self._named(function.__name__, function)

    def _named(self, name: str, value: Any) -> str:
        self.scope[name] = value
        return name
