"""The short way to run a program that is one native call: most functions without states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ....core.dtype import Array
from ....core.errors import is_from_signal
from ....core.shape import Shape
from .calls import Entry


class ShortRun(NamedTuple):
    """A run that is one native call on feeds and new arrays.

    entry    the native function
    feeds    which feeds it takes
    makers   of the new arrays
    order    for each fetch, which of the new arrays it is, and its shape
    """

    entry: Entry
    feeds: Sequence[int]
    makers: list[Callable[[], Array]]
    order: list[tuple[int, Shape]]

    def run(self, feeds: Sequence[Array]) -> list[Array] | None:
        """Return the fetches; None if the arrays do not suit the code, or memory is short."""
        try:
            fresh = [make() for make in self.makers]
        except MemoryError:
            return None
        if self.entry((*[feeds[i] for i in self.feeds], *fresh)) is not None:
            return None
        return [shaped(fresh[i], shape) for i, shape in self.order]

    def unchecked(self) -> Callable[[tuple[Any, ...]], list[Array] | None]:
        """Return the same for all feeds as they came: the code itself looks at what it is given.

        One result, the usual case, is written out: each step counts where the code is short.
        """
        entry, makers, order = self.entry, self.makers, self.order

        def run(feeds: tuple[Any, ...]) -> list[Array] | None:
            try:
                fresh = [make() for make in makers]
                if entry(feeds, *fresh) is not None:
                    return None
            except (MemoryError, TypeError) as error:  # something that is no array, or one too many
                if is_from_signal(error):
                    raise
                return None
            return [shaped(fresh[i], shape) for i, shape in order]

        if len(makers) != 1 or len(order) != 1:
            return run
        (make,), ((_, shape),) = makers, order

        def run_for_one(feeds: tuple[Any, ...]) -> list[Array] | None:
            try:
                result = make()
                if entry(feeds, result) is not None:
                    return None
            except (MemoryError, TypeError) as error:
                if is_from_signal(error):
                    raise
                return None
            return [shaped(result, shape)]

        return run_for_one


def shaped(array: Array, shape: Shape) -> Array:
    """Return an array in a shape of as many elements."""
    return array if array.shape == shape else array.reshape(shape)
