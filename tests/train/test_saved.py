"""States of triggers, extensions and metrics in checkpoints."""

from __future__ import annotations

import numpy as np

import weft as wf
from weft.train.saved import Saved


class Inner(Saved):
    _saved = ("count",)

    def __init__(self, count: int) -> None:
        self.count = count


class Outer(Saved):
    _saved = ("_inner", "totals", "best")

    def __init__(self, count: int) -> None:
        self._inner, self.totals, self.best = Inner(count), np.arange(count), None


def test_attributes_are_saved_under_their_names_and_inner_states_by_themselves() -> None:
    made = Outer(3)
    state = made.state_dict()
    assert state.keys() == {"inner", "totals", "best"}
    assert state["inner"] == {"count": 3}
    made.totals += 1  # what was saved is a copy
    assert state["totals"].tolist() == [0, 1, 2]


def test_loading_keeps_objects_and_makes_arrays_of_tensors() -> None:
    other = Outer(1)
    inner = other._inner
    state = {"inner": {"count": 5}, "totals": wf.tensor([1, 2]), "best": 0.5}
    other.load_state_dict(state)
    assert other._inner is inner
    assert inner.count == 5
    assert isinstance(other.totals, np.ndarray)
    assert other.totals.tolist() == [1, 2]
    assert other.best == 0.5
