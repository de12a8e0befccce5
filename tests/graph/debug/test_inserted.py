"""session.run(..., watch=...): see values without changing the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft as wf
from tests.graph.watching import shown_by

FEEDS = {"x": [1.0, 2.0, -1.0]}


@pytest.fixture(params=[False, True], ids=["interpreted", "compiled"])
def session(request: pytest.FixtureRequest) -> Any:
    w = wf.tensor(0.5)
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32, name="x")
        h = wf.tanh(x * w)
        h.name = "h"

        def fn(carry: Any, row: Any) -> Any:
            inner = carry * w + row
            inner.name = "inner"
            return wf.cond(inner > 0, lambda: inner * 2, lambda: inner * 3), inner

        total, rows = wf.scan(fn, wf.tensor(1.0), h)
        total.name = "total"
        loss = total + (rows * rows).sum()
        _, last = wf.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] * 2.0), (0, loss))
        last.name = "last"
        loss.name = "loss"
        (g,) = wf.gradients(loss, [w])
        g.name = "g"
        w.assign(w - g).name = "step"
    return wf.Session(graph, compiled=request.param)


def seen_by(session: Any, fetches: Any, *names: Any) -> tuple[Any, list[tuple[Any, ...]]]:
    seen: list[tuple[Any, ...]] = []

    def watcher(name: Any) -> Any:
        return lambda v: seen.append((str(name), wf.debug.trips(), round(float(v.sum()), 4)))

    result = session.run(fetches, FEEDS, watch={name: watcher(name) for name in names})
    return result, seen


def test_values_are_seen_in_their_order(session: Any) -> None:
    plain = session.run(["loss", "g"], FEEDS)
    result, seen = seen_by(session, ["loss", "g"], "g", "loss", "h", "x", "inner", "total")
    np.testing.assert_array_equal(result, plain)
    assert [name for name, *_ in seen] == [*("x", "h"), *["inner"] * 3, *("total", "loss", "g")]
    assert [trips for name, trips, _ in seen if name == "inner"] == [(0,), (1,), (2,)]
    found = {name: value for name, _, value in seen}
    assert found["loss"] == pytest.approx(float(plain[0]), abs=1e-3)


def test_bodies_by_full_names_and_nested(session: Any) -> None:
    graph = session.graph
    before = len(graph)
    name = "scan/fn/cond/true_fn/mul"
    _, seen = seen_by(session, "last", name, "while_loop/body_fn/mul")
    assert [trips for key, trips, _ in seen if key == name] == [(0,), (1,), (2,)]
    assert [trips for key, trips, _ in seen if key != name] == [(0,), (1,)]
    assert len(graph) == before


def test_symbols_and_states_can_be_watched(session: Any) -> None:
    graph = session.graph
    _, seen = seen_by(session, "loss", "tensor")
    assert seen == [("tensor", (), 0.5)]
    with graph:
        more = wf.debug.print(wf.exp(wf.tensor(0.0)), "more")
    lines = shown_by(lambda: seen.extend(seen_by(session, more, more)[1]))
    assert lines == ["more: float32[] 1."]
    assert seen[-1][1:] == ((), 1.0)


def test_functions_may_change_from_run_to_run(session: Any) -> None:
    first, second = [], []
    session.run("h", FEEDS, watch={"h": first.append})
    session.run("h", FEEDS, watch={"h": second.append})
    session.run("h", FEEDS)
    assert len(first) == len(second) == 1
    assert len(session._watched) == 1


def test_watchers_go_with_effects_of_the_graph() -> None:
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32, name="x")

        def fn(c: Any, r: Any) -> Any:
            v = c + r
            v.name = "v"
            wf.debug.print(v, "v")
            return v, None

        wf.debug.print(x, "x")
        y, _ = wf.scan(fn, wf.tensor(0.0), x)
        wf.debug.print(y, "y")
    for compiled in (False, True):
        session = wf.Session(graph, compiled=compiled)
        watch = {"v": lambda v: print("see v"), y: lambda v: print("see y")}
        lines = shown_by(lambda session=session, watch=watch: session.run(y, FEEDS, watch=watch))
        trips = [[f"see v|v (trip {i})"] for i in range(3)]
        expected = ["x", *(part for (t,) in trips for part in t.split("|")), "see y", "y"]
        assert [line.split(":")[0] for line in lines] == expected


def test_an_exception_of_a_watcher_changes_no_state(session: Any) -> None:
    def boom(value: Any) -> None:
        raise LookupError("boom")

    before = session.run("tensor", FEEDS)
    with pytest.raises(LookupError, match="boom") as caught:
        session.run(["loss", "step"], FEEDS, watch={"total": boom})
    assert "node watch_scan:0, built at test_inserted.py:" in caught.value.__notes__[0]
    assert session.run("tensor", FEEDS) == before


@pytest.mark.parametrize(
    ("watch", "match"),
    [
        ({"hh": print}, "no value named 'hh'; did you mean 'h'"),
        ({"inne": print}, "did you mean 'inner'"),
        ({"zzzzzz": print}, r"no value named 'zzzzzz'; print\(graph\) shows their names"),
        ({"h": 3}, r"watch\['h'\] must be a function.*3"),
        ({"step": print}, "step is an update|assign is an update"),
        ([("h", print)], "watch must be a dictionary.*list"),
        ({3: print}, "cannot watch int 3"),
        ({"last": print}, r"while_loop:1 is not computed for these fetches; fetch it"),
    ],
)
def test_bad_watches(session: Any, watch: Any, match: str) -> None:
    with pytest.raises((ValueError, TypeError), match=match):
        session.run("loss", FEEDS, watch=watch)


def test_names_that_several_bodies_have() -> None:
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float32, name="x")
        y = wf.cond(x > 0, lambda: wf.exp(x), lambda: wf.exp(-x))
    with pytest.raises(ValueError, match="several values are named 'exp': cond/true_fn/exp, cond/"):
        wf.Session(graph).run(y, {"x": 1.0}, watch={"exp": print})
    lines = shown_by(
        lambda: wf.Session(graph).run(y, {"x": 0.0}, watch={"cond/false_fn/exp": print})
    )
    assert lines == ["1.0"]
