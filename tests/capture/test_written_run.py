"""The written run of a trace does what its general run does."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import weft as wf
from weft.core.errors import WeftError
from weft.core.generated import source_of

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def traces_of(jitted):
    return [trace for paths in jitted._traces.values() for trace in paths]


class World:
    """What a function works on: a weight, an optimizer, an argument that it may write to."""

    def __init__(self, function):
        self.weight = wf.nn.Parameter(wf.tensor(X))
        self.optimizer = wf.optim.Adam([self.weight], lr=0.1)
        self.seen = []
        self.jitted = wf.jit(lambda *args: function(self, *args))

    def outcome(self, x, generally):
        """Return all that a call leaves, as arrays and numbers."""
        if generally:
            for trace in traces_of(self.jitted):
                trace._written = type(trace).run_generally
        argument = wf.tensor(x)
        result = self.jitted(argument)
        grad = self.weight.grad
        left = [argument, self.weight, grad, *self.seen]
        return [_plain(thing) for thing in (*_flat(result), *left)]


def _flat(result):
    if isinstance(result, dict):
        return [leaf for key in result for leaf in _flat(result[key])]
    if isinstance(result, (list, tuple)):
        return [leaf for item in result for leaf in _flat(item)]
    return [result]


def _plain(thing):
    return thing.detach().numpy().copy() if isinstance(thing, wf.Tensor) else thing


def step(world, x):
    world.optimizer.zero_grad()
    loss = (world.weight * x).square().sum()
    loss.backward()
    world.optimizer.step()
    return loss


def accumulate(world, x):
    (world.weight * x).sum().backward()


def forget(world, x):
    loss = (world.weight * x).square().sum()
    loss.backward()
    world.optimizer.zero_grad()
    return loss


def write_argument(world, x):
    x.add_(1)
    return x * 2


def contain(world, x):
    y = x * world.weight
    return {"both": [y, x], "number": 3, "sum": y.sum().item()}


def note(world, x):
    world.seen.append((x * 2).sum().item())
    return x + 1


class Pair(NamedTuple):
    """Two values."""

    first: Any
    second: Any


def nest(world, x):
    y = x * world.weight
    return [Pair(y, {"x": x, "none": None}), (y.sum(), [], ()), {}]


FUNCTIONS = [step, accumulate, forget, write_argument, contain, note, nest]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_both_runs_leave_the_same(function):
    written, general = World(function), World(function)
    for k in range(6):
        found = written.outcome(X + k, generally=False)
        expected = general.outcome(X + k, generally=True)
        assert len(found) == len(expected)
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_array_equal(x, y)
    assert any(source_of(trace._written) for trace in traces_of(written.jitted) if trace._written)


def test_nests_of_results_are_written_out():
    world = World(nest)
    for k in range(4):
        (pair, rest, empty) = world.jitted(wf.tensor(X + k))
    assert (type(pair), type(rest), rest[1:], empty) == (Pair, tuple, ([], ()), {})
    assert list(pair.second) == ["x", "none"]
    np.testing.assert_array_equal(pair.second["x"].numpy(), X + 3)
    (trace,) = traces_of(world.jitted)
    assert "made" not in source_of(trace._written)


def test_what_a_result_holds_twice_is_one_object():
    def share(world, x):
        both = [x * 2]
        return both, {"again": both, "apart": [x * 2]}

    world = World(share)
    found = []
    for _ in range(4):
        first, rest = world.jitted(wf.tensor(X))
        assert first is rest["again"]
        assert first is not rest["apart"]
        found.append(first)
    assert len({*map(id, found)}) == len(found)


def test_results_have_the_history_that_they_have_eagerly():
    weight = wf.nn.Parameter(wf.tensor(X))
    double = wf.jit(lambda x: (weight * x).square().sum())
    for k in range(4):
        weight.grad = None
        double(wf.tensor(X + k)).backward()
        np.testing.assert_allclose(weight.grad.numpy(), 2 * X * (X + k) ** 2, rtol=1e-5)


def test_a_history_that_was_used_up_is_used_up():
    world = World(step)
    for _ in range(3):
        loss = world.jitted(wf.tensor(X))
    assert not loss.is_leaf
    with pytest.raises(WeftError):
        loss.backward()


def test_settings_are_looked_at_in_each_run():
    world = World(step)
    for _ in range(3):
        world.jitted(wf.tensor(X))
    (trace,) = traces_of(world.jitted)
    general = []
    trace.run_generally = general.append
    wf.config.debug_interpret = True
    try:
        trace.run([wf.tensor(X)])
    finally:
        wf.config.debug_interpret = False
    assert len(general) == 1
