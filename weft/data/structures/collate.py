"""Batches of structures: they stay a list, and what they are trained on becomes tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.errors import ArgumentTypeError
from ..collate import default_collate


def collate_structures(items: Sequence[Any]) -> Any:
    """Return the batch of pairs (structure, target): the structures as a list, targets collated.

    The list is wrapped in a tuple, so that `fit` and `Trainer` give it to the network as one
    argument. Items that are no tuples are structures without targets, and stay a list.

    >>> from weft.data import collate_structures
    >>> collate_structures([("(1 a)", 1), ("(0 (1 b) (2 c))", 0)])
    ((['(1 a)', '(0 (1 b) (2 c))'],), tensor([1, 0]))
    """
    items = list(items)
    if not any(type(item) is tuple for item in items):
        return items
    if not all(type(item) is tuple and len(item) == 2 for item in items):
        raise ArgumentTypeError(
            "collate_structures: items must be pairs (structure, target), or all structures alone. "
            f"Received: {next(x for x in items if type(x) is not tuple or len(x) != 2)!r:.60}"
        )
    structures, targets = zip(*items, strict=True)
    return (list(structures),), default_collate(targets)
