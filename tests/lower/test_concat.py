"""Concatenation and stacking."""

from __future__ import annotations

import numpy as np

import weft as wf
from tests.programs.running import build, check_native

rng = np.random.default_rng(0)
X, Y = (rng.normal(size=(3, 5)).astype(np.float32) for _ in range(2))


def test_what_is_only_joined_is_written_to_its_part():
    def function(x, y):
        return wf.concat([wf.exp(x), y * 2.0, x + y], 1)

    check_native(function, X, Y, tolerance=1e-6)
    graph, fetches, feeds = build(function, X, Y)
    executable = wf.Session(graph).executable(fetches, feeds)
    assert not any("copy" in kernel.name for kernel in executable.program.kernels)
    assert len(executable.program.kernels) <= 3


def test_what_is_used_elsewhere_too():
    def function(x, y):
        a = wf.tanh(x)
        return wf.concat([a, y], 0), a * 3.0, wf.stack([a, y, a], 1), a

    check_native(function, X, Y, tolerance=1e-6)


def test_joins_of_joins_and_of_views():
    def function(x, y):
        inner = wf.concat([x * 2.0, y], 1)
        return wf.concat([inner.mT, wf.flip(inner.mT, 0)], 1), wf.concat([x, y], None)

    check_native(function, X, Y)


def test_empty_parts():
    check_native(lambda x, y: wf.concat([x, y[:0] * 2.0, y], 0), X, Y)


def test_products_and_sums_are_joined():
    check_native(
        lambda x, y: wf.concat([x @ y.mT, x.sum(1, keepdims=True)], 1), X, Y, tolerance=1e-5
    )


def test_a_state_that_is_joined_anew():
    state = wf.tensor(np.arange(6, dtype=np.float32))
    with wf.Graph() as graph:
        update = state.assign(wf.concat([state[3:] * 2.0, state[:3] + 1.0]))
    wf.Session(graph).run(update)
    np.testing.assert_array_equal(state.numpy(), [6, 8, 10, 1, 2, 3])


def test_gradients_of_joins_are_views():
    def function(x, y):
        z = wf.concat([x, y], 1)
        return wf.gradients((z * z).sum(), [x, y])

    check_native(function, X, Y, tolerance=1e-6)
