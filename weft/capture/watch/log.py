"""The record of what a program read and wrote, in the order in which it did.

A place that is read before it is written is what the program depends on; a place that is written
has changed. Containers that are used as a whole (iterated, compared, sorted) are kept as they were
when they were first met. Whether something matters is decided in the end, when it is known which
objects were there before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from .ages import Ages
from .places import (
    AttributePlace,
    ElementPlace,
    ItemPlace,
    PythonPlace,
    dictionary,
    put_item,
    slot_names,
)
from .trust import Owner, line_of, owner_of
from .values import (
    FROZEN,
    MISSING,
    container_kind,
    elements,
    holds_in_c,
    is_atom,
    is_iterator,
    is_named,
    items,
)

WRITTEN = object()  # in place of a key: some attribute of an opaque object is written
UNSCHEDULED = ("step", "zero_grad")  # of what is closed: a step is refused when it is taken
MOST_ELEMENTS = 100_000
MOST_BYTES = 1 << 20
_HOLDERS = frozenset({list, tuple, dict, set, frozenset, deque})


class Refusal(NamedTuple):
    """Why a call cannot be repeated without running its Python.

    reason   what it did
    where    the user's line: "model.py:12"
    once     whether the next call may well be one that can
    """

    reason: str
    where: str
    once: bool = False

    def __str__(self) -> str:
        return f"{self.reason} ({self.where})"


class PlaceRead(NamedTuple):
    """A place, and what was in it when it was first read."""

    place: PythonPlace
    value: Any
    where: str


class PlaceWrite(NamedTuple):
    """A place, and what was in it before it was first written."""

    place: PythonPlace
    before: Any
    where: str


class BlindChange(NamedTuple):
    """A method that changes a container without looking at what is in it."""

    method: str
    values: tuple[Any, ...]


class Contents:
    """What a container held when it was first met, and how it was used since.

    looked       whether the program depends on all of it
    counted      whether it depends on the length, by `len`
    measured     whether it depends on the length in other ways
    changed      whether something may have changed that is not among the writes
    operations   changes that do not depend on what was in it
    removed      whether items were taken out, so that the order of a dictionary may differ
    """

    __slots__ = (
        *("before", "changed", "counted", "holder", "looked", "measured", "operations"),
        *("removed", "text", "where"),
    )

    def __init__(self, holder: Any, where: str) -> None:
        self.holder = holder
        self.before = copy_of(holder)
        self.text = f"a {type(holder).__name__}"
        self.where = where
        self.looked = self.measured = self.counted = self.changed = self.removed = False
        self.operations: list[BlindChange] = []


def copy_of(holder: Any) -> Any:
    """Return the contents of a container, as they are now."""
    kind = container_kind(holder)
    if kind is np.ndarray:
        return np.array(holder)
    if kind is dict:
        return dict(items(holder))
    if kind is set:
        return frozenset(elements(holder))
    return bytes(holder) if kind is bytearray else tuple(elements(holder))


class AccessLog:
    """What was read, written and refused while a program ran."""

    def __init__(self, is_left_out: Callable[[Any], bool], recorded: Callable[[Any], bool]) -> None:
        self.ages = Ages()
        self.reads: dict[PythonPlace, PlaceRead] = {}
        self.writes: dict[PythonPlace, PlaceWrite] = {}
        self.contents: dict[int, Contents] = {}
        self.refusals: list[tuple[Any, Refusal]] = []
        self.refusals_if_new: list[tuple[Any, Refusal]] = []
        self.closed: dict[int, Any] = {}  # what must not be used any more
        self.compared: dict[int, Any] = {}  # what the program told apart by identity
        self.met: dict[int, Any] = {}  # values of the call that were found in other places
        self.found_same: dict[int, Any] = {}  # values of the call that another turned out to be
        self.arguments: set[int] = set()  # containers that the caller makes anew in each call
        self.lengths: Any = None  # those that are numbers of the recording
        self.frame: FrameType | None = None  # where the program is
        self.where_in_the_end = ""
        self.forbids: Callable[[Any, Any], str | None] = lambda owner, key: None
        self.handed: Callable[[Any], None] = lambda owner: None
        self.refused: Callable[[Refusal], None] | None = None  # told at once of what is refused
        self.is_left_out = is_left_out
        self.changes = 0  # how often anything was written
        self.recorded = recorded
        self._dictionaries: dict[int, Any] = {}

    @property
    def where(self) -> str:
        """Return the user's line that is run, or that the end of a recording speaks of."""
        return self.where_in_the_end if self.frame is None else line_of(self.frame)

    @property
    def in_library(self) -> bool:
        """Tell whether the code that is run belongs to a library."""
        return self.frame is not None and owner_of(self.frame.f_code) is not Owner.USER

    # -- places ------------------------------------------------------------------------------------

    def read(self, place: PythonPlace) -> Any:
        """Note that a place is read; return what is in it."""
        place = self._canonical(place)
        self.refuse_closed(place.owner, place.text)
        value = place.get()
        if place in self.writes or place in self.reads:
            return value
        self.note(place, value)
        if isinstance(place, ElementPlace):
            self.meet(place.owner).measured = True
        return value

    def note(self, place: PythonPlace, value: Any) -> None:
        """Note that a value was read from a place."""
        self.ages.see(place.owner)
        self.ages.hold(place.owner, value)
        self.reads.setdefault(place, PlaceRead(place, value, self.where))

    def use_opaque(self, owner: Any, key: Any) -> None:
        """Note that part of an object is read whose state the caller looks after."""
        if key not in UNSCHEDULED:
            self.refuse_closed(owner, f"{key} of the {type(owner).__name__}")
        if (why := self.forbids(owner, key)) is not None:
            self.refuse(why)
        self.handed(owner)

    def write(self, place: PythonPlace, value: Any = None) -> None:
        """Note that a place is about to be written; MISSING: to be deleted."""
        self.changes += 1
        place = self._canonical(place)
        self.refuse_closed(place.owner, place.text)
        if value is MISSING:
            self.read(place)  # there must be something to delete
            if isinstance(place, AttributePlace):  # putting it back keeps the order
                self.name_dictionary(dictionary(place.owner), place.owner)
                self.meet(dictionary(place.owner))
        if isinstance(place, (ItemPlace, ElementPlace)):
            contents = self.meet(place.owner)
            contents.measured |= isinstance(place, ElementPlace)
            contents.removed |= value is MISSING
        if place not in self.writes:
            self.ages.see(place.owner)
            self.writes[place] = PlaceWrite(place, place.get(), self.where)

    def place_of(self, owner: Any, name: str) -> PythonPlace:
        """Return the place of an attribute in an object's dictionary, as it is noted here."""
        text = f"{type(owner).__name__}.{name}"
        return self._canonical(ItemPlace(dictionary(owner), name, text))

    def _canonical(self, place: PythonPlace) -> PythonPlace:
        """Return the attribute that an item of an object's dictionary is."""
        if isinstance(place, ItemPlace):
            owner = self._dictionaries.get(id(place.owner))
            if owner is not None and type(place.key) is str:
                return AttributePlace(owner, place.key, f"{type(owner).__name__}.{place.key}")
        return place

    def look_at_attributes(self, owner: Any) -> None:
        """Note that all attributes of an object may be read."""
        if self.is_left_out(owner):
            return
        held = dictionary(owner)
        self.name_dictionary(held, owner)
        self.look(held)
        for name in slot_names(type(owner)):
            self.read(AttributePlace(owner, name, f"{type(owner).__name__}.{name}"))

    def name_dictionary(self, held: dict[str, Any], owner: Any) -> None:
        """Note that a dictionary holds the attributes of an object."""
        self.ages.see(held)
        self.ages.see(owner)
        self.ages.hold(owner, held)
        self._dictionaries[id(held)] = owner

    # -- containers --------------------------------------------------------------------------------

    def meet(self, holder: Any) -> Contents:
        """Return the record of a container; it begins when the container is first met."""
        self.refuse_closed(holder, f"a {type(holder).__name__}")
        found = self.contents.get(id(holder))
        if found is None:
            self.ages.see(holder)
            found = self.contents[id(holder)] = Contents(holder, self.where)
            self._take_back_attributes(found)
        return found

    def _take_back_attributes(self, contents: Contents) -> None:
        """Let the record of an object's dictionary be from before its attributes were written."""
        owner = self._dictionaries.get(id(contents.holder))
        for write in self.writes.values() if owner is not None else ():
            if isinstance(write.place, AttributePlace) and write.place.owner is owner:
                put_item(contents.before, write.place.key, write.before)

    def look(self, value: Any, seen: set[int] | None = None) -> None:
        """Note that all of a value may be read, through all containers in it."""
        seen = set() if seen is None else seen
        kind = container_kind(value)
        if kind is None:
            self._look_at_other(value)
        elif kind is np.ndarray:
            self._look_at_array(value)
        elif id(value) not in seen:
            seen.add(id(value))
            self._look_into(value, kind, seen)

    def _look_at_other(self, value: Any) -> None:
        if is_atom(value) or self.is_left_out(value):
            return
        if is_iterator(value):
            self.go_on(value)
        elif holds_in_c(value):
            self.refuse(f"reads a {type(value).__name__}", value)

    def go_on(self, iterator: Any) -> None:
        """Note that an iterator is used: one that was begun before cannot be wound back."""
        kind = type(iterator).__name__
        self.refuse(f"goes on with a {kind} that was begun before", iterator)

    def _look_into(self, holder: Any, kind: type, seen: set[int]) -> None:
        if len(holder) > MOST_ELEMENTS:
            self.refuse(f"reads a {type(holder).__name__} of {len(holder)} elements", holder)
            return
        self.ages.see(holder)
        if kind not in FROZEN:
            self.meet(holder).looked = True
        if kind is bytearray:
            return
        for element in elements(holder):
            self._look_at_element(holder, element, seen)
        for _, element in items(holder) if kind is dict else ():
            self._look_at_element(holder, element, seen)

    def _look_at_element(self, holder: Any, element: Any, seen: set[int]) -> None:
        self.ages.hold(holder, element)
        if not is_atom(element) and not self.is_left_out(element):
            self.look(element, seen)

    def _look_at_array(self, array: Any) -> None:
        root = array
        while isinstance(root.base, np.ndarray):
            self.ages.hold(root, root.base)
            root = root.base
        if root.nbytes > MOST_BYTES or root.dtype.hasobject:
            reason = f"reads an array of shape {root.shape} that is no argument; pass it as one"
            self.refuse(reason, root)
        else:
            self.meet(root).looked = True

    def measure(self, value: Any) -> None:
        """Note that the length of a value is read."""
        kind = container_kind(value)
        if kind is None or kind is np.ndarray:
            self.look(value)
        elif kind not in FROZEN:
            self.meet(value).measured = True

    def count(self, value: Any) -> None:
        """Note that the length of a value is read by `len`."""
        kind = container_kind(value)
        if kind is list or (kind is deque and value.maxlen is None):
            self.meet(value).counted = True
        else:  # what is added may have been there before
            self.measure(value)

    def change(self, holder: Any) -> None:
        """Note that a container is about to change, in a way that depends on what is in it."""
        self.changes += 1
        self.look(holder)
        if id(holder) in self.contents:
            self.contents[id(holder)].changed = True

    def operate(self, holder: Any, method: str, *values: Any) -> None:
        """Note that a container is about to change, whatever is in it."""
        self.changes += 1
        self.meet(holder).operations.append(BlindChange(method, values))

    def places_changed(self, contents: Contents) -> Iterator[PythonPlace]:
        """Yield the places of a list or dictionary that hold something else than before."""
        holder, before = contents.holder, contents.before
        if isinstance(before, dict):
            for key, value in before.items():
                if dict.get(holder, key, MISSING) is not value:
                    yield self._canonical(ItemPlace(holder, key, f"{contents.text}[{key!r:.40}]"))
        elif container_kind(holder) in (list, deque):
            for i, value in enumerate(before):
                if i >= len(holder) or holder[i] is not value:
                    yield ElementPlace(holder, i, f"{contents.text}[{i}]")

    def keys_written(self, holder: Any) -> set[Any]:
        """Return which items of a container, or attributes of whom it belongs to, were written."""
        owner = self._dictionaries.get(id(holder), holder)
        return {place.key for place in self.writes if place.owner is owner}

    def is_in(self, place: PythonPlace, held: Contents) -> bool:
        """Tell whether a place is one that a container had: an item, or an object's attribute."""
        if isinstance(place, AttributePlace):
            owner = self._dictionaries.get(id(held.holder), MISSING)
            return place.owner is owner and place.key in held.before  # and not in a slot
        return place.owner is held.holder and place.key is not None

    # -- identities --------------------------------------------------------------------------------

    def compare(self, left: Any, right: Any) -> None:
        """Note that two objects are told apart, one of which may be a value of the call."""
        if left is right:
            if self.recorded(left):
                self.found_same[id(left)] = left
            return
        for value in (left, right):
            if self.is_left_out(value) and not self.recorded(value):
                self.compared[id(value)] = value

    def compare_all(self, *values: Any) -> None:
        """Note that values may be told apart from one another, and from what is in them."""
        ours = [value for value in values if self.recorded(value)]
        for holder in values if ours else ():
            if container_kind(holder) in _HOLDERS and len(holder) <= MOST_ELEMENTS:
                for element in elements(holder):
                    for value in ours:
                        self.compare(value, element)

    # -- refusals ----------------------------------------------------------------------------------

    def refuse(self, reason: str, only_if_old: Any = None, *, once: bool = False) -> None:
        """Note that what is done cannot be repeated; for an object, unless that is a new one."""
        if only_if_old is not None:
            if self.ages.was_found_new(only_if_old):  # the first refusal says it all
                return
            self.ages.see(only_if_old)
        refusal = Refusal(reason, self.where, once)
        self.refusals.append((only_if_old, refusal))
        if self.refused is None or self.frame is None:
            return
        if only_if_old is None or self.ages.is_old_by_now(only_if_old):
            self.refused(refusal)

    def refuse_closed(self, owner: Any, text: str) -> None:
        """Refuse to use what changes when the call has ended."""
        if id(owner) in self.closed:
            what = text or f"the {type(owner).__name__}"
            self.refuse(f"uses {what} after its schedule has stepped, in one call")

    def refuse_if_new(self, reason: str, value: Any) -> None:
        """Note that what is done cannot be repeated if an object is one of this call alone."""
        if not is_atom(value) and not is_named(value):
            self.ages.see(value)
            self.refusals_if_new.append((value, Refusal(reason, self.where)))

    def first_refusal(self) -> Refusal | None:
        """Return the first refusal that stands, when ages are known."""
        is_old = self.ages.is_old
        stands = [why for about, why in self.refusals if about is None or is_old(about)]
        stands += [why for about, why in self.refusals_if_new if not is_old(about)]
        return next(iter(stands), None)

    def name_containers(self) -> None:
        """Let containers be called by the places that they were found in."""
        for read in self.reads.values():
            held = self.contents.get(id(read.value))
            if held is not None:
                held.text = read.place.text

    # -- what matters ------------------------------------------------------------------------------

    def old_reads(self) -> Iterator[PlaceRead]:
        """Yield what was read from objects that were there before."""
        return (read for read in self.reads.values() if self._matters(read.place.owner))

    def old_writes(self) -> Iterator[PlaceWrite]:
        """Yield what was written to objects that were there before."""
        return (write for write in self.writes.values() if self.ages.is_old(write.place.owner))

    def old_contents(self) -> Iterator[Contents]:
        """Yield containers that were there before."""
        return (held for held in self.contents.values() if self.ages.is_old(held.holder))

    def _matters(self, owner: Any) -> bool:
        return id(owner) not in self.arguments and self.ages.is_old(owner)
