"""detect_anomaly finds the first NaN in graphs and compiled functions too."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import weft as wf
from weft.core.errors import AnomalyError

BAD = np.array([1.0, -1.0], np.float32)


def here(offset=0):
    return f"test_anomaly.py:{sys._getframe(1).f_lineno + offset}"


def built(function):
    """Return a graph of a function of x, its result and the session's feeds."""
    with wf.Graph() as graph:
        x = wf.placeholder((2,), wf.float32, name="x")
        return graph, function(x), {x: BAD}


@pytest.mark.parametrize("compiled", [True, False, None])
def test_a_session_names_operation_and_line(compiled):
    graph, y, feeds = built(lambda x: wf.log(x * 2) + 1)
    line = here(-1)
    session = wf.Session(graph, compiled=compiled)
    assert np.isnan(session.run(y, feeds)[1])
    with wf.detect_anomaly(), pytest.raises(AnomalyError, match="log, built at") as caught:
        session.run(y, feeds)
    assert line in str(caught.value)
    assert "float32[2]" in str(caught.value)
    assert np.isnan(session.run(y, feeds)[1])  # it is off again


def test_a_compiled_function_changes_nothing():
    weight = wf.nn.Parameter(wf.tensor([4.0, 1.0]))
    optimizer = wf.optim.Adam([weight], lr=0.1)
    count = wf.tensor(0.0)

    def step(x):
        count.assign(count + 1)
        loss = wf.sqrt(weight * x).sum()
        optimizer.minimize(loss)
        return loss

    compiled = wf.compile(step, wf.ones(2))
    with wf.detect_anomaly():
        compiled(wf.ones(2))
        kept = weight.numpy().copy()
        with pytest.raises(AnomalyError, match="sqrt, built at"):
            compiled(wf.tensor(BAD))
    np.testing.assert_array_equal(weight.numpy(), kept)
    assert (float(count), optimizer.t) == (1.0, 1)
    assert np.isnan(float(compiled(wf.tensor(BAD))))


def test_a_nan_of_the_backward():
    def slope(x):
        return wf.gradients((wf.sqrt(x) * 0).sum(), x)

    line = here(-2)
    compiled = wf.compile(slope, wf.zeros(2))
    with wf.detect_anomaly(), pytest.raises(AnomalyError, match="in the backward of") as caught:
        compiled(wf.zeros(2))
    assert line in str(caught.value)


def test_a_nan_inside_control_flow():
    graph, y, feeds = built(
        lambda x: wf.while_loop(
            lambda s: s[0] < 3,
            lambda s: (s[0] + 1, wf.sqrt(s[1])),
            (wf.tensor(0), x),
        )[1]
    )
    with wf.detect_anomaly(), pytest.raises(AnomalyError, match=r"^sqrt, built at") as caught:
        wf.Session(graph).run(y, feeds)
    assert str(caught.value).count("[node") == 1


def test_a_nan_that_is_fed_is_nobodys_fault():
    graph, y, feeds = built(wf.exp)
    feeds = dict.fromkeys(feeds, np.array([1.0, np.nan], np.float32))
    with wf.detect_anomaly():
        assert np.isnan(wf.Session(graph).run(y, feeds)[1])


def test_a_graph_can_be_built_while_it_is_on():
    with wf.Graph() as graph:
        x = wf.placeholder((2,), wf.float32, name="x")
        with wf.detect_anomaly():
            y = wf.log(x)
    with wf.detect_anomaly(), pytest.raises(AnomalyError, match="log, built at"):
        wf.Session(graph, compiled=True).run(y, {x: BAD})
