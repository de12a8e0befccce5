"""Algebraic simplification: rules that leave every bit of every result as it is.

That excludes much that is true of real numbers: x + 0.0 is not x (it turns -0.0 into 0.0), x * 0 is
not 0 (it may be NaN, or -0.0). Rules about values all of whose elements are one number (ONE and
the like) also see through `ones_like`, `broadcast_to` and their kind.

A rule may leave out a copy, so that an array lies otherwise in memory. NumPy adds in the order of
memory, so that a sum of floats further on may then be rounded differently; values never differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..core.dtype import bool_, is_float, is_integer
from ..graph.graph import Graph
from ..graph.node import Value
from ..graph.special import CONSTANT
from .cse import exactly
from .match import Call, Match, Number, P, Rule, RuleTable, Var, rewrite

w, x, y = Var("w"), Var("x"), Var("y")
ONE = Number(lambda n, dtype: n == 1)
TRUE = Number(lambda n, dtype: n != 0)
FALSE = Number(lambda n, dtype: n == 0)
NO_SUMMAND = Number(lambda n, dtype: n == 0 and (not is_float(dtype) or math.copysign(1, n) < 0))
NO_SUBTRAHEND = Number(lambda n, dtype: n == 0 and (not is_float(dtype) or math.copysign(1, n) > 0))
LOWEST = Number(lambda n, dtype: n == -math.inf)
HIGHEST = Number(lambda n, dtype: n == math.inf)


# -- conditions and replacements that need the attributes -----------------------------------------


def _same_attrs(m: Match) -> Value | None:
    """Keep the inner of two applications of an operator that changes nothing the second time."""
    inner = m.nodes["inner"]
    return inner.outputs[0] if exactly(inner.attrs) == exactly(m.root.attrs) else None


def _inner(m: Match) -> Value | None:
    return m.nodes["inner"].outputs[0]


def _compose_axes(m: Match) -> Value | None:
    (outer,), (inner,) = m.root.attrs, m.nodes["inner"].attrs
    return m.make("permute", m["x"], attrs=(tuple(inner[axis] for axis in outer),))


def _unmoved(m: Match) -> Value | None:
    (axes,) = m.root.attrs
    return m["x"] if axes == tuple(range(len(axes))) else None


def _relabel(m: Match) -> Value | None:
    """Give elements whose order two operations keep their last shape at once."""
    inner, made = m["x"].node, m.root.outputs[0]
    if not inner.op.reshapes:
        return None
    (source,) = inner.inputs
    assert source is not None
    return source if made.shape == source.shape else m.make("reshape", source, attrs=(made.shape,))


def _broadcast_at_once(m: Match) -> Value | None:
    return m.make("broadcast_to", m["x"], attrs=m.root.attrs)


def _flipped_back(m: Match) -> Value | None:
    return m["x"] if m.root.attrs == m.nodes["inner"].attrs else None


def _whole(m: Match) -> Value | None:
    """Match slices of step 1: that leave the shape as it is only if they take everything."""
    (spec,) = m.root.attrs
    plain = all(i is ... or (i.__class__ is tuple and i[2] in (None, 1)) for i in spec)
    return m["x"] if plain else None


def _not_padded(m: Match) -> Value | None:
    widths = m.root.attrs[0]
    return m["x"] if all(pair == (0, 0) for pair in widths) else None


def _over_no_axes(m: Match) -> Value | None:
    return m["x"] if m.root.attrs[0] == () else None


def _integers_over_no_axes(m: Match) -> Value | None:
    return None if is_float(m["x"].dtype) else _over_no_axes(m)  # a sum of -0.0 alone is 0.0


def _integers(m: Match) -> Value | None:
    return None if is_float(m["x"].dtype) else m["x"]


def _cast_at_once(m: Match) -> Value | None:
    """Leave out a cast to a dtype that holds every value of the first."""
    start, between, end = m["x"].dtype, m.nodes["inner"].attrs[0], m.root.attrs[0]
    if not holds(between, start):
        return None
    # Floats that an integer cannot hold become one the machine chooses, by the type of the float.
    if is_float(between) and is_integer(end) and start not in (end, bool_):
        return None
    return m.make("cast", m["x"], attrs=(end,))


def holds(wide: Any, narrow: Any) -> bool:
    """Tell whether a dtype has every value of another."""
    if narrow in (wide, bool_):
        return True
    if not is_float(wide):
        return not is_float(narrow) and wide != bool_ and bool(np.can_cast(narrow, wide, "safe"))
    if is_float(narrow):
        return bool(narrow.itemsize < wide.itemsize)
    digits: int = narrow.itemsize * 8 - (narrow.kind == "i")
    return digits <= _DIGITS[wide.name]


_DIGITS = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}  # of the significand


def _power_rule(exponent: float, name: str) -> Rule:
    """Return the rule for an exponent that the kernel of pow treats so itself."""

    def result(m: Match) -> Value | None:
        base, power = m["x"], m["y"]
        scalar = power.shape == () and is_float(base.dtype) and m.numbers.get(power) == exponent
        return m.make(name, base) if scalar else None

    return Rule(f"x ** {exponent:g} = {name}(x)", P.pow(x, y), result)


def _regroup(name: str) -> Rule:
    """Return the rule that brings two constants of integer arithmetic together."""

    def result(m: Match) -> Value | None:
        both = m["w"].node.op is CONSTANT and m["y"].node.op is CONSTANT
        if not both or is_float(m["x"].dtype) or m["x"].node.op is CONSTANT:
            return None
        return m.make(name, m["x"], m.make(name, m["w"], m["y"]))

    call = getattr(P, name)
    return Rule(f"{name} of integers: two constants", call(call(x, w), y), result)


# -- the rules -------------------------------------------------------------------------------------


def rules_of_facts(op: Any) -> Iterator[Rule]:
    """Yield the rules that follow from what an operator states of itself."""
    name, laws, operands = op.name, op.laws, len(op.inputs)
    twice = Call(op, (Call(op, (x,), "inner"),))
    if "involution" in laws:
        yield Rule(f"{name}({name}(x)) = x", twice, x)
    if "idempotent" in laws and operands == 1:
        yield Rule(f"{name}({name}(x)) = {name}(x)", twice, _same_attrs)
    if "idempotent" in laws and operands == 2:
        yield Rule(f"{name}(x, x)", Call(op, (x, x)), x)
        if "associative" in laws:
            again = Call(op, (x, Call(op, (x, y), "inner")))
            yield Rule(f"{name}(x, {name}(x, y))", again, _inner)
    if op.reshapes:
        yield Rule(f"{name} of another shape", Call(op, (x,)), _relabel)


RULES: tuple[Rule, ...] = (
    # arithmetic
    Rule("x * 1", P.mul(x, ONE), x),
    Rule("x / 1", P.div(x, ONE), x),
    Rule("x ** 1", P.pow(x, ONE), x),
    Rule("x + -0.0, x + 0 of integers", P.add(x, NO_SUMMAND), x),
    Rule("x - 0", P.sub(x, NO_SUBTRAHEND), x),
    Rule("abs(-x)", P.abs(P.neg(x)), P.abs(x)),
    Rule("max(x, -inf)", P.maximum(x, LOWEST), x),
    Rule("max(-inf, x)", P.maximum(LOWEST, x), x),
    Rule("min(x, inf)", P.minimum(x, HIGHEST), x),
    Rule("min(inf, x)", P.minimum(HIGHEST, x), x),
    _power_rule(2.0, "square"),
    _power_rule(0.5, "sqrt"),
    _power_rule(-1.0, "reciprocal"),
    _regroup("add"),
    _regroup("mul"),
    # truth values and choices
    Rule("x and True", P.logical_and(x, TRUE), x),
    Rule("x or False", P.logical_or(x, FALSE), x),
    Rule("x xor False", P.logical_xor(x, FALSE), x),
    Rule("where(c, x, x)", P.where(w, x, x), x),
    Rule("where(True, x, y)", P.where(TRUE, x, y), x),
    Rule("where(False, x, y)", P.where(FALSE, x, y), y),
    # conversions and copies
    Rule("cast to the same dtype", P.cast(x), x),
    Rule("cast of an exact cast", P.cast(P.cast(x) @ "inner"), _cast_at_once),
    Rule("copy", P.positive(x), x),
    Rule("stop_gradient twice", P.stop_gradient(P.stop_gradient(x) @ "inner"), _inner),
    # movement
    Rule("axes in their order", P.permute(x), _unmoved),
    Rule("permute of permute", P.permute(P.permute(x) @ "inner"), _compose_axes),
    Rule("reshape to the same shape", P.reshape(x), x),
    Rule("broadcast to the same shape", P.broadcast_to(x), x),
    Rule("broadcast of broadcast", P.broadcast_to(P.broadcast_to(x)), _broadcast_at_once),
    Rule("flip back", P.flip(P.flip(x) @ "inner"), _flipped_back),
    Rule("x[:]", P.getitem(x), _whole),
    Rule("pad by nothing", P.pad(x), _not_padded),
    Rule("concat of one", P.concat(x), x),
    # reductions over nothing
    Rule("max over no axes", P.max(x), _over_no_axes),
    Rule("min over no axes", P.min(x), _over_no_axes),
    Rule("prod over no axes", P.prod(x), _over_no_axes),
    Rule("any over no axes", P.any(x), _over_no_axes),
    Rule("all over no axes", P.all(x), _over_no_axes),
    Rule("sum of integers over no axes", P.sum(x), _integers_over_no_axes),
    Rule("sum_to of integers to the same shape", P.sum_to(x), _integers),
)

# Once derivatives are taken, what only steers them is the identity.
LAST_RULES: tuple[Rule, ...] = (Rule("stop_gradient", P.stop_gradient(x), x),)

_TABLE = RuleTable(RULES, rules_of_facts)
_LAST_TABLE = RuleTable((*LAST_RULES, *RULES), rules_of_facts)


def simplify(graph: Graph, outputs: Sequence[Value] | None = None) -> Graph:
    """Return the graph with the rules above applied wherever they can be."""
    return rewrite(graph, outputs, _TABLE, simplify)


def simplify_finally(graph: Graph, outputs: Sequence[Value] | None = None) -> Graph:
    """Simplify a graph of which no derivative will be taken."""
    return rewrite(graph, outputs, _LAST_TABLE, simplify_finally)
