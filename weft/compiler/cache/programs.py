"""Plans on disk: a program that some process has compiled is ready without its compiler.

What names a plan is all that decides about it: the program with the shapes of its feeds, the
machine, the number of threads, the sources of the compiler and the versions of what it stands on.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping

import llvmlite
import numpy as np

from ...backends.cpu.codegen.target import host
from ...backends.cpu.runtime.objects import find_object
from ...backends.cpu.runtime.run_plan import Code, RunPlan
from ...backends.store import user_store
from ...core.config import config
from ...core.shape import Shape
from ...core.sources import sources_digest
from ...core.threads import get_num_threads
from ...graph.identity.fingerprint import Fingerprint, fingerprint
from ...graph.node import Value
from ...graph.run import Program
from .packing import pack, unpack

# The layers that a program goes through, and those that they stand on.
LAYERS = (
    "autodiff",
    "backends",
    "compiler",
    "core",
    "graph",
    "lower",
    "ops",
    "passes",
    "plan",
)


class KnownProgram:
    """A program that has a name, by which its code is found on disk."""

    def __init__(self, known: Fingerprint, key: bytes) -> None:
        self._known = known
        self._key = key

    def find(self) -> Code | None:
        """Return what some process kept, if all of it is there."""
        content = user_store().get(self._key)
        plan = None if content is None else unpack(content, self._known)
        if plan is None:
            return None
        objects = [find_object(key) for key in plan.objects]
        found = [code for code in objects if code is not None]
        return Code(plan, found) if len(found) == len(objects) else None

    def keep(self, plan: RunPlan) -> None:
        """Keep a plan, if it can be told without this process."""
        content = pack(plan, self._known)
        if content is not None:
            user_store().put(self._key, content)


def known_program(program: Program, shapes: Mapping[Value, Shape]) -> KnownProgram | None:
    """Return a program with its name, or None if it has none, or there is no disk."""
    sources = None if user_store().path is None else sources_digest(LAYERS)
    known = None if sources is None else fingerprint(program, shapes)
    if sources is None or known is None:
        return None
    return KnownProgram(known, plan_key(known.digest, sources))


def plan_key(program: bytes, sources: bytes) -> bytes:
    """Return the name of a plan: all that decides about it, digested."""
    parts = (
        "plan",
        program.hex(),
        sources.hex(),
        repr(host()),
        str(get_num_threads()),
        config.default_float,
        llvmlite.__version__,
        np.__version__,
        sys.version,
        sys.platform,
    )
    return hashlib.sha256("\0".join(parts).encode()).digest()
