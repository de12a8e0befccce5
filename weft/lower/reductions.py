"""Take reductions apart into those that loops do well: along the last axes, and along the first.

A sum over axes 0, 2 and 3 is one over the last two and then one over the first; a sum over all
axes one along rows, which joins whatever else is done row by row, and then one of the rows' sums.
A variance over other axes than the last is computed by its definition, operator by operator.
Shares of a softmax are products with the inverse of their sum, which every element would else be
divided by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

from ..core.dtype import DType
from ..core.op import reduction
from ..core.scalar.builder import computed_dtype
from ..core.shape import Shape, size_of
from ..graph.graph import Graph
from ..graph.node import Value
from ..graph.special import SOURCES
from ..passes.match import Call, Match, P, Rule, RuleTable, Var, rewrite
from ..passes.stabilize import shift_axes
from .kinds import DTYPES, reduced_axes

LEAST_ROW = 64  # elements that are worth a row of their own
LEAST_ROWS = 2
STREAMS = 4
STREAMED_FROM = 1 << 21  # bytes

Axes = tuple[int, ...]
Steps = Callable[[Match, Axes, Axes], Value]

x, s = Var("x"), Var("s")


def split_reductions(graph: Graph, outputs: Sequence[Value] | None = None) -> Graph:
    """Return the graph with reductions in the forms that lowering knows best."""
    return rewrite(graph, outputs, _TABLE, split_reductions)


def two_steps(axes: Axes, shape: Shape) -> tuple[Axes, Axes] | None:
    """Return the axes to reduce first and those to reduce then, or None if one step is right."""
    ndim = len(shape)
    count = next(n for n in range(ndim + 1) if ndim - 1 - n not in axes)  # of the last axes
    first, then = axes[len(axes) - count :], axes[: len(axes) - count]
    if first and then and size_of(shape[a] for a in first) > 1:
        return first, then
    whole = len(axes) == ndim >= 2
    if whole and shape[-1] >= LEAST_ROW and size_of(shape[:-1]) >= LEAST_ROWS:
        return (ndim - 1,), axes[:-1]
    return None


def _in_two_steps(steps: Steps) -> Callable[[Match], Value | None]:
    """Return the rule that reduces in two steps where that is better."""

    def result(m: Match) -> Value | None:
        found = two_steps(reduced_axes(m.root), m["x"].shape)
        if found is None or 0 in m["x"].shape or m["x"].dtype not in DTYPES:
            return None
        return _finished(m, steps(m, *found))

    return result


def _finished(m: Match, value: Value) -> Value:
    """Return a value as the result: rounded to its dtype, in its shape, which may keep axes."""
    result = m.root.outputs[0]
    if value.dtype != result.dtype:
        value = m.make("cast", value, attrs=(result.dtype,))
    return value if value.shape == result.shape else m.make("reshape", value, attrs=(result.shape,))


def _widened(m: Match) -> Value:
    """Return what is reduced in the dtype in which that is done: between steps nothing rounds."""
    value: Value = m["x"]
    wide = computed_dtype(value.dtype)
    return value if wide == value.dtype else m.make("cast", value, attrs=(wide,))


def _twice(name: str) -> Steps:
    def steps(m: Match, first: Axes, then: Axes) -> Value:
        inner = m.make(name, _widened(m), attrs=(first, False))
        return m.make(name, inner, attrs=(then, False))

    return steps


def _sum(m: Match, first: Axes, then: Axes) -> Value:
    dtype = computed_dtype(m.root.outputs[0].dtype)
    inner = m.make("sum", _in_streams(m, then, dtype), attrs=(first, False, dtype))
    return m.make("sum", inner, attrs=(then, False, dtype))


def _in_streams(m: Match, then: Axes, dtype: DType) -> Value:
    """Return what is summed up; of an array in memory, parts added to one another.

    The memory of one processor delivers more if it is asked for several places in turn.
    """
    value: Value = m["x"]
    rows, odd = divmod(value.shape[0], STREAMS)
    size = size_of(value.shape) * value.dtype.itemsize
    if value.node.op not in SOURCES or 0 not in then or size < STREAMED_FROM or odd:
        return value
    if value.dtype.kind != "f" or value.dtype != dtype:
        return value
    parts = [
        m.make("getitem", value, attrs=(((i * rows, (i + 1) * rows, None),),))
        for i in range(STREAMS)
    ]
    return reduce(lambda a, b: m.make("add", a, b), parts)


def _mean(m: Match, first: Axes, then: Axes) -> Value:
    total = _sum(m, first, then)
    count = size_of(m["x"].shape) // size_of(m.root.outputs[0].shape)
    return m.make("div", total, m.number(count, total.dtype))


def _variance(m: Match) -> Value | None:
    """Return the mean squared deviation, operator by operator, unless rows are reduced.

    It is not yet rounded to the dtype of x, of which the standard deviation is a function.
    """
    axis, correction, _ = m.root.attrs
    shape = m["x"].shape
    if _is_trailing(axis, shape) or 0 in shape or m["x"].dtype not in DTYPES:
        return None
    freedom = size_of(shape[a] for a in axis) - correction
    value = _widened(m)
    mean = m.make("mean", value, attrs=(axis, True))
    square = m.make("square", m.make("sub", value, mean))
    total = m.make("sum", square, attrs=(axis, False, value.dtype))
    factor = m.number(freedom if freedom > 0 else float("nan"), value.dtype)
    return m.make("div", total, factor)


def _finished_variance(m: Match) -> Value | None:
    variance = _variance(m)
    return None if variance is None else _finished(m, variance)


def _deviation(m: Match) -> Value | None:
    variance = _variance(m)
    return None if variance is None else _finished(m, m.make("sqrt", variance))


def _logsumexp(m: Match) -> Value | None:
    """Return log(sum(exp(x - max))) + max, operator by operator, unless rows are reduced."""
    axis, _ = m.root.attrs
    shape = m["x"].shape
    if _is_trailing(axis, shape) or 0 in shape or m["x"].dtype not in DTYPES:
        return None
    value = _widened(m)
    dtype = value.dtype
    top = m.make("max", value, attrs=(axis, True))
    finite = m.make("isfinite", top)
    shift = m.make("where", finite, top, m.number(0.0, dtype))  # inf - inf would be NaN
    parts = m.make("exp", m.make("sub", value, shift))
    total = m.make("log", m.make("sum", parts, attrs=(axis, True, dtype)))
    return _finished(m, m.make("add", total, shift))


def _share(m: Match) -> Value | None:
    """Return x times the inverse of a softmax's sum, the largest term of which is 1.

    The inverse of such a number is a normal one. Its rounding costs an element one more unit in the
    last place at most, less than that of the exponential; a division costs as much time as that.
    In halves that would show.
    """
    total = m.nodes["total"]
    if computed_dtype(m["s"].dtype) != m["s"].dtype:
        return None
    if shift_axes(m["s"]) != total.attrs[:2] or m["s"].dtype != m.root.outputs[0].dtype:
        return None
    return m.make("mul", m["x"], m.make("reciprocal", total.outputs[0]))


def _number(m: Match) -> Value | None:
    """Return a scalar that is always the same without waiting for what it is made like."""
    value, dtype = m.root.attrs
    return m.number(value, dtype) if m["x"].shape == () else None


def _is_trailing(axes: Axes, shape: Shape) -> bool:
    return axes == tuple(range(len(shape) - len(axes), len(shape)))


def _before_reshape(m: Match) -> Value | None:
    """Return a sum over first axes of something before a reshape that only divided or joined these.

    It is then computed where that is made.
    """
    axes, value = reduced_axes(m.root), m["x"]
    shape = m.nodes["reshaped"].outputs[0].shape
    kept = shape[len(axes) :]
    lead = len(value.shape) - len(kept)
    leading = axes == tuple(range(len(axes)))
    same = lead >= 1 and value.shape[lead:] == kept and value.dtype in DTYPES
    if not (leading and kept and same) or 0 in shape:
        return None
    dtype = computed_dtype(m.root.outputs[0].dtype)
    return _finished(m, m.make("sum", value, attrs=(tuple(range(lead)), False, dtype)))


RULES = (
    Rule("sum of a reshape", P.sum(P.reshape(x) @ "reshaped"), _before_reshape),
    Rule("sum_to of a reshape", P.sum_to(P.reshape(x) @ "reshaped"), _before_reshape),
    Rule("sum in two steps", P.sum(x), _in_two_steps(_sum)),
    Rule("sum_to in two steps", P.sum_to(x), _in_two_steps(_sum)),
    Rule("mean in two steps", P.mean(x), _in_two_steps(_mean)),
    Rule("logsumexp in two steps", P.logsumexp(x), _in_two_steps(_twice("logsumexp"))),
    Rule("var by its definition", P.var(x), _finished_variance),
    Rule("std by its definition", P.std(x), _deviation),
    Rule("logsumexp by its definition", P.logsumexp(x), _logsumexp),
    Rule("x / sum(exp(s - max(s)))", P.div(x, P.sum(P.exp(s)) @ "total"), _share),
    Rule("a scalar like another", P.fill_like(x), _number),
)


def _rules_of_laws(op: Any) -> Iterator[Rule]:
    if op.kind == reduction and "associative" in op.laws:
        yield Rule(f"{op.name} in two steps", Call(op, (x,)), _in_two_steps(_twice(op.name)))


_TABLE = RuleTable(RULES, _rules_of_laws)
