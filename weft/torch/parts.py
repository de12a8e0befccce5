"""Modules that PyTorch has besides: names of this face under the names of further modules."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any


def serve_parts(
    package: str, parts: Mapping[str, Mapping[str, Any] | ModuleType]
) -> dict[str, ModuleType]:
    """Let modules of a package be imported that have no file; return them by name.

    parts   what each holds, by name; or the module itself
    """
    found = {
        name: held if isinstance(held, ModuleType) else _part(f"{package}.{name}", held)
        for name, held in parts.items()
    }
    sys.modules.update({f"{package}.{name}": module for name, module in found.items()})
    return found


def _part(name: str, held: Mapping[str, Any]) -> ModuleType:
    module = ModuleType(name, __doc__)
    vars(module).update(held)
    return module
