"""Feeds and arguments that are given away: results take their memory, and nobody reads garbage."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentError, ArgumentTypeError, DonatedError
from weft.graph.donation import donated_arguments

N = 4096


def ones(value=1.0):
    return wf.full((N,), value)


def address(x):
    return (x if isinstance(x, np.ndarray) else x._value).ctypes.data


@pytest.fixture(autouse=True)
def _compiled(_way, monkeypatch):
    monkeypatch.setattr(wf.config, "debug_interpret", False)


@pytest.fixture(scope="module")
def scaled():
    with wf.Graph() as graph:
        x = wf.placeholder((N,), wf.float32, name="x")
        y = wf.placeholder((N,), wf.float32, name="y")
        out = wf.tanh(x) * y
    return graph, x, y, out


# -- sessions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["symbol", "name", "several"])
def test_a_result_takes_the_memory_of_a_feed(scaled, by):
    graph, x, y, out = scaled
    donate = {"symbol": x, "name": "x", "several": [x, "y"]}[by]
    session, a = wf.Session(graph), ones(0.5)
    expected, place = session.run(out, {x: a, y: ones(2.0)}), address(a)
    for _ in range(2):
        found = session.run(out, {x: a, y: ones(2.0)}, donate=donate)
        assert address(found) == place
        np.testing.assert_array_equal(found, expected)
        a = wf.full((N,), 0.5)
        place = address(a)


def test_a_numpy_array_is_written_over(scaled):
    graph, x, y, out = scaled
    a = np.full(N, 0.5, np.float32)
    found = wf.Session(graph).run(out, {x: a, y: ones(2.0)}, donate=x)
    assert found is a
    np.testing.assert_allclose(a, np.tanh(0.5) * 2.0, rtol=1e-6)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_donated_tensor_says_which_call_and_line_took_it(scaled, compiled):
    graph, x, y, out = scaled
    session, a = wf.Session(graph, compiled=compiled), ones()
    session.run(out, {x: a, y: ones()}, donate=x)
    said = r"donated: Session\.run at test_donation\.py:\d+ took the memory of x"
    uses = (
        lambda: a + 1.0,
        a.sum,
        lambda: a[0],
        lambda: a.reshape(2, -1),
        a.numpy,
        lambda: repr(a),
        lambda: wf.relu(a),
        lambda: wf.jit(lambda v: v * 2.0)(a),
        lambda: wf.compile(lambda v: v * 2.0, a),
        lambda: session.run(out, {x: a, y: ones()}),
        lambda: session.run(out, {x: a, y: ones()}, donate=x),
    )
    for use in uses:
        with pytest.raises(DonatedError, match=said):
            use()
    assert a.shape == (N,)


def test_a_run_that_fails_takes_nothing():
    with wf.Graph() as graph:
        x = wf.placeholder((8,), wf.float32, name="x")
        i = wf.placeholder((8,), wf.int64, name="i")
        out = x[i] * 2.0
    session, a = wf.Session(graph), wf.arange(8.0)
    for _ in range(2):
        with pytest.raises(IndexError, match="out of range"):
            session.run(out, {x: a, i: np.full(8, 9)}, donate=x)
        np.testing.assert_array_equal(a.numpy().copy(), np.arange(8.0))
    session.run(out, {x: a, i: np.arange(8)}, donate=x)
    with pytest.raises(DonatedError):
        a.numpy()


def test_what_is_read_later_is_not_written_over():
    with wf.Graph() as graph:
        x = wf.placeholder((64, 64), wf.float32, name="x")
        first = wf.tanh(x)
        out = [first, first @ x, x.T]
    session, a = wf.Session(graph), np.random.default_rng(0).random((64, 64), np.float32)
    expected = session.run(out, {x: a})
    for found, wanted in zip(session.run(out, {x: a.copy()}, donate=x), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def refused(scaled, a, message, *, b=None, donate="x", error=ArgumentError):
    graph, x, y, out = scaled
    with pytest.raises(error, match=message):
        wf.Session(graph).run(out, {x: a, y: ones() if b is None else b}, donate=donate)


def test_what_others_hold_is_refused(scaled):
    a = ones()
    refused(scaled, a, "given a second time", b=a)
    part = np.ones(2 * N, np.float32)
    refused(scaled, part[:N], "a view of other memory")
    whole = np.ones(N, np.float32)
    refused(scaled, whole, "given a second time", b=whole[::1])
    held = a.numpy()
    refused(scaled, a, "something else holds its memory")
    del held
    view = a[: N // 2]
    refused(scaled, a, "something else holds its memory")
    del view
    refused(scaled, wf.ones(N, requires_grad=True), "requires a gradient")
    w = wf.ones(N, requires_grad=True)
    refused(scaled, w * 2.0, "part of a history")
    refused(scaled, wf.nn.Parameter(wf.ones(N)), "requires a gradient")
    fixed = np.ones(N, np.float32)
    fixed.flags.writeable = False
    refused(scaled, fixed, "read only")
    refused(scaled, [1.0] * N, "tensor or a NumPy array", error=ArgumentTypeError)
    refused(scaled, ones(), "donate names tanh", donate=scaled[3].graph.nodes[2].outputs[0].name)
    refused(scaled, ones(), "donate names place 7 of 2 feeds", donate=7)
    refused(scaled, ones(), "cannot donate float", donate=1.5, error=ArgumentTypeError)


def test_saved_values_of_a_history_are_refused(scaled):
    a, w = ones(), wf.ones(N, requires_grad=True)
    loss = (w * a).sum()
    refused(scaled, a, "saved value of a history")
    loss.backward()
    del loss


def test_a_state_of_the_program_is_refused():
    weight = ones()
    with wf.Graph() as graph:
        x = wf.placeholder((N,), wf.float32, name="x")
        out = x * weight
    with pytest.raises(ArgumentError, match="a state that the program reads"):
        wf.Session(graph).run(out, {x: weight}, donate=x)


# -- functions -------------------------------------------------------------------------------------


def test_compiled_functions_take_arguments_by_name_or_place():
    def step(state, x):
        return {"a": wf.tanh(state["a"]) + x, "b": state["b"] * x}

    for donate in (0, "state", ["state"], -2):
        run = wf.compile(step, {"a": ones(), "b": ones()}, ones(), donate=donate)
        state = {"a": ones(0.5), "b": ones(3.0)}
        places = sorted(map(address, state.values()))
        new = run(state, ones(2.0))
        assert sorted(map(address, new.values())) == places
        np.testing.assert_allclose(new["b"].numpy(), 6.0)
        with pytest.raises(DonatedError, match=r"step at test_donation.py:\d+ took .*state\['a'\]"):
            state["a"].sum()
        assert run.executable.stats()["donated_bytes"] == 2 * 4 * N


def test_a_graph_is_compiled_with_donated_placeholders(scaled):
    graph, x, _, out = scaled
    run = wf.compile(graph, fetches=out, donate=x)
    a = ones(0.5)
    place = address(a)
    assert address(run(a, ones(2.0))) == place


def test_bad_names_are_refused():
    function = lambda x, y: x + y  # noqa: E731  # a function without a name of its own
    for donate, said in (
        ("z", "by position or name: x, y. Received: 'z'"),
        (2, "place 2 of 2 arguments"),
        (True, "Received: True"),
    ):
        with pytest.raises(ArgumentError, match=re.escape(said)):
            wf.compile(function, ones(), ones(), donate=donate)
    with pytest.raises(ArgumentError, match="by position or name"):
        wf.jit(function, donate="z")
    with pytest.raises(ArgumentError, match="no tensor or array in it"):
        wf.compile(lambda n, x: x * n, 3, ones(), donate=0)
    assert donated_arguments("f", function, ["x", 1], 2) == {0, 1}


# -- the plan --------------------------------------------------------------------------------------


def test_the_plan_says_how_much_less_memory_is_taken(scaled):
    graph, x, _, out = scaled
    plain, donated = graph.memory_plan(out), graph.memory_plan(out, donate=x)
    assert donated.donated_bytes == 4 * N
    assert plain.donated_bytes == 0
    assert plain.run_bytes - donated.run_bytes == 4 * N
    assert plain.peak_bytes - donated.peak_bytes == 4 * N
    assert "in memory of feeds" in str(donated)
    assert "in memory of feeds" not in str(plain)


MEASURE = """
    import weft as wf

    def peak():
        lines = open("/proc/self/status").read().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

    n, donate = 12_000_000, {donate}
    with wf.Graph() as graph:
        x = wf.placeholder((n,), wf.float32, name="x")
        out = wf.tanh(x) * 0.5
    session, a = wf.Session(graph), wf.ones(n)
    before = peak()
    for _ in range(3):
        a = session.run(out, {{x: a}}, donate=x if donate else None)
    after = peak()
    plan = graph.memory_plan(out, donate=x if donate else None)
    print(after - before, plan.run_bytes)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peaks as Linux counts them")
def test_the_measured_peak_falls_as_the_plan_says():
    found = []
    for donate in (False, True) * 2:  # the first two compile, which takes memory too
        result = subprocess.run(
            [sys.executable, "-c", dedent(MEASURE).format(donate=donate)],
            cwd=Path(__file__).resolve().parents[2],
            env=dict(os.environ),
            capture_output=True,
            text=True,
            check=True,
        )
        found.append([int(word) for word in result.stdout.split()])
    (plain, claimed), (less, claimed_less) = found[2:]
    claim = claimed - claimed_less
    assert claim == 4 * 12_000_000
    assert abs((plain - less) - claim) < 0.1 * claim
