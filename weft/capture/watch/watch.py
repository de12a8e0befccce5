"""Watch a call: see what its Python reads and writes, so that later calls need not run it.

    watch = CallWatch(function, args, kwargs, opaque=..., recorded=...)
    with watch:
        result = function(*args, **kwargs)

While the call runs, every instruction of the user's code is looked at before it is executed. Then

    watch.refusal   why the call cannot be repeated without its Python; None if it can. Of a Python
                    that cannot be watched it is set before the call
    watch.guards    tests that everything that was read is as it was
    watch.effects   what was changed besides tensors, to be repeated
    watch.undo()    puts everything back as it was before the call

What is opaque (tensors, graphs) is left to the caller, as are the arguments: containers in them are
taken to be made anew in each call, other objects to be the same ones.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import _GeneratorContextManager
from dataclasses import is_dataclass
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from .cached import CachedCallPlace
from .effects import Effects, Wrote, find_effects, undo
from .followed import FollowedFrames
from .frames import is_readable
from .guards import Guard, Guards, Versioned, guard_of_contents, guard_of_kind, guard_of_read
from .lengths import LengthPlace, RecordedLengths
from .log import AccessLog, Contents, PlaceRead, Refusal
from .places import (
    ClassPlace,
    ElementPlace,
    MethodPlace,
    PythonPlace,
    dictionary,
)
from .recipes import Recipe
from .templates import Templates
from .trust import is_internal_class
from .values import NUMBERS, is_constant, pairs_in, same_contents

_HERE = os.path.dirname(__file__) + os.sep


class Listener(NamedTuple):
    """Who wants to know what happens.

    wrote     is told of each object that an effect has changed
    handed    is told of opaque objects that code which is not followed is given
    refused   is told of what cannot be repeated before it is done; it may raise to end the call
    read      says why a part of an object must not be read, if that is so
    """

    wrote: Wrote | None = None
    handed: Callable[[Any], None] = lambda value: None
    refused: Callable[[Refusal], None] | None = None
    read: Callable[[Any, Any], str | None] = lambda owner, key: None


class CallWatch:
    """A context in which one call is watched.

    function, args, kwargs   the call
    opaque      tells objects whose state the caller looks after, besides tensors, graphs and such
    fixed       tells objects whose attributes never change in a way that counts
    recorded    tells values that stand for something to be computed in each call
    numbers     places whose number is replaced by a recorded one while the call runs
    held        places that hold recorded values, others in each call
    versioned   gives an object's counter of changes, or None if it has none
    told        is told of what happens
    """

    def __init__(
        self,
        function: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        opaque: Callable[[Any], bool] = lambda value: False,
        fixed: Callable[[Any], bool] = lambda value: False,
        recorded: Callable[[Any], bool] = lambda value: False,
        numbers: Mapping[PythonPlace, Any] | None = None,
        held: Iterable[PythonPlace] = (),
        versioned: Versioned | None = None,
        told: Listener | None = None,
    ) -> None:
        self.refusal = _refusal_of_this_python()
        self.guards = Guards([])
        self.effects = Effects([], None)
        self.number_places: list[PythonPlace] = []
        self.opaque_places: list[PythonPlace] = []
        self.changing: list[PythonPlace] = []
        self._log = AccessLog(self._is_left_out, recorded)
        told = told or Listener()
        self._log.refused, self._log.forbids = told.refused, told.read
        self._log.handed = told.handed
        self._frames = FollowedFrames(self._log)
        self._opaque, self._fixed, self._recorded = opaque, fixed, recorded
        self._numbers = dict(numbers or {})
        self._held = set(held)
        self._originals: dict[PythonPlace, Any] = {}
        self._finals: dict[PythonPlace, Any] = {}
        self._versioned, self._wrote = versioned, told.wrote
        self._methods: set[tuple[int, str]] = set()
        self._templates = Templates(self._log.ages, recorded, self._is_left_out)
        self._given = (function, args, dict(kwargs or {}))
        self._trace = self._frames.trace
        self._lengths = RecordedLengths(self._numbers)
        self._log.lengths = self._lengths

    # -- the context -------------------------------------------------------------------------------

    def __enter__(self) -> CallWatch:
        self._log.where_in_the_end = _line_of(self._given[0])
        if self.refusal is not None:
            self._log.refuse(self.refusal.reason)
        for place, replacement in self._numbers.items():
            self._originals[place] = place.get()
            place.put(replacement)
        self._log.ages.begin()
        self._declare(*self._given)
        if is_readable():
            _refuse_outer(sys.gettrace())
            self._trace.__enter__()
        self._lengths.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._log.frame = None
        self._lengths.__exit__()
        if is_readable():
            if sys.gettrace() != self._trace.function:
                self._log.refuse("installs a trace function: a debugger, perhaps")
            self._trace.__exit__()
        self._log.ages.end()
        try:
            self._conclude()
        except Exception as why:  # never raised into the program that is watched
            self.refusal = Refusal(f"could not be followed: {why!r}", _line_of(self._given[0]))
        for place, original in self._originals.items():
            self._finals[place] = place.get()
            if not isinstance(place, ElementPlace):  # of a list that may be shorter by now
                place.put(original)

    def final(self, place: PythonPlace) -> Any:
        """Return what the call left in one of the places whose number was replaced."""
        return self._finals[place]

    def undo(self) -> None:
        """Put everything back as it was before the call."""
        undo(self._log)
        for place, original in self._originals.items():
            place.put(original)

    def writes(self, owner: Any, key: Any) -> bool:
        """Tell whether the call has written a part of an object so far."""
        return any(w.owner is owner and w.key == key for w in self._log.writes)

    def meet(self, value: Any) -> None:
        """Note that a value of the call was found in another place."""
        self._log.met[id(value)] = value

    def has_met(self, thing: Any) -> bool:
        """Tell whether the call has used an object, or found it anywhere."""
        log = self._log
        held = [*(r.value for r in log.reads.values()), *(w.before for w in log.writes.values())]
        return id(thing) in log.contents or any(value is thing for value in held)

    def uses_any(self, owner: Any, keys: Container[Any]) -> bool:
        """Tell whether the call has read or written some items of an object."""
        places = (*self._log.reads, *self._log.writes)
        return any(place.owner is owner and place.key in keys for place in places)

    def close(self, things: Iterable[Any]) -> None:
        """Let nothing of some objects be used from here on: they change when the call has ended."""
        self._log.closed.update({id(thing): thing for thing in things})

    def refuse_closed(self, thing: Any) -> None:
        """Refuse an object that is closed."""
        self._log.refuse_closed(thing, "")

    def places_of(self, value: Any) -> list[PythonPlace]:
        """Return the places that a value was read from, itself or in a tuple."""
        return [read.place for read in self._log.old_reads() if _is_in(value, read.value)]

    def place_of(self, owner: Any, name: str) -> PythonPlace:
        """Return the place of an attribute that an object holds in its dictionary."""
        return self._log.place_of(owner, name)

    @property
    def changes(self) -> int:
        """Return how often the call has written anything so far."""
        return self._log.changes

    def written_values(self) -> Iterator[Any]:
        """Yield what is now where the call has written, or where others put values for it."""
        for place in (*self._numbers, *self._log.writes):
            if not isinstance(place.owner, _GeneratorContextManager):  # a `with`, to its end
                yield place.get()
        for contents in self._log.contents.values():
            if contents.changed or contents.operations:
                yield contents.holder

    def returns_argument(self, value: Any) -> bool:
        """Tell whether a result is, or holds, a container that the call was given."""
        return any(id(found) in self._log.arguments for found in _containers(value))

    @property
    def where(self) -> str:
        """Return the user's line that is run; that of the function when it has ended."""
        return self._log.where

    @property
    def met(self) -> list[Any]:
        """Return recorded values that were there before, and were also found in other places."""
        return list(self._log.met.values())

    @property
    def found_same(self) -> list[Any]:
        """Return recorded values that were there before, and another turned out to be."""
        return list(self._log.found_same.values())

    @property
    def compared(self) -> list[Any]:
        """Return what the call told apart, by identity, from recorded values."""
        return list(self._log.compared.values())

    @property
    def leaves(self) -> list[Any]:
        """Return the recorded values that effects and recipes ask for."""
        return self._templates.leaves

    def recipe(self, value: Any) -> Recipe:
        """Return how to make a value again, such as a result: call it with (resolve, made)."""
        return self._templates.of(value)

    # -- while it runs -----------------------------------------------------------------------------

    def _is_left_out(self, value: Any) -> bool:
        return is_internal_class(type(value)) or self._opaque(value) or self._recorded(value)

    def _declare(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Say what was there before, and which containers each call makes anew."""
        ages = self._log.ages
        ages.declare_old(function)
        for container in _containers(([*args], kwargs)):
            ages.declare_old(container)
            self._log.arguments.add(id(container))
            for value in _elements(container):
                ages.declare_old(value)

    # -- in the end --------------------------------------------------------------------------------

    def _conclude(self) -> None:
        log = self._log
        log.name_containers()
        self._refuse_written_arguments()
        effects = list(find_effects(log, self._templates))
        self.effects = Effects(effects, self._wrote)
        self._methods = self._find_methods()
        reads = [read for read in log.old_reads() if not self._is_told_by_method(read)]
        writable = [read for read in reads if read.place.is_writable]
        self.number_places = [r.place for r in writable if self._holds_number(r)]
        self.opaque_places = [r.place for r in writable if self._opaque(r.value)]
        written = set(log.writes)
        self.changing = [
            *(r.place for r in reads if r.place in written and r.place.get() is not r.value),
            *(place for held in log.old_contents() for place in self._changing_in(held)),
        ]
        self.guards = Guards(self._guards(reads), self._versioned)
        self.refusal = log.first_refusal()

    def _changing_in(self, held: Contents) -> Iterator[PythonPlace]:
        """Yield what is another after the call, of a container that it depends on."""
        if self._is_argument(held.holder) or isinstance(held.holder, np.ndarray):
            return
        if held.looked:
            yield from self._log.places_changed(held)
        elif held.counted and not held.measured and len(held.holder) != len(held.before):
            yield LengthPlace(held.holder, held.text)

    def _refuse_written_arguments(self) -> None:
        """Refuse changes of containers that the call was given: the next call has others."""
        written = [w.where for w in self._log.old_writes() if self._is_argument(w.place.owner)]
        held = [c for c in self._log.old_contents() if self._is_argument(c.holder)]
        changed = [c.where for c in held if not same_contents(c.holder, c.before)]
        for where in (*written, *changed):
            self._log.where_in_the_end = where
            self._log.refuse("writes into an argument")

    def _is_argument(self, holder: Any) -> bool:
        return id(holder) in self._log.arguments

    def _is_told_by_method(self, read: PlaceRead) -> bool:
        """Tell whether the test of an object's method is also that of its class's function."""
        place = read.place
        if not isinstance(place, ClassPlace) or not isinstance(read.value, FunctionType):
            return False
        return (id(read.value), place.key) in self._methods

    def _find_methods(self) -> set[tuple[int, str]]:
        """Return the functions that are tested as methods of objects without a version."""
        return {
            (id(read.value), read.place.key)
            for read in self._log.old_reads()
            if isinstance(read.place, MethodPlace) and self._is_always_tested(read.place.owner)
        }

    def _is_always_tested(self, owner: Any) -> bool:
        return self._versioned is None or self._versioned(owner) is None

    def _check_cached_call(self, read: PlaceRead) -> None:
        """Refuse the call of a function with a cache on what the call made."""
        if isinstance(read.place, CachedCallPlace):
            call = read.place.key
            for value in (*call.args, *call.kwargs.values()):
                if not is_constant(value) and self._log.ages.is_young(value):
                    self._log.where_in_the_end = read.where
                    self._log.refuse(
                        f"calls {read.place.text}, which has a cache, with new objects"
                    )

    def _holds_number(self, read: PlaceRead) -> bool:
        return type(read.value) in NUMBERS or read.place in self._numbers

    def _guards(self, reads: Iterable[PlaceRead]) -> Iterator[Guard]:
        log = self._log
        looked = {id(held.holder) for held in log.old_contents() if held.looked}
        for read in reads:
            if read.place in self._numbers:
                yield guard_of_kind(read.place, type(self._originals[read.place]), read.where)
            elif read.place in self._held:
                yield guard_of_kind(read.place, type(read.value), read.where)
            elif self._recorded(read.value) and not self._is_met(read):
                log.where_in_the_end = read.where
                log.refuse(f"reads {read.place.text}, which holds a recorded value")
            elif id(read.place.owner) not in looked and not self._fixed(read.place.owner):
                self._check_cached_call(read)
                self._meet_inside(read.value)
                yield guard_of_read(read)
        for held in log.old_contents():
            if not self._is_argument(held.holder):
                yield from self._guards_of_contents(held)

    def _guards_of_contents(self, held: Contents) -> Iterator[Guard]:
        fed = [p for p in (*self._numbers, *self._held) if self._log.is_in(p, held)]
        if held.looked:
            keys = frozenset(place.key for place in fed)
            for key, value in pairs_in(held.before):
                if key not in keys:
                    self._meet_inside(value)
            yield guard_of_contents(held, keys)
        elif held.measured or (held.counted and not self._lengths.has(held.holder)):
            yield guard_of_contents(held)
        for place in fed if held.looked else ():
            before = held.before[place.key]
            value = self._originals[place] if place in self._numbers else before
            yield guard_of_kind(place, type(value), held.where)

    def _meet_inside(self, value: Any) -> None:
        """Note values of the call that are in a tuple which was there before."""
        if type(value) is tuple:
            for part in value:
                self._meet_inside(part)
        elif self._recorded(value) and not getattr(value, "symbolic", True):
            self._log.met[id(value)] = value

    def _is_met(self, read: PlaceRead) -> bool:
        """Note what is a value of the call and was found elsewhere too, if it can be one."""
        if getattr(read.value, "symbolic", True):
            return False
        self._log.met[id(read.value)] = read.value
        return True


def _refusal_of_this_python() -> Refusal | None:
    """Return why no call can be watched, which is known before one runs."""
    if is_readable():
        return None
    return Refusal(f"runs on Python {sys.version.split()[0]}, which cannot be watched", "any line")


def _refuse_outer(tracer: Any) -> None:
    """Let a watch that is running know that it does not see what follows."""
    outer = getattr(tracer, "__self__", None)
    if isinstance(outer, FollowedFrames):
        outer.log.refuse("begins another recording")


def _is_in(value: Any, holder: Any) -> bool:
    """Tell whether a value is an object, or in a tuple that this is."""
    return holder is value or (type(holder) is tuple and any(_is_in(value, x) for x in holder))


def _line_of(function: Any) -> str:
    code = getattr(function, "__code__", None)
    if code is None:
        return "?"
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"


def _containers(value: Any) -> Iterator[Any]:
    """Yield the containers of arguments: a caller takes them apart, and makes them anew."""
    if isinstance(value, (list, tuple, dict)) or (
        is_dataclass(value) and not isinstance(value, type)
    ):
        yield value
        for element in _elements(value):
            yield from _containers(element)


def _elements(container: Any) -> list[Any]:
    if isinstance(container, dict):
        return list(container.values())
    if isinstance(container, (list, tuple)):
        return list(container)
    return list(dictionary(container).values())
