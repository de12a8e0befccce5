"""What a call changed besides tensors, to be repeated by each call and, once, to be taken back."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from .log import AccessLog, BlindChange, Contents, PlaceWrite, copy_of
from .places import ElementPlace, ItemPlace, put_item
from .recipes import Made, Recipe, Resolve
from .templates import Templates, UnrepeatableError
from .values import MISSING, container_kind, same_array, same_contents

Wrote = Callable[[Any], None]


class Effect:
    """One change: `apply(resolve)` makes it, with recorded values replaced by resolve(value).

    text    what changes: "self.count"
    where   the line that changed it
    """

    def __init__(self, owner: Any, text: str, where: str, change: Callable[[Resolve, Made], None]):
        self.owner = owner
        self.text = text
        self.where = where
        self._change = change

    def apply(self, resolve: Resolve, made: Made | None = None) -> None:
        """Make the change; effects of one repetition share what they make in `made`."""
        self._change(resolve, {} if made is None else made)

    def __repr__(self) -> str:
        return f"<effect on {self.text} ({self.where})>"


class Effects(Sequence[Effect]):
    """All changes of a call, in an order in which they can be repeated."""

    def __init__(self, found: Iterable[Effect], wrote: Wrote | None) -> None:
        self._found = list(found)
        self._wrote = wrote

    def __getitem__(self, index: Any) -> Any:
        return self._found[index]

    def __len__(self) -> int:
        return len(self._found)

    def append(self, call: Callable[[], Any], where: str) -> None:
        """Let something be called behind all changes."""
        self._found.append(Effect(None, "the end of the call", where, lambda r, m: call()))

    def apply(self, resolve: Resolve, made: Made | None = None) -> None:
        """Make all changes."""
        made = {} if made is None else made
        for effect in self._found:
            effect.apply(resolve, made)
            if self._wrote is not None:
                self._wrote(effect.owner)


def find_effects(log: AccessLog, templates: Templates) -> Iterator[Effect]:
    """Yield the changes to what was there before; refuse those that cannot be repeated."""
    whole: set[int] = set()
    for contents in log.old_contents():
        effects = _effects_on(contents, templates, log)
        if effects is not None:
            whole.add(id(contents.holder))
            yield from effects
    for write in log.old_writes():
        if id(write.place.owner) not in whole:
            yield from _try(log, write, partial(_put_alone, write, templates))


def _try(log: AccessLog, cause: Any, make: Callable[[], list[Effect]]) -> list[Effect]:
    """Return effects, or refuse what cannot be made again."""
    try:
        return make()
    except UnrepeatableError as error:
        text = cause.place.text if isinstance(cause, PlaceWrite) else cause.text
        log.where_in_the_end = cause.where
        log.refuse(f"puts {error} into {text}")
        return []


def _put_alone(write: PlaceWrite, templates: Templates) -> list[Effect]:
    return [_put(write, templates)]


def _put(write: PlaceWrite, templates: Templates) -> Effect:
    place, final = write.place, write.place.get()
    if final is MISSING:
        return Effect(place.owner, place.text, write.where, lambda r, m: place.put(MISSING))
    recipe = templates.of(final)
    change = lambda resolve, made: place.put(recipe(resolve, made))  # noqa: E731
    return Effect(place.owner, place.text, write.where, change)


def _effects_on(contents: Contents, templates: Templates, log: AccessLog) -> list[Effect] | None:
    """Return the changes of a container as a whole; None if its items are told one by one."""
    holder = contents.holder
    if isinstance(holder, np.ndarray):
        if not same_array(holder, contents.before):
            log.where_in_the_end = contents.where
            log.refuse("writes into an array", holder)
        return []
    contents.changed |= not _is_explained(contents, log)
    is_looked_at = contents.changed or contents.looked or contents.measured
    if contents.operations and not is_looked_at:
        return _try(log, contents, lambda: _repeated(contents, templates))
    if contents.changed or contents.operations or _order_differs(contents):
        contents.looked = True
        return _try(log, contents, lambda: _refilled(contents, templates))
    if isinstance(holder, dict):
        return _try(log, contents, lambda: _items(contents, templates, log))
    return None


def _is_explained(contents: Contents, log: AccessLog) -> bool:
    """Tell whether a container changed only as was seen: code that is not followed may write."""
    if contents.operations or contents.changed:
        return True
    final, before = copy_of(contents.holder), contents.before
    if not isinstance(final, (dict, tuple)):
        return same_contents(contents.holder, before)
    written = log.keys_written(contents.holder)
    if isinstance(final, tuple):
        pairs = enumerate(zip(final, before, strict=False))
        same_length = len(final) == len(before)
        return same_length and all(now is then for i, (now, then) in pairs if i not in written)
    keys = (key for key in {**before, **final} if key not in written)
    return all(final.get(key, MISSING) is before.get(key, MISSING) for key in keys)


def _order_differs(contents: Contents) -> bool:
    if not isinstance(contents.holder, dict):
        return False
    return contents.removed and list(contents.holder) != [
        key for key in contents.before if key in contents.holder
    ]


def _repeated(contents: Contents, templates: Templates) -> list[Effect]:
    return [_operation(contents, operation, templates) for operation in contents.operations]


def _operation(contents: Contents, operation: BlindChange, templates: Templates) -> Effect:
    holder = contents.holder
    method = getattr(container_kind(holder), operation.method)
    recipes = [templates.of(value) for value in operation.values]
    on_each = operation.method in ("extend", "extendleft", "update")

    def change(resolve: Resolve, made: Made) -> None:
        values = [recipe(resolve, made) for recipe in recipes]
        method(holder, values) if on_each else method(holder, *values)

    return Effect(holder, contents.text, contents.where, change)


def _refilled(contents: Contents, templates: Templates) -> list[Effect]:
    """Return the change that puts what the call left in a container into it."""
    holder, final = contents.holder, copy_of(contents.holder)
    if same_contents(holder, contents.before):
        return []
    if isinstance(final, dict):
        pairs = [(templates.of(key), templates.of(value)) for key, value in final.items()]
        made_of: Recipe = lambda r, m: [(key(r, m), value(r, m)) for key, value in pairs]  # noqa: E731
    else:
        parts = [templates.of(value) for value in final]
        made_of = lambda r, m: [part(r, m) for part in parts]  # noqa: E731
    change = lambda resolve, made: refill(holder, made_of(resolve, made))  # noqa: E731
    return [Effect(holder, contents.text, contents.where, change)]


def _items(contents: Contents, templates: Templates, log: AccessLog) -> list[Effect]:
    """Return the changes of items of a dictionary: removals, then the rest in its order."""
    holder = contents.holder
    writes = [w for w in log.writes.values() if w.place.owner is holder]
    removed = [w for w in writes if w.place.get() is MISSING]
    order = {id(key): i for i, key in enumerate(holder)}
    rest = [w for w in writes if w.place.get() is not MISSING]
    rest.sort(key=lambda w: order.get(id(w.place.key), len(order)))
    return [_put(write, templates) for write in [*removed, *rest]]


def refill(holder: Any, contents: Iterable[Any]) -> None:
    """Let a container hold these contents alone, past what its class has for changing it."""
    values, kind = list(contents), container_kind(holder)
    if kind is list or kind is bytearray:
        kind.__setitem__(holder, slice(None), values)
    elif kind is set or kind is deque:
        kind.clear(holder)
        (set.update if kind is set else deque.extend)(holder, values)
    else:
        _clear(holder)
        for key, value in values:
            put_item(holder, key, value)


def _clear(holder: Any) -> None:
    (OrderedDict if isinstance(holder, OrderedDict) else dict).clear(holder)


def undo(log: AccessLog) -> None:
    """Let everything that was there before be as it was."""
    for contents in log.old_contents():
        before = contents.before
        if isinstance(contents.holder, np.ndarray):
            if not same_array(contents.holder, before):
                contents.holder[...] = before
        elif not same_contents(contents.holder, before):
            refill(contents.holder, before.items() if isinstance(before, dict) else before)
    for write in log.old_writes():
        if not isinstance(write.place, (ItemPlace, ElementPlace)):
            write.place.put(write.before)
