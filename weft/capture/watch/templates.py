"""Values that a program made and left behind, as recipes to make them again.

A list that each call makes anew must be made anew in each repetition, with recorded values replaced
by what they are this time. What was there before the recording is itself.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .ages import Ages
from .places import dictionary, slot_names
from .recipes import (
    DictRecipe,
    ListRecipe,
    Made,
    Recipe,
    RecordedPart,
    Resolve,
    SamePart,
    SharedPart,
    TupleRecipe,
)
from .values import (
    FROZEN,
    MAPPINGS,
    SLICE_PARTS,
    container_kind,
    find,
    is_constant,
    is_named,
)


class UnrepeatableError(Exception):
    """A value cannot be made again."""


class Templates:
    """Makes recipes, one for each object."""

    def __init__(
        self, ages: Ages, recorded: Callable[[Any], bool], opaque: Callable[[Any], bool]
    ) -> None:
        self._ages = ages
        self._recorded = recorded
        self._opaque = opaque
        self._known: dict[int, tuple[Any, Recipe]] = {}
        self.leaves: list[Any] = []  # recorded values that recipes ask for

    def of(self, value: Any) -> Recipe:
        """Return how to make a value again."""
        if isinstance(value, np.ndarray) and container_kind(value) is None:
            raise UnrepeatableError("an array that it was given, or a part of one")
        if self._recorded(value):
            self.leaves.append(value)
            return RecordedPart(value)
        if is_constant(value) or self._is_fixed(value) or self._is_itself(value):
            return SamePart(value)
        known = self._known.get(id(value))
        if known is None:
            key = id(value)
            # A container may hold itself: its recipe is asked for while it is being made.
            self._known[key] = value, lambda resolve, made: made[key]
            known = self._known[key] = value, SharedPart(key, self._maker(value))
        return known[1]

    def _is_itself(self, value: Any) -> bool:
        """Tell whether a value was there before, and is no tuple of what is another each time."""
        return self._ages.is_old(value) and not self._holds_recorded(value)

    def _holds_recorded(self, value: Any) -> bool:
        if type(value) is not tuple:
            return self._recorded(value)
        return any(map(self._holds_recorded, value))

    def _is_fixed(self, value: Any) -> bool:
        return is_named(value) and not self._ages.is_young(value)

    def _maker(self, value: Any) -> Recipe:
        kind = type(value)
        if kind in FROZEN or (issubclass(kind, tuple) and not dictionary(value)):
            return self._frozen(value)
        if kind is slice:
            return self._slice(value)
        if kind in (list, deque, set, bytearray):
            return self._filled(value)
        if kind in MAPPINGS:
            return self._mapping(value)
        if kind is np.ndarray and not value.dtype.hasobject:
            return lambda resolve, made: value.copy()
        if _is_plain_instance(value) and not self._opaque(value):
            return self._instance(value)
        raise UnrepeatableError(f"a {kind.__name__} that it made")

    def _frozen(self, value: Any) -> Recipe:
        kind, parts = type(value), [self.of(part) for part in value]
        if issubclass(kind, tuple):
            return TupleRecipe(kind, parts)
        return lambda resolve, made: kind([part(resolve, made) for part in parts])

    def _slice(self, value: slice) -> Recipe:
        parts = [self.of(getattr(value, part)) for part in SLICE_PARTS]
        return lambda resolve, made: slice(*(part(resolve, made) for part in parts))

    def _filled(self, value: Any) -> Recipe:
        kind, parts = type(value), [self.of(part) for part in value]
        key = id(value)
        if kind is list:
            return ListRecipe(key, parts)
        fill = "update" if kind is set else "extend"
        limit = value.maxlen if kind is deque else None

        def make(resolve: Resolve, made: Made) -> Any:
            made[key] = new = deque(maxlen=limit) if kind is deque else kind()
            getattr(new, fill)([part(resolve, made) for part in parts])
            return new

        return make

    def _mapping(self, value: dict[Any, Any]) -> Recipe:
        parts = self._pairs(value.items())
        kind: Any = type(value)
        key = id(value)
        if kind is dict:
            return DictRecipe(key, parts)
        factory = (self.of(value.default_factory),) if isinstance(value, defaultdict) else ()

        def make(resolve: Resolve, made: Made) -> Any:
            made[key] = new = kind(*(part(resolve, made) for part in factory))
            new.update((k(resolve, made), v(resolve, made)) for k, v in parts)
            return new

        return make

    def _instance(self, value: Any) -> Recipe:
        kind = type(value)
        held = self._pairs(dictionary(value).items())
        slots = [(slot, self.of(slot.__get__(value))) for slot in _filled_slots(value)]
        key = id(value)

        def make(resolve: Resolve, made: Made) -> Any:
            made[key] = new = object.__new__(kind)
            dictionary(new).update((k(resolve, made), v(resolve, made)) for k, v in held)
            for slot, part in slots:
                slot.__set__(new, part(resolve, made))
            return new

        return make

    def _pairs(self, items: Iterable[tuple[Any, Any]]) -> list[tuple[Recipe, Recipe]]:
        return [(self.of(key), self.of(value)) for key, value in items]


def _is_plain_instance(value: Any) -> bool:
    """Tell whether an object is no more than its attributes."""
    kinds = type(value).__mro__[:-1]
    return all(kind.__flags__ & (1 << 9) and kind.__basicsize__ <= _size(kind) for kind in kinds)


def _size(kind: type) -> int:
    """Return the most bytes that an object of a class with only Python's attributes takes."""
    return object.__basicsize__ + 8 * (len(slot_names(kind)) + 4)


def _filled_slots(value: Any) -> list[Any]:
    slots = [find(type(value), name) for name in slot_names(type(value))]
    return [slot for slot in slots if _is_filled(slot, value)]


def _is_filled(slot: Any, value: Any) -> bool:
    try:
        slot.__get__(value)
    except AttributeError:
        return False
    return True
