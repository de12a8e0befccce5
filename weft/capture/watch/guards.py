"""What a program read, as tests that everything is as it was.

`Guards.compile()` writes one function of straight-line comparisons. What stays the same object is
compared by identity, which is nearly all; numbers and strings that are not are compared by value.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.generated import ObjectNames, define
from ...core.specialize import function, indent
from .log import Contents, PlaceRead
from .places import PythonPlace, dictionary, is_empty
from .values import (
    MAPPINGS,
    MISSING,
    MUTABLE,
    describe,
    find,
    is_constant,
    same,
    same_array,
    same_but,
    same_contents,
)

_KEY = "_weft_key_"
Versioned = Callable[[Any], Sequence[int] | None]
GONE = (AttributeError, KeyError, IndexError, ValueError, TypeError, RuntimeError, NameError)


class Guard(NamedTuple):
    """Something that was read, and what it was.

    text       what a message calls it
    now        reads it again
    was        what it was
    where      the line that read it
    condition  the expression of the test, by names
    names      what the names stand for
    owner      the object that it belongs to
    """

    text: str
    now: Callable[[], Any]
    was: Any
    where: str
    condition: str
    names: dict[str, Any]
    owner: Any

    def holds(self) -> bool:
        """Tell whether it is as it was."""
        try:
            found = eval(self.condition, dict(HELPERS), self.names)
        except GONE:
            return False
        return bool(found)

    def __str__(self) -> str:
        text, was, now = _narrowed(self.text, self.was, self._now())
        shown = "missing" if now is MISSING else describe(now)
        if now is not was and shown == describe(was):
            shown = f"another {type(now).__name__}"
        return f"{text} was {describe(was)}, is {shown} ({self.where})"

    def _now(self) -> Any:
        try:
            return self.now()
        except GONE:
            return MISSING


def _narrowed(text: str, was: Any, now: Any) -> tuple[str, Any, Any]:
    """Return the first item that differs, of containers that cannot be shown as a whole."""
    if was is now or not describe(now).startswith("a "):
        return text, was, now
    pairs = [dict(enumerate(x)) if type(x) is list else x for x in (was, now)]
    if not isinstance(pairs[0], dict) or not isinstance(pairs[1], dict):
        return text, was, now
    for key in {**pairs[0], **pairs[1]}:
        then, found = (dict.get(pair, key, MISSING) for pair in pairs)
        if not same(then, found):
            return f"{text}[{describe(key)}]", then, found
    return text, was, now


class Guards:
    """All tests of a recording."""

    def __init__(self, found: Iterable[Guard], versioned: Versioned | None = None) -> None:
        self._found = list(found)
        self._versioned = versioned or (lambda owner: None)

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Any:
        return iter(self._found)

    def failed(self) -> list[str]:
        """Return what has changed, as text."""
        return [str(guard) for guard in self._found if not guard.holds()]

    def compile(self) -> Callable[[], bool]:
        """Return a function that tells whether everything is as it was."""
        names = ObjectNames()
        return _defined(self.conditions(names), names)

    def conditions(self, names: ObjectNames) -> list[str]:
        """Return expressions that are all true if everything is as it was.

        They may raise one of GONE, which means that it is not, and use the names of HELPERS.
        Guards on what counts its changes are one expression, which looks at the count first.
        """
        plain: list[Guard] = []
        counted: dict[int, tuple[Sequence[int], list[Guard]]] = {}
        for guard in self._found:
            count = self._versioned(guard.owner)
            some = plain if count is None else counted.setdefault(id(count), (count, []))[1]
            some.append(guard)
        return [
            *_conditions(plain, names),
            *(_by_count(count, guards, names) for count, guards in counted.values()),
        ]

    def source(self) -> str:
        """Return the text of the tests."""
        return _source(_conditions(self._found, ObjectNames()))


def _by_count(count: Sequence[int], guards: list[Guard], names: ObjectNames) -> str:
    """Return a condition that looks at its guards only if a count of changes is another."""
    looked_at, own = [-1], ObjectNames()  # when this is written, things may be other than they were
    holds = _defined(_conditions(guards, own), own)

    def still() -> bool:
        now = count[0]
        if not holds():
            return False
        looked_at[0] = now
        return True

    now, then = names.of(count, "changes"), names.of(looked_at, "seen")
    return f"{now}[0] == {then}[0] or {names.of(still, 'still')}()"


def _conditions(guards: Iterable[Guard], names: ObjectNames) -> list[str]:
    return list(dict.fromkeys(_renamed(guard, names) for guard in guards))


def _defined(conditions: Iterable[str], names: ObjectNames) -> Callable[[], bool]:
    return define("holds", _source(conditions), {**HELPERS, **names.scope}, "guards")


def _source(conditions: Iterable[str]) -> str:
    return function("holds", "", lines_that_hold(conditions)) + "\n"


def lines_that_hold(conditions: Iterable[str]) -> list[str]:
    """Return the body of a function that tells whether conditions hold; what is gone does not."""
    tests = [line for text in conditions for line in (f"if not ({text}):", "    return False")]
    return ["try:", *indent([*tests, "return True"]), "except GONE:", "    return False"]


def _renamed(guard: Guard, names: ObjectNames) -> str:
    """Return the condition of a guard with names that all guards share."""
    text = guard.condition
    for old, value in guard.names.items():
        text = text.replace(old, _written(old, value, names))
    return text


def _written(name: str, value: Any, names: ObjectNames) -> str:
    """Return how a text mentions an object: by itself, if that is one for sure, or by a name."""
    if value is None or value is True or value is False:
        return repr(value)
    is_key = name == _KEY and type(value) in (str, int)
    return repr(value) if is_key else names.of(value, "known")


# -- the tests -------------------------------------------------------------------------------------


def guard_of_read(read: PlaceRead) -> Guard:
    """Return the test that a place holds what it held."""
    place, value = read.place, read.value
    names = {"$owner": place.owner, "$key": place.key, "$value": value}
    if value is MISSING:
        condition = place.source_of_absence("$owner", "$key")
    else:
        condition = is_value(place.source("$owner", "$key"), value)
    return _guard(place.text, place.get, value, read.where, condition, names, place.owner)


def guard_of_kind(place: PythonPlace, kind: type, where: str) -> Guard:
    """Return the test that a place holds a number of some type, whatever it is."""
    names = {"$owner": place.owner, "$key": place.key, "$value": kind}
    condition = f"type({place.source('$owner', '$key')}) is $value"
    return _guard(
        f"the type of {place.text}", place.get, kind, where, condition, names, place.owner
    )


def is_value(source: str, value: Any) -> str:
    """Return the condition that an expression has a value."""
    if value is None or value is True or value is False or not is_constant(value):
        return f"{source} is $value"
    return f"(found := {source}) is $value or same(found, $value)"


def guard_of_contents(contents: Contents, fed: frozenset[Any] = frozenset()) -> Guard:
    """Return the test that a container holds what it held, or as many.

    fed   keys, or positions, of what may be another each time
    """
    holder, before = contents.holder, contents.before
    if not contents.looked:
        text, count = f"the length of {contents.text}", len(before)
        names = {"$holder": holder, "$count": count}
        condition = "len($holder) == $count"
        return _guard(text, lambda: len(holder), count, contents.where, condition, names, holder)
    names = {"$holder": holder, "$before": before, "$fed": fed}
    if fed:
        condition = "same_but($holder, $before, $fed)"
    elif isinstance(holder, np.ndarray):
        condition = "same_array($holder, $before)"
    else:
        condition = _condition_on_contents(holder, before)
    was = list(before) if isinstance(holder, list) else before
    return _guard(contents.text, lambda: holder, was, contents.where, condition, names, holder)


def _condition_on_contents(holder: Any, before: Any) -> str:
    """Return the condition that all elements are the same objects, or at least as good."""
    if not before:
        return "not $holder" if type(holder) in MUTABLE else "same_contents($holder, $before)"
    if type(holder) in (list, deque):
        alike = "len($holder) == len($before) and all(map(is_, $holder, $before))"
    elif type(holder) in MAPPINGS:
        alike = "len($holder) == len($before) and all(map(is_, $holder, $before)) and "
        alike += "all(map(is_, $holder.values(), $before.values()))"
    else:
        return "same_contents($holder, $before)"
    return f"{alike} or same_contents($holder, $before)"


def _guard(
    text: str, now: Any, was: Any, where: str, condition: str, names: dict[str, Any], owner: Any
) -> Guard:
    used = {f"_weft_{name[1:]}_": value for name, value in names.items() if name in condition}
    for name in names:
        condition = condition.replace(name, f"_weft_{name[1:]}_")
    return Guard(text, now, was, where, condition, used, owner)


HELPERS: dict[str, Any] = {
    "is_": operator.is_,
    "same": same,
    "same_array": same_array,
    "same_but": same_but,
    "same_contents": same_contents,
    "dictionary": dictionary,
    "find": find,
    "is_empty": is_empty,
    "GONE": GONE,
    "MISSING": MISSING,
}
