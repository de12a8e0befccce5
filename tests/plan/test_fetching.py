"""Fetches that are parts of buffers, or lie in another order."""

from __future__ import annotations

import numpy as np

import weft as wf
from tests.programs.running import at_threads, build, check_native

X = np.random.default_rng(1).normal(size=(40, 24)).astype(np.float32)


def executable_of(function, *arrays):
    graph, fetches, feeds = build(function, *arrays)
    return wf.Session(graph).executable(fetches, feeds)


def copies(executable):
    return [k.name for k in executable.program.kernels if k.name.startswith("copy of")]


def test_parts_and_turned_results_have_memory_of_their_own():
    def function(x):
        y = wf.exp(x)
        return y[:10], y.mT, y[10:].mT, y

    check_native(function, X, tolerance=1e-6)
    results = at_threads(2, *build(function, X))
    for result in results:
        assert result.flags.c_contiguous
        assert result.flags.owndata
    assert not any(np.shares_memory(a, b) for a in results for b in results if a is not b)


def test_a_whole_buffer_is_handed_out_once():
    made = executable_of(lambda x: ((y := wf.exp(x)), y.reshape(24, 40), y), X)
    assert len(copies(made)) == 2
    first, second, third = made.run([X])
    first[:] = 0
    assert np.array_equal(second.reshape(40, 24), third)


def test_what_is_handed_out_as_it_is_needs_no_copy():
    assert copies(executable_of(lambda x: (wf.exp(x), wf.tanh(x).reshape(960)), X)) == []


def test_turned_feeds_are_copied_by_kernels_and_others_are_not():
    assert len(copies(executable_of(lambda x: x.mT, X))) == 1
    assert copies(executable_of(lambda x: x.reshape(24, 40), X)) == []
    check_native(lambda x: (x.mT, x[3:, 2:], x.reshape(24, 40)), X)


def test_empty_parts():
    check_native(lambda x: (wf.exp(x)[:0], wf.exp(x)[:, 5:5].mT), X, tolerance=1e-6)


def test_fetches_beside_new_values_of_states():
    state = wf.tensor(np.ones((4, 6), np.float32))
    with wf.Graph() as graph:
        y = state + 1.0
        update = state.assign(y)
        part = y[1:3].mT
    found, _ = wf.Session(graph).run([part, update])
    assert np.array_equal(found, np.full((6, 2), 2, np.float32))
    assert np.array_equal(state.numpy(), np.full((4, 6), 2, np.float32))
