"""Gradients on the tape, asked for inside vmap: those of the whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.errors import GradientError
from ...core.modes import interpret_with
from ...core.op import F
from ..reverse import gradients
from .batched import Batched, BatchLevel, make_batched, whole


def gradients_of_batches(
    ys: Sequence[Any], xs: Sequence[Any], given: Sequence[Any], options: dict[str, Any]
) -> list[Any]:
    """Return for each example the gradients of its ys with respect to its xs.

    An example's ys depend on its own xs only, so the gradient of their sum over the batch holds the
    gradients of all examples. An x that examples share would get the sum instead: it is refused.
    """
    level = max((t.level for t in (*ys, *xs) if isinstance(t, Batched)), key=_number)
    for i, x in enumerate(xs):
        if not (isinstance(x, Batched) and x.level is level):
            raise GradientError(
                f"gradients: inside vmap, xs[{i}] is shared by all examples, and the tape only "
                "knows the gradient of their sum; use wf.grad or wf.vjp, which differentiate each "
                "example"
            )
    seeds = [F.ones_like(y) if g is None else g for y, g in zip(ys, given, strict=True)]
    outputs, starts = [whole(y, level) for y in ys], [whole(g, level) for g in seeds]
    with interpret_with(level.below):
        found = gradients(outputs, [x.value for x in xs], starts, **options)
    return [None if g is None else make_batched(g, level) for g in found]


def _number(level: BatchLevel) -> int:
    return level.number
