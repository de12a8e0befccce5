"""Numerical stabilisation: the same function, computed where the plain way loses digits.

Every rule gives results at least as accurate, and NaN where the plain way has it because there is
no result. What changes besides rounding:

    overflow and underflow on the way disappear: log(exp(1000)) is 1000, not inf
    zeros get the sign of the exact function: log1p(-0.0) is -0.0, log(1 + -0.0) is 0.0

`sqrt(x) * sqrt(x)` is x only for x >= 0; it becomes NaN elsewhere without a root. Left alone are
forms whose usual replacement loses a NaN: `exp(log(x))` for x < 0, and `sqrt(x*x + y*y)` for an
infinity beside a NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..core.op import find_op
from ..graph.graph import Graph
from ..graph.node import Value
from .match import Match, Number, P, Rule, RuleTable, Var, rewrite
from .simplify import ONE

x, s, t = Var("x"), Var("s"), Var("t")
MINUS_ONE = Number(lambda n, dtype: n == -1)

_SUB, _MAX, _STOP = find_op("sub"), find_op("max"), find_op("stop_gradient")


def _log_softmax(m: Match) -> Value | None:
    """Return (x - max) - log(sum), in which both parts have one sign, so that nothing cancels.

    x - logsumexp(x) would round the sum at the size of the logits.
    """
    total = m.nodes["total"]
    over = shift_axes(m["s"])
    if over is None or total.attrs[:2] != over or m["s"].dtype != total.outputs[0].dtype:
        return None
    return m.make("sub", m["s"], m.make("log", total.outputs[0]))


def shift_axes(shifted: Value) -> tuple[object, ...] | None:
    """Return (axis, keepdims) of the maximum that was subtracted, None if there was none."""
    if shifted.node.op is not _SUB:
        return None
    start, top = shifted.node.inputs
    if top is None or start is None or top.node.op is not _MAX:
        return None
    (of,) = top.node.inputs
    if of is not None and of.node.op is _STOP:
        (of,) = of.node.inputs
    return top.node.attrs if of is _without_stop(start) or of is start else None


def _without_stop(value: Value) -> Value | None:
    return value.node.inputs[0] if value.node.op is _STOP else value


def _logsumexp(m: Match) -> Value | None:
    """Return logsumexp unless what is summed has its maximum taken off already."""
    axis, keepdims, _ = m.nodes["total"].attrs
    if shift_axes(m["x"]) is not None:
        return None
    return m.make("logsumexp", m["x"], attrs=(axis, keepdims))


def _softplus(m: Match) -> Value | None:
    return m.make("softplus", m["x"], attrs=(1.0, math.inf))


def _square_of_root(m: Match) -> Value | None:
    """Return x where it is >= 0 (0.0 for -0.0, whose root squared is 0.0), else NaN."""
    dtype = m["x"].dtype
    is_real = m.make("greater_equal", m["x"], m.number(0.0, dtype))
    return m.make("where", is_real, m.make("abs", m["x"]), m.number(math.nan, dtype))


RULES: tuple[Rule, ...] = (
    Rule("log(softmax(x))", P.log(P.div(P.exp(s), P.sum(P.exp(s)) @ "total")), _log_softmax),
    Rule("log(sum(exp(x)))", P.log(P.sum(P.exp(x)) @ "total"), _logsumexp),
    Rule("log(exp(x))", P.log(P.exp(x)), x),
    Rule("1 / (1 + exp(-x))", P.div(ONE, P.add(ONE, P.exp(P.neg(x)))), P.sigmoid(x)),
    Rule("reciprocal(1 + exp(-x))", P.reciprocal(P.add(ONE, P.exp(P.neg(x)))), P.sigmoid(x)),
    Rule("log(sigmoid(x))", P.log(P.sigmoid(x)), P.log_sigmoid(x)),
    Rule("log(1 - sigmoid(x))", P.log(P.sub(ONE, P.sigmoid(x))), P.log_sigmoid(P.neg(x))),
    Rule("log1p(-sigmoid(x))", P.log1p(P.neg(P.sigmoid(x))), P.log_sigmoid(P.neg(x))),
    Rule("log(1 + exp(x))", P.log(P.add(ONE, P.exp(x))), _softplus),
    Rule("log1p(exp(x))", P.log1p(P.exp(x)), _softplus),
    Rule("log(1 + x)", P.log(P.add(ONE, x)), P.log1p(x)),
    Rule("log(1 - x)", P.log(P.sub(ONE, x)), P.log1p(P.neg(x))),
    Rule("exp(x) - 1", P.sub(P.exp(x), ONE), P.expm1(x)),
    Rule("exp(x) + -1", P.add(P.exp(x), MINUS_ONE), P.expm1(x)),
    Rule("1 - exp(x)", P.sub(ONE, P.exp(x)), P.neg(P.expm1(x))),
    Rule("sqrt(x * x)", P.sqrt(P.mul(x, x)), P.abs(x)),
    Rule("sqrt(square(x))", P.sqrt(P.square(x)), P.abs(x)),
    Rule("square(sqrt(x))", P.square(P.sqrt(x)), _square_of_root),
    Rule("sqrt(x) * sqrt(x)", P.mul(P.sqrt(x), P.sqrt(x)), _square_of_root),
)

_TABLE = RuleTable(RULES)


def stabilize(graph: Graph, outputs: Sequence[Value] | None = None) -> Graph:
    """Return the graph with functions computed in their stable forms."""
    return rewrite(graph, outputs, _TABLE, stabilize)
