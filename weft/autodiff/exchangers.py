"""Exchangers: who takes the gradients of some parameters as soon as they are final.

Data parallel training (weft/distributed) is one: it replaces the gradients of this process by those
of all processes. `backward` tells it of each gradient while the rest is still being computed; in a
graph it is asked for nodes instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.tensor import Tensor


class GradientExchanger(ABC):
    """Takes gradients of parameters, and gives others in their place.

    is_on   whether it does so now
    """

    is_on = True

    @property
    @abstractmethod
    def parameters(self) -> Sequence[Tensor]:
        """Return the parameters whose gradients it takes."""

    @abstractmethod
    def begin(self, used: Sequence[Tensor]) -> None:
        """Know which parameters will have gradients when backward ends."""

    @abstractmethod
    def ready(self, parameter: Tensor) -> None:
        """Know that `.grad` of a parameter is final."""

    @abstractmethod
    def finish(self) -> None:
        """Put the new gradients into `.grad` of all that were announced."""

    @abstractmethod
    def exchanged(self, grads: Mapping[Tensor, Any]) -> dict[Tensor, Any]:
        """Return the new gradients for some, as operations on them."""


# In the order in which they were added, the same on all processes.
exchangers: dict[GradientExchanger, None] = {}


def active_exchangers() -> list[GradientExchanger]:
    """Return those that take gradients now."""
    return [exchanger for exchanger in exchangers if exchanger.is_on]


def exchanged_gradients(grads: Mapping[Tensor, Any]) -> dict[Tensor, Any]:
    """Return gradients, by their parameters, as all who take some of them have it."""
    found = dict(grads)
    for exchanger in active_exchangers():
        taken = {p: found[p] for p in exchanger.parameters if p in found}
        if taken:
            found.update(exchanger.exchanged(taken))
    return found
