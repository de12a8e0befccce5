"""Where recordings look away: in Weft's own code, and nowhere else."""

import sys
from contextlib import nullcontext

import numpy as np
import pytest

import weft as wf
from weft.core.errors import WeftError
from weft.core.op import find_op
from weft.core.watching import IS_SLOW, is_ours, is_plain, look_away, watchers


class Whole(int):
    """A number of the user's."""


class Mine(wf.Tensor):
    """A tensor of the user's."""


@pytest.mark.parametrize(
    "thing",
    [
        *(1, 2.0, None, "x", True, ..., slice(1, None)),
        *((1, [2.0, (None,)]), np.float32(1), np.dtype("f4"), np.zeros(2)),
        *(wf.tensor([1.0]), wf.nn.Parameter(np.zeros(2))),
    ],
)
def test_plain(thing):
    assert is_plain(thing)


@pytest.mark.parametrize(
    "thing",
    [
        *(Whole(1), print, lambda: 1, object(), {1: 2}, [1, Whole(2)], slice(Whole(1))),
        *(np.array([object()]), wf.nn.Linear(2, 2), iter([1]), object.__new__(Mine)),
    ],
)
def test_not_plain(thing):
    assert not is_plain(thing)


def test_ours():
    assert is_ours(None)
    assert is_ours(is_plain)
    assert not is_ours(test_ours)
    assert not is_ours(Mine)


def test_nothing_is_stopped_that_is_no_recording():
    def tracer(frame, event, argument):
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        assert look_away(1) is None
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)


def rule(x):
    """Return the type of a result; note whether somebody watches, which is an effect."""
    seen.append(sys.gettrace() is not None)
    return x


seen: list[bool] = []


@pytest.mark.skipif(not IS_SLOW, reason="tracers cost nothing")
@pytest.mark.parametrize("watched", [True, False])
def test_rules_are_watched_unless_they_are_ours(monkeypatch, watched):
    monkeypatch.setattr(find_op("tanh"), "infer_rule", rule)
    if not watched:
        monkeypatch.setattr(rule, "__module__", "weft.ops.tanh")
    seen.clear()
    with pytest.warns(RuntimeWarning) if watched else nullcontext():  # it appends to a list
        wf.jit(lambda x: wf.tanh(x) * 1.0)(wf.ones(2))
    assert seen == ([] if watched else [False])  # the call ended before the rule wrote
    assert not watchers
    assert sys.gettrace() is None


def test_objects_of_users_in_operands_are_watched():
    """NumPy asks objects in a list for their numbers, which is code of the user's."""

    class Count:
        def __float__(self):
            asked.append(len(asked))
            return 1.0

    def step(x):
        return wf.add(x, wf.tensor([float(Count()), 2.0]))

    asked = []
    jitted = wf.jit(step)
    for _ in range(3):
        jitted(wf.ones(2))
    assert asked == [0, 1, 2]


def test_errors_of_operators_leave_the_watcher_in_place():
    def step(x):
        try:
            x @ wf.ones(5)
        except WeftError:
            counts.append(len(counts))
        return x * 2.0

    counts = []
    jitted = wf.jit(step)
    for _ in range(3):
        jitted(wf.ones(3))
    assert counts == [0, 1, 2]
