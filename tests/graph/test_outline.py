"""Outlines of programs: what processes that train together must have in common."""

from __future__ import annotations

import weft as wf
from weft.graph.outline import outline
from weft.graph.run import Program


def lines(compute, *shape):
    with wf.Graph() as graph:
        x = wf.placeholder(shape, wf.float32)
        y = compute(x)
    return [line.text for line in outline(Program(graph, [y.value], [x.value]))]


def test_operations_and_what_they_take():
    found = lines(lambda x: wf.tanh(x @ wf.ones(3, 2)).sum(), 4, 3)
    assert found[-2:] == ["tanh(0.0) -> float32 (2-d)", "sum(1.0, False) -> float32 (0-d)"]


def test_sizes_and_constants_make_no_difference():
    assert lines(wf.tanh, 2, 3) == lines(wf.tanh, 5, 4)
    assert lines(lambda x: wf.tanh(x) + 0, 2) == lines(lambda x: wf.tanh(x + 3.0), 2)
    assert lines(wf.tanh, 2) != lines(wf.tanh, 2, 2)
    assert lines(wf.tanh, 2) != lines(wf.sin, 2)


def test_bodies_of_control_flow_count():
    def looped(act):
        return lambda x: wf.cond(x.sum() > 0.0, lambda: act(x), lambda: x)

    assert lines(looped(wf.sin), 2) != lines(looped(wf.cos), 2)


def test_the_users_line_is_known():
    with wf.Graph() as graph:
        x = wf.placeholder((2,), wf.float32)
        y = wf.tanh(x)
    assert "test_outline.py" in outline(Program(graph, [y.value], [x.value]))[-1].site
