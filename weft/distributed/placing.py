"""Random numbers of a place: a process draws its own rows of what the global batch draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.draw_rows import DrawRows, drawing_rows
from ..core.tensor import Tensor
from ..core.tree import tree_leaves
from ..nn import Module
from .world import ProcessGroup


class PlacedForward:
    """A module's `forward` that draws the rows of one process, or of one virtual shard."""

    def __init__(self, forward: Callable[..., Any], index: int, count: int) -> None:
        self.forward, self.index, self.count = forward, index, count

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run forward; the first tensor among the arguments has a row for each example."""
        rows = rows_of((args, kwargs), self.index, self.count)
        with drawing_rows(rows):
            return self.forward(*args, **kwargs)


def rows_of(batch: Any, index: int, count: int) -> DrawRows | None:
    """Return which rows the tensors of a batch are."""
    shapes = (x.shape for x in tree_leaves(batch) if isinstance(x, Tensor) and x.ndim)
    shape = next(shapes, None)
    return None if shape is None else DrawRows(index, count, shape[0])


def place_draws(model: Module, group: ProcessGroup) -> None:
    """Let a model draw, on each process, the rows that belong to it."""
    forward = model.forward
    if isinstance(forward, PlacedForward):
        forward = forward.forward
    assert group.rank is not None
    model.__setattr__("forward", PlacedForward(forward, group.rank, group.size))
