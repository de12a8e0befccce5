"""Checks that a schema is made of: each looks at one value, and returns it with defaults.

A check never raises: it reports to its Place, so that a user sees all problems of a file at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..train.options import kind_of
from ..train.registry import Entry, Registry, hint
from .config import ConfigSource
from .errors import ConfigError
from .toml_lines import Path as Keys

REQUIRED: Any = object()
OPTIONAL: Any = None


@dataclass
class ValuePlace:
    """Where in a configuration a value stands, and the problems found so far."""

    source: ConfigSource
    keys: Keys = ()
    problems: list[str] = field(default_factory=list)

    def at(self, key: str | int) -> ValuePlace:
        """Return the place of a part of this value."""
        return ValuePlace(self.source, (*self.keys, key), self.problems)

    def problem(self, message: str) -> None:
        """Report what is wrong here."""
        self.problems.append(str(self.source.error(self.keys, message)))

    @property
    def title(self) -> str:
        """Return what to call this value in a message."""
        parts = ["".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in self.keys)]
        return parts[0].removeprefix(".") or "the configuration"

    def raise_problems(self) -> None:
        """Raise all problems as one error, if there are any."""
        if self.problems:
            raise ConfigError("\n".join(dict.fromkeys(self.problems)))


Check = Callable[[ValuePlace, Any], Any]


@dataclass(frozen=True)
class Field:
    """One key of a table: its check, and what it is when it is not given."""

    check: Check
    default: Any = OPTIONAL


Fields = Mapping[str, Field]


# -- scalars and lists ---------------------------------------------------------------------------


def integer(least: int = 0) -> Check:
    """Return a check for integers from `least` on."""

    def check(place: ValuePlace, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int):
            _wrong_kind(place, "an integer", value)
        elif value < least:
            place.problem(f"{place.title} must be at least {least}. Received: {value}")
        return value

    return check


def number(
    least: float = -math.inf, most: float = math.inf, *, above: float | None = None
) -> Check:
    """Return a check for numbers of a range; they must lie `above` a bound, if that is given."""

    def check(place: ValuePlace, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            _wrong_kind(place, "a number", value)
        elif not least <= value <= most or (above is not None and not value > above):
            bounds = f"above {above:g}" if above is not None else f"from {least:g} to {most:g}"
            place.problem(f"{place.title} must be {bounds}. Received: {value}")
        return value

    return check


def flag(place: ValuePlace, value: Any) -> Any:
    """Check that a value is true or false."""
    if not isinstance(value, bool):
        _wrong_kind(place, "true or false", value)
    return value


def text(place: ValuePlace, value: Any) -> Any:
    """Check that a value is a string that is not empty."""
    if isinstance(any_text(place, value), str) and not value.strip():
        place.problem(f"{place.title} must not be empty")
    return value


def any_text(place: ValuePlace, value: Any) -> Any:
    """Check that a value is a string, which may be empty."""
    if not isinstance(value, str):
        _wrong_kind(place, "a string", value)
    return value


def choice(*known: Any) -> Check:
    """Return a check for one of a few values."""

    def check(place: ValuePlace, value: Any) -> Any:
        if not any(value == one and type(value) is type(one) for one in known):
            shown = ", ".join(map(_shown, known))
            near = hint(value, [k for k in known if isinstance(k, str)]) if _is_text(value) else ""
            extra = f"; {near}" if near.startswith("did") else ""
            place.problem(f"{place.title} must be one of {shown}{extra} Received: {_shown(value)}")
        return value

    return check


def listing(item: Check, least: int = 0) -> Check:
    """Return a check for lists."""

    def check(place: ValuePlace, value: Any) -> Any:
        if not isinstance(value, list):
            _wrong_kind(place, "a list", value)
            return value
        if len(value) < least:
            place.problem(f"{place.title} needs at least {least} entries. Received: {len(value)}")
        return [item(place.at(i), one) for i, one in enumerate(value)]

    return check


def either(*checks: tuple[type | tuple[type, ...], Check]) -> Check:
    """Return a check that depends on the type of the value; the last one takes the rest."""

    def check(place: ValuePlace, value: Any) -> Any:
        for kind, one in checks[:-1]:
            if isinstance(value, kind):
                return one(place, value)
        return checks[-1][1](place, value)

    return check


# -- tables --------------------------------------------------------------------------------------


def table(fields: Fields) -> Check:
    """Return a check for tables with known keys; defaults are filled in."""

    def check(place: ValuePlace, value: Any) -> Any:
        if not is_table(place, value):
            return value
        known_keys(place, value, fields)
        return checked_fields(place, value, fields)

    return check


def mapping(item: Check) -> Check:
    """Return a check for tables with any keys."""

    def check(place: ValuePlace, value: Any) -> Any:
        if not is_table(place, value):
            return value
        return {key: item(place.at(key), one) for key, one in value.items()}

    return check


def is_table(place: ValuePlace, value: Any) -> bool:
    """Tell whether a value is a table; report it if not."""
    if isinstance(value, dict):
        return True
    _wrong_kind(place, f"a table, written [{place.title}]", value)
    return False


def known_keys(place: ValuePlace, value: Mapping[str, Any], known: Iterable[str]) -> None:
    """Report the keys of a table that are not known, each with the nearest one that is."""
    names = list(known)
    for key in value:
        if key not in names:
            place.at(key).problem(f"{place.title} has no key {key!r}; {hint(key, names)}")


def checked_fields(place: ValuePlace, value: Mapping[str, Any], fields: Fields) -> dict[str, Any]:
    """Return the fields of a table, checked, with defaults for those that are not given."""
    result: dict[str, Any] = {}
    for key, one in fields.items():
        if key in value:
            result[key] = one.check(place.at(key), value[key])
        elif one.default is REQUIRED:
            place.problem(f"{place.title} needs the key {key!r}")
        elif one.default is not OPTIONAL:
            result[key] = one.default
    return result


# -- tables with a type --------------------------------------------------------------------------


def typed(
    registry: Registry,
    fields: Fields | None = None,
    inferred: Callable[[str], bool] = lambda name: False,
) -> Check:
    """Return a check for tables whose `type` is in a registry; a string stands for the type alone.

    fields     keys that every such table may have besides the options of its type
    inferred   tells which options may be missing because the run knows them
    """
    extra = fields or {}

    def check(place: ValuePlace, value: Any) -> Any:
        given = {"type": value} if isinstance(value, str) else value
        if not is_table(place, given):
            return value
        entry = entry_of(place, given, registry)
        if entry is None:
            return given
        known_keys(place, given, ["type", *extra, *entry.options])
        options = checked_options(place, given, entry, extra, inferred)
        return {"type": entry.name, **options, **checked_fields(place, given, extra)}

    return check


def entry_of(place: ValuePlace, value: Mapping[str, Any], registry: Registry) -> Entry | None:
    """Return what the type of a table stands for, or report that it stands for nothing."""
    if "type" not in value:
        place.problem(
            f"{place.title} needs the key 'type', the name of a {registry.kind}"
            + _type_hint(value, registry)
        )
        return None
    name = value["type"]
    if not isinstance(name, str) or name not in registry:
        what = hint(name, registry) if isinstance(name, str) else "it must be a string"
        place.at("type").problem(f"there is no {registry.kind} {name!r}; {what}")
        return None
    return registry[name]


def _type_hint(value: Mapping[str, Any], registry: Registry) -> str:
    """Return a hint for those who wrote `name =` or `kind =` instead of `type =`."""
    for key, one in value.items():
        if isinstance(one, str) and one in registry:
            return f"; did you mean type = {one!r} instead of {key} = {one!r}?"
    return ""


def checked_options(
    place: ValuePlace,
    value: Mapping[str, Any],
    entry: Entry,
    reserved: Iterable[str],
    inferred: Callable[[str], bool],
) -> dict[str, Any]:
    """Return the options of a typed table after looking at their kinds."""
    taken = set(reserved)
    options = {}
    for name, option in entry.options.items():
        if name in taken:
            continue
        if name in value:
            problem = option.problem(value[name])
            if problem is not None:
                place.at(name).problem(f"{entry.name}: {problem}")
            options[name] = value[name]
        elif option.required and not option.may_be_none and not inferred(name):
            place.problem(f"{place.title}: {entry.name} needs the option {name!r}")
    return options


# -- helpers -------------------------------------------------------------------------------------


def identifier(place: ValuePlace, value: Any) -> Any:
    """Check that a value can be the name of a layer or an input."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z_]\w*", value):
        place.problem(
            f"{place.title} must be a name of letters, digits and underscores. "
            f"Received: {_shown(value)}"
        )
    return value


def _wrong_kind(place: ValuePlace, wanted: str, value: Any) -> None:
    place.problem(f"{place.title} must be {wanted}. Received: {_shown(value)} ({kind_of(value)})")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value!r:.60}"
