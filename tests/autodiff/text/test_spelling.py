"""Operators in NumPy's own words compute what their kernels do, for all their samples."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops import conformance as c
from weft.autodiff.text.derivatives import _function_text
from weft.core.dispatch import run
from weft.core.op import Op
from weft.graph.frontend import placeholder
from weft.graph.graph import Graph

SPELLED = sorted({case.op.name: case.op for case in c.cases() if isinstance(case.op, Op)}.items())
SPELLED = [
    (name, op) for name, op in SPELLED if op.spelling_rule or op.numpy or op.operator is not None
]


def written(op, inputs, attrs):
    """Return the program of one call, as a function of its operands."""
    with Graph("program") as graph:
        xs = [None if x is None else placeholder(x.shape, x.dtype) for x in inputs]
        made = graph.tracer.apply(op, tuple(xs), attrs)
        ys = made if isinstance(made, tuple) else (made,)
        graph.outputs = [graph.tracer.value_of(y) for y in ys]
    text = _function_text(graph, "program", "{}, " * len(ys))
    scope = {}
    exec(text, scope)
    return scope["program"]


@pytest.mark.parametrize(("name", "op"), SPELLED, ids=[name for name, _ in SPELLED])
def test_spellings_compute_what_kernels_do(name, op):
    for case in c.cases():
        if case.op is not op:
            continue
        recorder, _ = c.record_call(op, c.Arguments.of(case.drawn()).map(c.to_tensor))
        inputs, attrs = recorder.inputs, recorder.attrs
        if any(x is not None and x.dtype.itemsize == 2 for x in inputs):
            continue  # 16-bit floats are computed in float32
        expected = run(op, inputs, attrs)
        expected = expected if isinstance(expected, tuple) else (expected,)
        with np.errstate(all="ignore"):
            found = written(op, inputs, attrs)(*(x.numpy() for x in inputs if x is not None))
        for a, b in zip(found, expected, strict=True):
            b = b.numpy()  # noqa: PLW2901  (the array alone)
            assert np.shape(a) == b.shape
            close = 1e-5 if b.dtype == np.float32 else 1e-12
            np.testing.assert_allclose(a, b, rtol=close, atol=close)
