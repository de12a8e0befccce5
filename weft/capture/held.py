"""Tensors of a call besides its arguments, and which tensors an argument may not be.

A place that a function reads and changes (`self.h = h`) holds another tensor in each call: it is a
further argument of the program, behind those that the call was given. Of all these tensors it is
part of a recording which are one object: an argument may be what a place holds, a parameter, or
what the function compares it with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import eq
from typing import Any, NamedTuple

from ..core.generated import ObjectNames
from ..core.shape import Shape
from ..core.tensor import PLAIN, Tensor
from .signature import aliases_of, kind_of
from .watch import PythonPlace

Leaves = Sequence[Any]
Holds = Callable[[Leaves], bool]


def tensors_in(value: Any) -> list[Tensor] | None:
    """Return the tensors of a plain tensor or a nest of tuples of them; None for other things."""
    if type(value) in PLAIN:
        return [value]
    if type(value) is not tuple or not value:
        return None
    parts = [tensors_in(part) for part in value]
    return None if None in parts else [x for part in parts if part is not None for x in part]


class HeldTensors:
    """Places that hold tensors, as arguments behind those of a call.

    sized   shapes with sizes that change in them, of places that hold one tensor
    """

    def __init__(
        self, places: Iterable[PythonPlace], sized: Mapping[PythonPlace, Shape] | None = None
    ) -> None:
        self.places = list(places)
        self._sized = sized or {}
        self._kinds = [self._kind(place) for place in self.places]

    def __bool__(self) -> bool:
        return bool(self.places)

    def extended(self, leaves: Leaves) -> Leaves:
        """Return the leaves of a call with the tensors behind them that the places hold now."""
        return (*leaves, *[x for place in self.places for x in tensors_in(place.get()) or ()])

    def hold(self) -> bool:
        """Tell whether the places hold tensors of the kinds that they held."""
        return all(map(eq, map(self._kind, self.places), self._kinds))

    def shapes(self, first: int) -> dict[int, Shape]:
        """Return the shapes with sizes in them, by the positions of tensors: from `first` on."""
        return {first + i: self._sized[p] for p, i in self._alone() if p in self._sized}

    def stand_ins(self, seen: Sequence[Any]) -> dict[PythonPlace, Any]:
        """Return what is to stand in places, of what the function sees for their tensors."""
        return {p: seen[i] for p, i in self._alone() if p in self._sized}

    def alone(self, values: Sequence[Any]) -> dict[Any, Any]:
        """Return which value each place has that holds one tensor, of those of all tensors."""
        return {place: values[i] for place, i in self._alone()}

    def _alone(self) -> Iterator[tuple[PythonPlace, int]]:
        """Yield the places that hold one tensor, and its number among all."""
        count = 0
        for place in self.places:
            held = tensors_in(place.get()) or ()
            if type(place.get()) in PLAIN:
                yield place, count
            count += len(held)

    def _kind(self, place: PythonPlace) -> Any:
        return _nest(place.get(), with_shape=place not in self._sized)


class CallTensors(NamedTuple):
    """What a call works on.

    leaves   its arguments, and what places hold behind them
    seen     the same as the function sees it while it is recorded
    """

    leaves: Leaves
    seen: Leaves
    held: HeldTensors

    def positions(self) -> dict[int, int]:
        """Return where tensors stand, and what stands for them, by their ids."""
        pairs = [pair for some in (self.leaves, self.seen) for pair in enumerate(some)]
        return {id(x): i for i, x in pairs if isinstance(x, Tensor)}


class TensorIdentities:
    """Which tensors of a call are one object, and which tensors from outside they are, or are not.

    known     tensors of the call that are also found elsewhere, by their position
    others    tensors that are used from outside, or compared with those of the call
    aliases   which of all leaves are one tensor; None where the signature of a call tells that
    """

    def __init__(
        self,
        leaves: Leaves,
        known: Mapping[int, Tensor],
        others: Iterable[Tensor],
        aliases: list[tuple[int, int]] | None = None,
    ) -> None:
        self._positions = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]
        self._aliases = aliases
        self._known = list(known.items())
        self._kept = list(others)  # whose ids are those that are looked for
        self._others = frozenset(map(id, self._kept))

    def hold(self, leaves: Leaves) -> bool:
        """Tell whether the tensors of a call are the same ones, or other ones, as they were."""
        if self._others and not self._others.isdisjoint([id(leaves[i]) for i in self._positions]):
            return False
        if self._aliases is not None and aliases_of(leaves) != self._aliases:
            return False
        return all(leaves[i] is x for i, x in self._known)

    def conditions(
        self, names: ObjectNames, leaf: Callable[[int], str], given: Leaves
    ) -> Iterator[str]:
        """Yield the same as expressions, where the signature of a call tells aliases.

        leaf    gives the text of a leaf of the call, by its position
        given   the leaves of a call like those that are tested: a class never changes
        """
        for i, x in self._known:
            yield f"{leaf(i)} is {names.of(x)}"
        for i in self._positions:
            alike = frozenset(id(x) for x in self._kept if type(x) is type(given[i]))
            if alike:
                yield f"id({leaf(i)}) not in {names.of(alike, 'others')}"

    def are_needed(self) -> bool:
        """Tell whether there is anything to test that the signature of a call does not tell."""
        return bool(self._known or self._others)


def with_tensor_tests(holds: Holds, held: HeldTensors, identities: TensorIdentities) -> Holds:
    """Return the test of a recording, on the leaves of a call, with those of its tensors."""
    if not held:
        if not identities.are_needed():
            return holds
        return lambda leaves: identities.hold(leaves) and holds(leaves)

    def all_hold(leaves: Leaves) -> bool:
        if not held.hold():
            return False
        extended = held.extended(leaves)
        return identities.hold(extended) and holds(extended)

    return all_hold


def _nest(value: Any, with_shape: bool) -> Any:
    """Return what kinds of tensors a place holds, in which nest; None if other things are there."""
    if type(value) in PLAIN:
        return kind_of(value), value.shape if with_shape else None
    if type(value) is not tuple or not value:
        return None
    parts = tuple([_nest(part, with_shape) for part in value])
    return None if None in parts else parts


def tensors_among(things: Iterable[Any]) -> Iterator[Tensor]:
    """Yield those things that are tensors."""
    return (thing for thing in things if isinstance(thing, Tensor))
