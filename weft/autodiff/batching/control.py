"""Control flow by values that differ between the examples of vmap.

`cond` runs both branches and selects; `while_loop` goes on until no example wants to, and examples
that are done keep their values. What runs in vain runs on values of an example that needs it, so
that it makes no NaN (see ops/index/examples.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.effects import TripCount
from ...core.op import F
from ...core.shape import type_of
from ...core.tensor import Tensor
from ...core.tree import Structure
from ...graph.control.body import check_joinable, tensors_of
from .batched import Batched

Branch = Callable[..., Any]


def cond_of_batches(
    pred: Batched, true_fn: Branch, false_fn: Branch, leaves: list[Tensor], structure: Structure
) -> Any:
    """Return for each example the result of the branch that it takes."""
    holds = values_of(pred)
    if holds.all() or not holds.any():
        fn = true_fn if holds.all() else false_fn
        return fn(*structure.unflatten(leaves))
    yes = _branch(true_fn, leaves, structure, pred)
    no = _branch(false_fn, leaves, structure, ~pred)
    return selected(pred, yes, no)


def _branch(fn: Branch, leaves: Sequence[Tensor], structure: Structure, active: Tensor) -> Any:
    return fn(*structure.unflatten(F.borrow_example(x, active) for x in leaves))


def selected(pred: Any, yes: Any, no: Any) -> Any:
    """Return the results of one branch where `pred` holds, and of the other elsewhere."""
    lefts, names, result = tensors_of(yes, "the result")
    matching = result.flatten_like(no, "cond: false_fn's result")
    rights, _, _ = tensors_of(list(matching), "the result")
    check_joinable([type_of(x) for x in lefts], [type_of(x) for x in rights], names)
    return result.unflatten(F.where(pred, a, b) for a, b in zip(lefts, rights, strict=True))


def loop_of_batches(
    step: Callable[[list[Tensor]], list[Tensor]],
    test: Callable[[list[Tensor]], Tensor],
    leaves: list[Tensor],
    active: Tensor,
    trip: int = 0,
) -> list[Tensor]:
    """Repeat a step while the test holds for some example; where it does not, nothing changes.

    `active` is the result of the first test, `trip` the number of trips before.
    """
    with TripCount() as at:
        while values_of(active).any():
            at(trip)
            after = step([F.borrow_example(x, active) for x in leaves])
            leaves = [F.where(active, new, old) for new, old in zip(after, leaves, strict=True)]
            active, trip = active & test(leaves), trip + 1
    return leaves


def values_of(x: Any) -> np.ndarray[Any, Any]:
    """Return the values of all examples of all levels."""
    while isinstance(x, Batched):
        x = x.value
    array: np.ndarray[Any, Any] = x.numpy()
    return array
