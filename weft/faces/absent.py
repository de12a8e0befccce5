"""What a face says of names that it does not have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from .report import note_missing


def _is_shown(name: str, module: dict[str, Any]) -> bool:
    """Tell whether a name is one that programs use; modules that are not announced are Weft's."""
    announced = name in module.get("__all__", ())
    return not name.startswith("_") and (announced or not isinstance(module[name], ModuleType))


def absent_names(
    module: dict[str, Any], reasons: Mapping[str, str], otherwise: str = "", *, shown: str = ""
) -> Callable[[str], Any]:
    """Return `__getattr__` for a module of a face, whose globals are given.

    reasons     names that the framework has and the face has not, each with what to use
    otherwise   what to say of names that are none of these and resemble none that are there
    shown       the module's name in errors: the framework's, where that is expected
    """
    where = module["__name__"]
    shown = shown or where

    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {shown!r} has no attribute {name!r}")
        note_missing(where, name)
        advice = _advice(name)
        error = AttributeError(f"module {shown!r} has no attribute {name!r}{advice}")
        error.advice = advice  # type: ignore[attr-defined]  # for those who import it as a module
        raise error

    def _advice(name: str) -> str:
        if name in reasons:
            return f": {reasons[name]}"
        from difflib import get_close_matches  # noqa: PLC0415  (for those who miss a name)

        near = get_close_matches(name, [n for n in module if _is_shown(n, module)], n=3)
        return f"; did you mean {' or '.join(map(repr, near))}?" if near else otherwise

    return get
