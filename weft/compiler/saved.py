"""Save compiled programs to a file, and find them there: the object cache, taken along."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from ..backends import backend_named
from ..backends.protocol import SavingBackend
from ..backends.store import CacheWarning, user_store
from ..core.device import CPU
from ..core.errors import GraphError, user_stacklevel
from ..core.shape import Shape
from ..graph.node import Value
from ..graph.run import Program
from .cache.bundle import ForeignBundleError, read_bundle, write_bundle
from .cache.programs import named_program

# A program, the shapes of its feeds or None for many sizes, and its machine code.
CompiledProgram = tuple[Program, Mapping[Value, Shape] | None, Any]


def save_programs(
    path: str | os.PathLike[str], name: str, programs: Iterable[CompiledProgram]
) -> None:
    """Write the machine code of programs, and what restores them, to a file."""
    entries: dict[bytes, bytes] = {}
    for compiled in programs:
        entries |= _entries(compiled)
    if not entries:
        raise GraphError(f"{name}: there is no machine code to save yet; call it first")
    entries |= _code(_backend().runtime_keys())
    write_bundle(path, _backend().describe(), entries)


def load_programs(path: str | os.PathLike[str], what: str) -> bool:
    """Let programs that a file holds be found instead of compiled; warn if that cannot be."""
    try:
        entries = read_bundle(path, _backend().describe())
    except ForeignBundleError as error:
        warnings.warn(
            f"{what}: {os.fspath(path)} is not used, and programs are compiled: {error}",
            CacheWarning,
            stacklevel=user_stacklevel(),
        )
        return False
    user_store().lend(entries)
    return True


def _backend() -> SavingBackend:
    backend = backend_named(CPU)
    assert isinstance(backend, SavingBackend), "the CPU's code can be saved"
    return backend


def _entries(compiled: CompiledProgram) -> dict[bytes, bytes]:
    """Return the plan of a program and its code, by their keys; only its code for many sizes."""
    program, shapes, executable = compiled
    plan = getattr(executable, "plan", None)
    if plan is None:  # it is for another device
        return {}
    entries = _code(plan.objects)
    known = None if shapes is None else named_program(program, shapes, _backend().describe())
    packed = None if known is None else known.packed(plan)
    return entries if known is None or packed is None else {**entries, known.key: packed}


def _code(keys: Iterable[bytes]) -> dict[bytes, bytes]:
    """Return code by its keys, as far as it is kept."""
    found = ((key, _backend().code(key)) for key in keys)
    return {key: code for key, code in found if code is not None}
