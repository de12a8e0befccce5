"""How the objects of a program are looked after when a function is recorded.

Tensors, optimizers and the like are opaque: recordings see to them in ways of their own. Modules
are watched as any object of Python's is, but while no module has changed, which a counter tells,
none of their attributes need be looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..core.generated import ObjectNames
from ..core.recordings import LAYERS, OPTIMIZERS
from ..core.tensor import Tensor
from ..nn import Module
from ..nn.version import MODULE_CHANGES, count_change, is_all_counted, is_unseen
from .recorded_size import is_recorded_size
from .watch import WRITTEN, PythonPlace
from .watch.trust import is_internal_class

OURS = tuple(f"weft.{layer}." for layer in ("core", "ops", "graph", "autodiff", "capture"))
PLUMBING = frozenset(("weft.nn.calls",))
COUNTED = ("t", "state", "values", "count")
_FED = object()  # in place of a part that may be another in each call
KEPT = frozenset(("Optimizer", "WeightAverage"))  # their arrays and counters are states of graphs


def is_opaque(thing: Any) -> bool:
    """Tell whether recordings see what happens to an object in other ways."""
    return isinstance(thing, Tensor) or is_fixed(thing) or _is_kept(type(thing)) or is_layer(thing)


def is_layer(thing: Any) -> bool:
    """Tell whether an object is a module of Weft's own, whose code is not followed."""
    return isinstance(thing, Module) and type(thing).__module__.startswith(("weft.nn.", *LAYERS))


def _is_unwatched(module: Module) -> bool:
    """Tell whether reads of a module's attributes are not seen: of layers, and of those derived."""
    return is_layer(module) or is_internal_class(type(module))


def is_fixed(thing: Any) -> bool:
    """Tell whether an object is part of Weft's own works, in which nothing changes that counts."""
    module: Any = type(thing).__module__  # of a class that hides it, it may be anything
    return isinstance(module, str) and (module.startswith(OURS) or module in PLUMBING)


def versioned(owner: Any) -> Sequence[int] | None:
    """Return the count of an object's changes, if there is one, as a list of one number."""
    return MODULE_CHANGES if isinstance(owner, Module) else None


def note_change(owner: Any) -> None:
    """Count a change of an object that was not made by its own methods."""
    if isinstance(owner, Module):
        count_change()


def why_not_read(owner: Any, key: Any) -> str | None:
    """Return why a part of an object must not be read, or written: a program does it in the end."""
    if is_recorded_size(owner):
        return "asks for the class of a size" if key == "__class__" else None
    if key == "__class__" and isinstance(owner, Tensor) and owner.symbolic:
        return "asks for the class of a tensor that it made; use isinstance"
    if not _is_kept(type(owner)):
        return None
    if key is WRITTEN:
        return f"writes to the {type(owner).__name__}"
    if key not in COUNTED:
        return None
    return f"reads {key!r} of the {type(owner).__name__}, which a compiled step writes at its end"


def _is_kept(kind: type) -> bool:
    """Tell whether a class of ours keeps its values in states; a user's may do more."""
    if not kind.__module__.startswith(("weft.optim.", *OPTIMIZERS)):
        return False
    return any(base.__name__ in KEPT for base in kind.__mro__)


# -- modules ---------------------------------------------------------------------------------------


class ModuleTests:
    """What a function depends on of the modules whose code is not followed: all they have.

    Of modules of the user's, whose code is, it is what they are made of: a walk over parameters
    goes through it. What is in `fed` places may be another in each call.
    """

    def __init__(self, fed: Iterable[PythonPlace] = ()) -> None:
        self._fed = frozenset((id(_holder(place)), place.key) for place in fed)
        self._seen: dict[int, tuple[Module, type, dict[str, Any]]] = {}
        self._optimized: list[Any] = []
        self._seen_at = [0]  # the count of changes when all was as noted

    def note(self, thing: Any) -> None:
        """Note a module that is used, with all modules in it, as they are now."""
        if _is_kept(type(thing)):
            self._optimized += getattr(thing, "param_groups", ())
            self._optimized += getattr(thing, "tensors", {}).values()  # of an average
        if isinstance(thing, Module) and id(thing) not in self._seen:
            self._seen[id(thing)] = thing, type(thing), self._parts(thing)
            held = vars(thing)  # and not by its own methods, which would be followed here
            for name in thing._kinds:
                self.note(held[name])

    def tensors(self) -> Iterator[Tensor]:
        """Yield the tensors that these modules, and optimizers that were used, have."""
        for _, _, parts in self._seen.values():
            yield from _tensors_in(parts)
        yield from _tensors_in(self._optimized)

    def replaced(self) -> Iterator[tuple[Module, str]]:
        """Yield modules, and names in them, whose tensor is another than before the call."""
        for module, _, parts in self._seen.values():
            held = vars(module)
            for name, was in parts.items():
                if isinstance(was, Tensor) and (was.symbolic or held.get(name) is not was):
                    yield module, name

    def begin(self) -> None:
        """Take the modules as they are now for those that were noted."""
        self._seen_at[0] = MODULE_CHANGES[0]

    def hold(self) -> bool:
        """Tell whether all modules are as they were; quickly, if nothing has changed at all."""
        now, known = MODULE_CHANGES[0], self._known()
        if now == self._seen_at[0] and not self._counts_too_little():
            return True
        if not all(type(m) is kind and _same(self._parts(m), was) for m, kind, was in known):
            return False
        self._seen_at[0] = now
        return True

    def condition(self, names: ObjectNames) -> str:
        """Return the same as an expression."""
        hold = f"{names.of(self.hold, 'modules')}()"
        if self._counts_too_little():
            return hold
        now, seen = names.of(MODULE_CHANGES, "changes"), names.of(self._seen_at, "seen")
        return f"{now}[0] == {seen}[0] or {hold}"

    def _counts_too_little(self) -> bool:
        """Tell whether a layer was derived: the user's code may change what it holds uncounted."""
        return any(
            not is_layer(m) and not is_all_counted(type(m)) and _is_unwatched(m)
            for m, _, _ in self._known()
        )

    def _known(self) -> list[tuple[Module, type, dict[str, Any]]]:
        return list(self._seen.values())

    def _parts(self, module: Module) -> dict[str, Any]:
        """Return what a module is made of; containers by what they hold."""
        held = vars(module)
        names = held if _is_unwatched(module) else module._kinds
        return {name: self._part(held, name) for name in names if not is_unseen(name)}

    def _part(self, held: dict[str, Any], name: str) -> Any:
        return _FED if (id(held), name) in self._fed else _copied(held[name])


def _holder(place: PythonPlace) -> Any:
    """Return what holds a place: of an attribute, the dictionary."""
    return vars(place.owner) if isinstance(place.owner, Module) else place.owner


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [*map(_copied, value)] if isinstance(value, (list, tuple, set)) else value


def _tensors_in(held: Any) -> Iterator[Tensor]:
    if isinstance(held, Tensor):
        yield held
    elif isinstance(held, (dict, list)):
        for part in held.values() if isinstance(held, dict) else held:
            yield from _tensors_in(part)


def _same(now: Any, was: Any) -> bool:
    """Tell whether two snapshots hold the same objects, or equal numbers and strings."""
    if now is was:
        return True
    if type(now) is not type(was):
        return False
    if isinstance(now, dict):
        return now.keys() == was.keys() and all(_same(now[key], was[key]) for key in now)
    if isinstance(now, list):
        return len(now) == len(was) and all(map(_same, now, was))
    return isinstance(now, (bool, int, float, str, bytes)) and bool(now == was)
