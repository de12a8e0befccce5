"""The prompt of a breakpoint, in every mode."""

from __future__ import annotations

import sys
from io import StringIO
from typing import Any

import pytest

import weft as wf
from tests.graph.watching import MODES

X = wf.tensor([1.0, -2.0])


def at_prompt(commands: str, run: Any) -> str:
    """Return what is written at prompts that are given some commands."""
    out = StringIO()
    with wf.debug.console(StringIO(commands), out):
        run()
    return out.getvalue()


def stopping(x: Any) -> Any:
    h = x * 2
    wf.debug.breakpoint(x, h=h)
    return h.sum()


@pytest.mark.parametrize("mode", ["eagerly", *MODES])
def test_values_can_be_seen(mode: str) -> None:
    def run() -> Any:
        return stopping(X) if mode == "eagerly" else MODES[mode](stopping, (X,))

    again = "continue\n" if mode == "jit again" else ""
    text = at_prompt(f"{again}values\nprint h\nh\np h.sum() + x0[0]\ncontinue\n", run)
    (*_, last) = text.split("stopped at ")
    assert last.startswith("wf.debug.breakpoint, ")
    assert "> test_console.py:" in last
    assert "in stopping: wf.debug.breakpoint(x, h=h)" in last
    assert "x0: float32[2]\nh: float32[2]\n" in last
    assert last.count("h: float32[2] [ 2. -4.]") == 2
    assert "-1.0" in last


def test_an_end_of_the_input_goes_on() -> None:
    text = at_prompt("", lambda: stopping(X))
    assert text.count("(wf)") == 1


@pytest.mark.parametrize("mode", ["interpreted", "compiled", "ahead", "jit"])
def test_quitting_ends_the_run_and_writes_nothing(mode: str) -> None:
    w = wf.tensor([1.0, 1.0])

    def step(x: Any) -> Any:
        updated = w.assign(w + x)
        wf.debug.breakpoint(updated=updated)
        return updated.sum()

    with pytest.raises(wf.WeftError, match="ended at the prompt"):
        at_prompt("quit\n", lambda: MODES[mode](step, (X,)))
    assert w.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("compiled", [False, True])
def test_other_values_of_the_graph_are_computed_when_asked_for(compiled: bool) -> None:
    with wf.Graph() as graph:
        x = wf.placeholder((2,), wf.float32, name="x")
        h = wf.debug.print(wf.exp(x), "h")
        h.name = "h"
        wf.debug.breakpoint()
        y = (h * 2).sum()
        y.name = "later"
    session = wf.Session(graph, compiled=compiled)
    text = at_prompt("h\nlater\nx\nlatr\n", lambda: session.run(y, {x: [0.0, 0.0]}))
    assert "h: float32[2] [1. 1.]" in text
    assert "later: float32[] 4." in text
    assert "x: float32[2] [0. 0.]" in text
    assert "did you mean 'later'?" in text


def test_the_stack_of_the_user() -> None:
    def outer(x: Any) -> Any:
        return stopping(x)

    with wf.Graph() as graph:
        x = wf.placeholder((2,), wf.float32)
        y = outer(x)
    session = wf.Session(graph)
    commands = "where\nup\nup\nlist\ndown\nwhere\n" + "up\n" * 200 + "c\n"
    text = at_prompt(commands, lambda: session.run(y, {x: X}))
    assert "in outer: return stopping(x)" in text
    assert "in test_the_stack_of_the_user: y = outer(x)" in text
    assert "        y = outer(x)" in text
    assert "this is the outermost line that is known" in text


def test_bad_commands_are_explained() -> None:
    text = at_prompt("nonsense(\nprint\nh / 'a'\ndown\nhelp\nhelp up\n", lambda: stopping(X))
    assert "no value is named 'nonsense('" in text
    assert "print what?" in text
    assert "*** " in text
    assert "this is the innermost line" in text
    assert "continue  down" in text
    assert "Go up to the line" in text


def test_trips_are_told() -> None:
    def program(x: Any) -> Any:
        def fn(c: Any, r: Any) -> Any:
            wf.debug.breakpoint(row=r)
            return c + r, None

        return wf.scan(fn, wf.tensor(0.0), x)[0]

    for mode in ("interpreted", "compiled", "jit"):
        text = at_prompt("row\nc\nrow\nc\n", lambda mode=mode: MODES[mode](program, (X,)))
        assert ", trip 0; no state" in text
        assert "row: float32[] -2." in text.partition(", trip 1; no state")[2]


def test_what_is_no_stream_is_refused():
    with pytest.raises(wf.WeftError, match=r"stdin must be a file of text.*Received: 5"):
        wf.debug.console(5, None).__enter__()
    with wf.Graph() as graph:
        y = wf.placeholder((), wf.float32, name="x") * 2
    with pytest.raises(wf.WeftError, match=r"stdout must be a file of text.*Received: 'out'"):
        wf.Session(graph).step_through(y, {"x": 1.0}, stdout="out")


def test_a_process_without_a_terminal_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: Any) -> Any:
        wf.debug.breakpoint(x=x)
        return x * 2

    with wf.Graph() as graph:
        y = wf.placeholder((), wf.float32, name="x") * 2
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stdout", None)
    for run in (program, wf.jit(program)):
        assert float(run(wf.tensor(3.0))) == 6.0
    assert float(wf.Session(graph).step_through(y, {"x": 3.0})) == 6.0
