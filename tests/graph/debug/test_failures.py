"""Runs that stop in the middle: what they leave behind, what they say, and what is shown again."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import Any

import numpy as np
import pytest

import weft as wf
from tests.graph.watching import MODES, config, in_session, shown_by

X = wf.tensor([1.0, 2.0])
GRAPHS = ["interpreted", "compiled", "reference", "ahead", "jit"]


def boom(value: Any) -> None:
    raise LookupError("boom")


def trained(stop: Callable[[Any], None]) -> tuple[Any, Callable[[Any], Any]]:
    """Return a parameter, and a step that changes it and stops on the way."""
    w = wf.tensor([1.0, 1.0], requires_grad=True)

    def step(x: Any) -> Any:
        h = w * x
        w.assign(w - 0.5 * h)
        stop(h)
        return h.sum()

    return w, step


@pytest.mark.parametrize("mode", ["ahead", "jit", "jit again"])
@pytest.mark.parametrize(
    ("stop", "error", "match"),
    [
        (lambda h: wf.debug.callback(boom, h), LookupError, "boom"),
        (lambda h: wf.debug.check(h < 0, "negative?"), wf.debug.CheckError, "negative"),
    ],
    ids=["callback", "check"],
)
def test_a_run_that_is_ended_changes_no_state(
    mode: str, stop: Any, error: type[Exception], match: str
) -> None:
    w, step = trained(stop)
    with pytest.raises(error, match=match):
        MODES[mode](step, (X,))
    assert w.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_session_that_is_ended_changes_no_state(compiled: bool) -> None:
    w = wf.tensor(np.ones(64, np.float32))
    with wf.Graph() as graph:
        x = wf.placeholder((64,), wf.float32)
        update = w.assign(w - x)
        wf.debug.callback(lambda v: boom(v) if v.sum() < 0 else None, x)
        y = x.sum()
    session = wf.Session(graph, compiled=compiled)
    session.run([update, y], {x: np.ones(64)})
    assert w.tolist() == [0.0] * 64
    with pytest.raises(LookupError, match="boom"):
        session.run([update, y], {x: -np.ones(64)})
    assert w.tolist() == [0.0] * 64
    session.run([update, y], {x: np.ones(64)})  # and it runs again
    assert w.tolist() == [-1.0] * 64


@pytest.mark.parametrize("mode", ["interpreted", "compiled", "ahead", "jit"])
def test_at_a_stop_states_are_as_before(mode: str) -> None:
    w = wf.tensor([1.0, 1.0])
    seen = []

    def step(x: Any) -> Any:
        new = w * x + 1
        updated = w.assign(new)
        wf.debug.callback(lambda v: seen.append((w.tolist(), v.tolist())), new)
        return updated.sum()

    MODES[mode](step, (X,))
    assert seen == [([1.0, 1.0], [2.0, 3.0])]
    assert w.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("mode", GRAPHS)
def test_errors_name_the_node_the_line_and_the_trip(mode: str) -> None:
    def program(x: Any) -> Any:
        def fn(carry: Any, row: Any) -> Any:
            wf.debug.callback(lambda v: boom(v) if v > 1 else None, row)
            return carry + row, None

        return wf.scan(fn, wf.tensor(0.0), x)[0]

    with pytest.raises(LookupError) as caught:
        MODES[mode](program, (X,))
    (note,) = caught.value.__notes__
    assert note.startswith("raised by wf.debug.callback, node callback, built at test_failures.py:")
    assert note.endswith("trip 1; no state was written")


@pytest.mark.parametrize("mode", GRAPHS)
def test_a_failed_check_says_what_and_where(mode: str) -> None:
    def program(x: Any) -> Any:
        wf.debug.check(x > 1, "x must be above 1, but is {}", x)
        return x * 2

    with pytest.raises(wf.debug.CheckError) as caught:
        MODES[mode](program, (X,))
    assert str(caught.value).startswith(
        "x must be above 1, but is [1. 2.] [1 of 2 elements are false: wf.debug.check, node check, "
        "built at test_failures.py:"
    )


def test_eager_code_names_the_line_and_claims_nothing_of_states() -> None:
    with pytest.raises(LookupError) as caught:
        wf.debug.callback(boom, X)
    (note,) = caught.value.__notes__
    assert note.startswith("raised by wf.debug.callback, at test_failures.py:")
    assert "state" not in note


# -- runs that are repeated ------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["compiled", "ahead", "jit", "jit again"])
def test_what_was_shown_is_not_shown_again_when_a_run_is_repeated_to_explain_an_error(
    mode: str,
) -> None:
    table = wf.tensor([1.0, 2.0, 3.0])

    def program(i: Any) -> Any:
        wf.debug.print(i, "index")
        found = table[i]
        wf.debug.print(found, "found")
        return found

    def run() -> None:
        made = wf.jit(program) if mode.startswith("jit") else program
        if mode == "jit again":
            shown_by(lambda: made(wf.tensor([0, 1])))
        call = (lambda: made(wf.tensor([0, 7]))) if mode.startswith("jit") else None
        with pytest.raises(IndexError, match=r"index\[1\] = 7 is out of range"):
            call() if call else MODES[mode](program, (wf.tensor([0, 7]),))

    assert shown_by(run) == ["index: int64[2] [0 7]"]


@pytest.mark.parametrize("mode", ["compiled", "ahead", "jit"])
def test_the_nan_trap_shows_everything_once(mode: str) -> None:
    def program(x: Any) -> Any:
        wf.debug.print(x, "x")
        return wf.debug.print(wf.log(x), "log").sum()

    def run(values: list[float]) -> Callable[[], Any]:
        return lambda: MODES[mode](program, (wf.tensor(values),))

    with config(nan_trap=True):
        assert len(shown_by(run([1.0, 2.0]))) == 2

        def fails() -> None:
            with pytest.raises(wf.WeftError, match=r"log, built at test_failures\.py"):
                run([1.0, -2.0])()

        assert shown_by(fails) == ["x: float32[2] [ 1. -2.]", "log: float32[2] [ 0. nan]"]


@pytest.mark.filterwarnings("ignore:.*came in with")
def test_a_nan_from_outside_is_shown_once_too() -> None:
    session, y, feeds = in_session(lambda x: wf.debug.print(x * 2, "y"), (X,))
    (x,) = feeds
    with config(nan_trap=True):
        lines = shown_by(lambda: session.run(y, {x: [np.nan, 1.0]}))
    assert lines == ["y: float32[2] [nan  2.]"]


def test_paths_of_jit_that_are_not_taken_show_nothing() -> None:
    @wf.jit
    def step(x: Any) -> Any:
        h = wf.debug.print(x * 2, "h")
        if h.sum() > 4:
            return wf.debug.print(h + 1, "large")
        return wf.debug.print(h - 1, "small")

    for values in ([1.0, 2.0], [0.0, 1.0], [3.0, 3.0], [0.0, 0.0], [5.0, 5.0]):
        x = wf.tensor(values)
        kind = "large" if 2 * sum(values) > 4 else "small"
        assert [line.split(":")[0] for line in shown_by(lambda x=x: step(x))] == ["h", kind]
    assert step.stats()["eager_calls"] == 0


def test_loops_of_python_show_no_trips() -> None:
    @wf.jit
    def halved(x: Any) -> Any:
        while x.sum() > 1:
            x = wf.debug.print(x * 0.5, "x")
        return x

    for value, trips in ((4.0, 2), (8.0, 3), (0.5, 0), (16.0, 4)):
        lines = shown_by(lambda value=value: halved(wf.tensor([value])))
        assert len(lines) == trips
        assert all(line.startswith("x: ") for line in lines)


# -- a callback that calls -------------------------------------------------------------------------


def test_a_callback_may_run_other_programs() -> None:
    other, y, feeds = in_session(lambda x: wf.debug.print(x + 1, "other"), (X,))

    def program(x: Any) -> Any:
        wf.debug.callback(lambda v: other.run(y, feeds), x)
        return wf.debug.print(x * 2, "own")

    for mode in ("interpreted", "compiled", "jit"):
        lines = shown_by(lambda mode=mode: MODES[mode](program, (X,)))
        assert [line.split(":")[0] for line in lines] == ["other", "own"]


def test_a_program_that_its_own_callback_calls_runs_node_by_node_there() -> None:
    found: list[Any] = []

    def again(value: Any) -> None:
        if value.sum() < 5:
            found.append(session.run(y, {x: value + 1}))

    with wf.Graph() as graph:
        x = wf.placeholder((2,), wf.float32)
        wf.debug.callback(again, x)
        y = x + 1
    session = wf.Session(graph)
    with pytest.warns(RuntimeWarning, match="called from inside its own run"):
        assert session.run(y, {x: X}).tolist() == [2, 3]
    assert found[0].tolist() == [3, 4]


def test_arrays_of_callbacks_are_their_own() -> None:
    kept: list[np.ndarray[Any, Any]] = []
    session, y, feeds = in_session(
        lambda x: (wf.debug.callback(kept.append, x * 2), x + 1)[1], (X,)
    )
    session.run(y, feeds)
    kept[0][:] = 9
    session.run(y, feeds)
    assert kept[0].tolist() == [9, 9]
    assert kept[1].tolist() == [2, 4]


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: wf.debug.print("h", X), "label must be a string"),
        (lambda: wf.debug.print("h"), "x must be a tensor, an array or a number.*str 'h'"),
        (lambda: wf.debug.print(X, "h", stats=1), "stats must be True or False.*1"),
        (lambda: wf.debug.print(X, "h", grad="yes"), "grad must be True or False"),
        (lambda: wf.debug.callback(3, X), "fn must be a function.*3"),
        (lambda: wf.debug.breakpoint("x"), "x0 must be a tensor"),
        (lambda: wf.debug.check(X, "positive"), "pred must be boolean.*float32.*compare"),
        (lambda: wf.debug.check(X > 0, 3), "message must be a string"),
        (lambda: wf.debug.check(X > 0, "{} and {}", X), "places for other values than the 1"),
    ],
)
def test_bad_arguments_are_refused_at_once(call: Callable[[], Any], match: str) -> None:
    with pytest.raises(TypeError, match=match):
        call()
    with wf.Graph(), pytest.raises(TypeError, match=match):
        call()


def test_the_condition_of_a_loop_shows_nothing_in_a_graph() -> None:
    def holds(i: Any) -> Any:
        return wf.debug.print(i, "i") < 3

    with wf.Graph(), pytest.raises(ValueError, match=r"cond_fn must not.*wf\.debug.*body_fn"):
        wf.while_loop(holds, lambda i: i + 1, wf.tensor(0))


def test_callbacks_are_not_saved(tmp_path: Any) -> None:
    session, _, _ = in_session(lambda x: (wf.debug.callback(boom, x), x + 1)[1], (X,))
    assert 'fn="boom"' in str(session.graph)
    with pytest.raises(wf.WeftError, match=r"cannot save.*boom"):
        session.graph.save(tmp_path / "graph.weft")


def test_other_effects_are_saved(tmp_path: Any) -> None:
    def program(x: Any) -> Any:
        def fn(c: Any, r: Any) -> Any:
            return wf.debug.print(c + r, "c"), None

        total, _ = wf.scan(fn, wf.tensor(0.0), x)
        wf.debug.check(total < 9, "{} is large", total)
        return total

    session, y, feeds = in_session(program, (X,))
    session.graph.save(tmp_path / "graph.weft")
    again = wf.Graph.load(tmp_path / "graph.weft")
    assert again.hash() == session.graph.hash()
    (x,) = feeds
    for graph in (session.graph, again):
        lines = shown_by(lambda graph=graph: wf.Session(graph).run(y.name, {x.name: X}))
        assert lines == ["c (trip 0): float32[] 1.", "c (trip 1): float32[] 3."]
        with pytest.raises(wf.debug.CheckError, match=r"30\.0 is large"):
            shown_by(lambda graph=graph: wf.Session(graph).run(y.name, {x.name: X * 10}))


def test_a_jitted_function_whose_shapes_depend_on_values_runs_eagerly() -> None:
    def program(x: Any) -> Any:
        wf.debug.print(x, "x")
        return wf.debug.print(x[x > 1], "large")

    step = wf.jit(program)
    with pytest.warns(RuntimeWarning, match=r"shows values \(wf\.debug\) where a shape depends"):
        assert len(shown_by(lambda: step(X))) == 2


def test_streams_of_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")
    out = StringIO()
    with wf.debug.console(StringIO(""), out):
        wf.debug.breakpoint(X)
    assert out.getvalue() == ""
