"""Write plain data as TOML, so that a resolved configuration can be run again."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .errors import UsageError

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(data: Mapping[str, Any]) -> str:
    """Return nested dictionaries and lists as a TOML document; None is left out.

    >>> print(to_toml({"seed": 0, "data": {"split": [0.8, 0.2]}, "layers": [{"type": "ReLU"}]}))
    seed = 0
    <BLANKLINE>
    [data]
    split = [0.8, 0.2]
    <BLANKLINE>
    [[layers]]
    type = "ReLU"
    """
    return "\n".join(_table(data, ())).strip()


def _table(data: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of a table: first what fits on a line, then the tables below it."""
    below = {key: value for key, value in data.items() if _has_header(value)}
    for key, value in data.items():
        if key not in below and value is not None:
            yield f"{_key(key)} = {_value(value)}"
    for key, value in below.items():
        here = (*path, _key(key))
        name = ".".join(here)
        for table in value if isinstance(value, list) else [value]:
            yield ""
            yield f"[[{name}]]" if isinstance(value, list) else f"[{name}]"
            yield from _table(table, here)


def _has_header(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, Mapping) for item in value)
    return isinstance(value, Mapping)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None)
        return f"{{{inside}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    raise UsageError(f"TOML has no place for {type(value).__name__} {value!r:.60}")


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
