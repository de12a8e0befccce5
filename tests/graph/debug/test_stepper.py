"""session.step_through: a debugger over the nodes of a graph."""

from __future__ import annotations

from io import StringIO
from typing import Any

import numpy as np
import pytest

import weft as wf
from tests.graph.watching import config

W = wf.tensor([1.0, 2.0])


def layer(x: Any) -> Any:
    return wf.tanh(x * W)


@pytest.fixture
def graph() -> Any:
    with wf.Graph() as made:
        x = wf.placeholder((2,), wf.float32, name="x")
        h = layer(x)
        h.name = "h"

        def fn(carry: Any, row: Any) -> Any:
            carry = carry + row
            carry.name = "carry"
            return carry, carry * 2

        total, rows = wf.scan(fn, wf.tensor(0.0), h)
        y = total + rows.sum()
        y.name = "y"
        W.assign(W + 0).name = "update"
    return made


def stepped(graph: Any, commands: str, fetches: Any = "y") -> tuple[Any, str]:
    out = StringIO()
    with wf.Session(graph) as session:
        feeds = {"x": [1.0, 1.0]}
        result = session.step_through(fetches, feeds, stdin=StringIO(commands), stdout=out)
    return result, out.getvalue()


def test_it_returns_what_run_does(graph: Any) -> None:
    expected = wf.Session(graph, compiled=False).run(["y", "h"], {"x": [1.0, 1.0]})
    for commands in ("continue\n", "next\n" * 20, "step\n" * 40, ""):
        found, text = stepped(graph, commands, ["y", "h"])
        assert text.endswith("the run is complete\n")
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])


def test_next_takes_loops_as_a_whole(graph: Any) -> None:
    _, text = stepped(graph, "n\n" * 20)
    stops = [line for line in text.splitlines() if "-> " in line]
    assert stops[0].endswith("-> mul = mul(x, tensor)")
    assert [line.split(" = ")[1].split("(")[0] for line in stops] == [
        *("mul", "tanh", "scan", "sum", "add"),
    ]
    assert "   tanh: float32[2] [0.761594 0.964028]" in text


def test_step_goes_into_bodies(graph: Any) -> None:
    _, text = stepped(graph, "n\nn\ns\ncarry\ns\ncarry\nfinish\nc\n")
    assert "  -> add = add(arg_0, arg_1) (trip 0)" in text
    assert "*** GraphError: carry is not computed yet" in text
    assert "carry: float32[] 0.761594" in text
    after = text.partition("carry: float32[] 0.761594")[2]
    assert "(trip 1)" not in after
    assert "-> sum = sum(scan:1)" in after


def test_breaks_by_name_operator_and_inside_bodies(graph: Any) -> None:
    _, text = stepped(graph, "break carry\nb sum\nbreak\nbreak summ\nc\nc\nc\nclear carry\nc\n")
    assert "breaks: carry, sum" in text
    assert "named 'summ'; did you mean 'sum'?" in text
    tail = text.partition("did you mean")[2]
    stops = [line.strip() for line in tail.splitlines() if "-> " in line]
    assert [stop.partition(" = ")[2] for stop in stops] == [
        "add(arg_0, arg_1) (trip 0)",
        "add(arg_0, arg_1) (trip 1)",
        "sum(scan:1)",
    ]


def test_where_and_up(graph: Any) -> None:
    _, text = stepped(graph, "where\nup\nlist\nnode\nc\n")
    assert "> test_stepper.py:" in text
    assert "in layer: return wf.tanh(x * W)" in text
    assert "set wf.config.graph_stacks = True" in text
    assert "<mul = mul(x, tensor) -> float32[2]>" in text
    assert "built at test_stepper.py:" in text


def test_up_with_recorded_stacks() -> None:
    with config(graph_stacks=True), wf.Graph() as made:
        x = wf.placeholder((2,), wf.float32, name="x")
        y = layer(x)
        y.name = "y"
    _, text = stepped(made, "up\nwhere\nc\n")
    assert "in test_up_with_recorded_stacks: y = layer(x)" in text


def test_quitting_writes_nothing(graph: Any) -> None:
    before = W.tolist()
    with wf.Graph() as made:
        x = wf.placeholder((2,), wf.float32, name="x")
        y = W.assign(W + x)
        y.name = "y"
    found, text = stepped(made, "where\nquit\n")
    assert found is None
    assert text.endswith("the run was ended; no state was written\n")
    assert W.tolist() == before
    found, _ = stepped(made, "next\ncontinue\n")
    assert found is not None
    assert W.tolist() == [a + 1 for a in before]
    W.assign(wf.tensor(before))


def test_values_and_bad_names(graph: Any) -> None:
    _, text = stepped(graph, "n\nvalues\nprint hh\nprint y\nmul.sum()\nc\n")
    assert "x: float32[2]\ntensor: float32[2]\nmul: float32[2]\n" in text
    assert "no value is named 'hh'" in text
    assert "y is not computed yet" in text


def test_effects_happen_on_the_way() -> None:
    with wf.Graph() as made:
        x = wf.placeholder((2,), wf.float32, name="x")
        wf.debug.breakpoint(x=x)
        y = x + 1
        y.name = "y"
    _, text = stepped(made, "n\nx\nc\nn\nn\n")
    assert "stopped at wf.debug.breakpoint" in text
    assert "x: float32[2] [1. 1.]" in text


def test_errors_leave_the_debugger() -> None:
    with wf.Graph() as made:
        x = wf.placeholder((2,), wf.float32, name="x")
        wf.debug.check(x < 0, "not negative")
        y = x + 1
        y.name = "y"
    with pytest.raises(wf.debug.CheckError, match="not negative"):
        stepped(made, "c\n")
