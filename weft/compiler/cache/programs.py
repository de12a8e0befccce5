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

from ...backends.store import user_store
from ...core.config import config
from ...core.shape import Shape
from ...core.sources import sources_digest
from ...graph.identity.fingerprint import Fingerprint, fingerprint
from ...graph.node import Value
from ...graph.run import Program
from ...passes.user_rules import user_rules
from ...plan.device import Device
from ...plan.run_plan import RunPlan
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
        self.key = key

    def find(self) -> RunPlan | None:
        """Return what some process kept."""
        content = user_store().get(self.key)
        return None if content is None else unpack(content, self._known)

    def packed(self, plan: RunPlan) -> bytes | None:
        """Return a plan as it is kept, if it can be told without this process."""
        return pack(plan, self._known)

    def keep(self, plan: RunPlan) -> None:
        """Keep a plan, if it can be told without this process."""
        content = self.packed(plan)
        if content is not None:
            user_store().put(self.key, content)


def known_program(
    program: Program, shapes: Mapping[Value, Shape], device: Device
) -> KnownProgram | None:
    """Return a program with its name, or None if it has none, or nothing is kept."""
    return named_program(program, shapes, device) if user_store().is_there else None


def named_program(
    program: Program, shapes: Mapping[Value, Shape], device: Device
) -> KnownProgram | None:
    """Return a program with its name, or None if it has none.

    It has none under rules of the user's: they are Python, which no name can tell.
    """
    if user_rules():
        return None
    sources = sources_digest(LAYERS)
    known = None if sources is None else fingerprint(program, shapes)
    if sources is None or known is None:
        return None
    return KnownProgram(known, plan_key(known.digest, sources, device))


def plan_key(program: bytes, sources: bytes, device: Device) -> bytes:
    """Return the name of a plan: all that decides about it, digested."""
    parts = (
        "plan",
        program.hex(),
        sources.hex(),
        repr(device),
        config.default_float,
        llvmlite.__version__,
        np.__version__,
        sys.version,
        sys.platform,
    )
    return hashlib.sha256("\0".join(parts).encode()).digest()
