"""Describe the machine that code is made for: vector width, registers, caches.

    target = host()
    target.lanes("float32")  # 8 with AVX2, 16 with AVX-512, 4 with NEON

Other machines are constructible by name (`avx2()`, `avx512()`, `neon()`), so that their code can be
made and inspected anywhere. Kernels take every width and tile size from here.

WEFT_TARGET=sse2, avx2 or avx512 in the environment chooses the code of a process, which is that of
the machine by default.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from ....core.errors import ArgumentError
from ....core.locks import fork_safe_lock

KIB = 1024
MIB = 1024 * KIB

_LINUX_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_CACHE_FACTS = ("level", "type", "size")


@dataclass(frozen=True)
class Target:
    """A machine, as far as the shape of good code depends on it. The third cache is shared.

    has_fma        whether products are added without being rounded
    has_rounding   whether floats are rounded to whole numbers by instructions
    has_half       whether float16 is converted by instructions
    """

    triple: str
    cpu: str
    features: str
    vector_bytes: int
    registers: int
    has_fma: bool
    has_rounding: bool = True
    has_half: bool = True
    l1_bytes: int = 32 * KIB
    l2_bytes: int = 512 * KIB
    l3_bytes: int = 8 * MIB

    def lanes(self, dtype: Any) -> int:
        """Return how many elements of `dtype` one vector register holds."""
        size: int = np.dtype(dtype).itemsize
        return max(1, self.vector_bytes // size)

    @property
    def architecture(self) -> str:
        """The first part of the triple, with Apple's name for AArch64 made the usual one."""
        name = self.triple.split("-", maxsplit=1)[0]
        return {"arm64": "aarch64", "amd64": "x86_64"}.get(name, name)


@cache
def host() -> Target:
    """Return the machine that this process makes code for: the one it runs on, or WEFT_TARGET."""
    with fork_safe_lock("llvm"):
        features = llvm.get_host_cpu_features()
        triple, cpu = llvm.get_process_triple(), llvm.get_host_cpu_name()
    target = describe(triple, cpu, dict(features), features.flatten())
    wanted = os.environ.get("WEFT_TARGET", "").strip()
    if wanted:
        target = chosen(wanted, target, features)
    return replace(target, **cache_sizes(_LINUX_CACHES))


def target_named(name: str) -> Target:
    """Return the target of a name, whatever this machine can execute; `native` is this machine.

    Caches are those of this machine, as for WEFT_TARGET: blocks of sums follow from them.
    """
    if name == "native":
        return host()
    if name not in CHOICES:
        names = ", ".join(("native", *CHOICES))
        raise ArgumentError(f"target must be one of {names}. Received: {name!r}")
    return replace(CHOICES[name](host().triple), **cache_sizes(_LINUX_CACHES))


def needed_features(target: Target) -> list[str]:
    """Return the features, by LLVM's names, that code for a target of x86-64 may use."""
    named = [name for name, make in CHOICES.items() if make(target.triple).cpu == target.cpu]
    if named:
        return list(_NEEDED[named[0]])
    return [name[1:] for name in target.features.split(",") if name.startswith("+")]


def chosen(name: str, machine: Target, features: Mapping[str, bool]) -> Target:
    """Return the target of a name, if a machine with some features can execute its code."""
    if name not in CHOICES:
        names = ", ".join(CHOICES)
        raise ArgumentError(f"WEFT_TARGET must be one of {names}, or unset. Received: {name!r}")
    if machine.architecture != "x86_64":
        raise ArgumentError(
            f"WEFT_TARGET={name} is code for x86-64, and this machine is {machine.architecture}; "
            "unset it"
        )
    lacking = [feature for feature in _NEEDED[name] if not features.get(feature)]
    if lacking:
        raise ArgumentError(
            f"WEFT_TARGET={name}: this processor ({machine.cpu}) lacks {', '.join(lacking)}; "
            "choose another, or unset it"
        )
    return CHOICES[name](machine.triple)


def cache_sizes(directory: Path) -> dict[str, Any]:
    """Return the cache sizes that Linux tells; none elsewhere, where the usual ones stand."""
    found = {}
    for index in sorted(directory.glob("index*")):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in _CACHE_FACTS)
        except OSError:
            continue
        if kind != "Instruction" and level in "123" and size.endswith("K"):
            found[f"l{level}_bytes"] = int(size[:-1]) * KIB
    return found


def describe(triple: str, cpu: str, features: dict[str, bool], flat: str) -> Target:
    """Derive vector width and register count from the features that LLVM names."""
    if Target(triple, cpu, flat, 16, 16, False).architecture == "aarch64":
        return Target(triple, cpu, flat, vector_bytes=16, registers=32, has_fma=True)
    if features.get("avx512f"):
        return Target(triple, cpu, flat, vector_bytes=64, registers=32, has_fma=True)
    wide = features.get("avx2", False)
    return Target(
        triple,
        cpu,
        flat,
        vector_bytes=32 if wide else 16,
        registers=16,
        has_fma=wide and features.get("fma", False),
        has_rounding=features.get("sse4.1", False),
        has_half=features.get("f16c", False),
    )


def avx2(triple: str = "x86_64-unknown-linux-gnu") -> Target:
    """Return an x86-64 machine with AVX2 and FMA."""
    return Target(triple, "x86-64-v3", "+avx2,+fma", vector_bytes=32, registers=16, has_fma=True)


def avx512(triple: str = "x86_64-unknown-linux-gnu") -> Target:
    """Return an x86-64 machine with AVX-512 that prefers its full vectors."""
    features = "+avx512f,+avx512bw,+avx512dq,+avx512vl,-prefer-256-bit"
    return Target(triple, "x86-64-v4", features, vector_bytes=64, registers=32, has_fma=True)


def sse2(triple: str = "x86_64-unknown-linux-gnu") -> Target:
    """Return the least x86-64 machine: 16-byte vectors, and little beside plain arithmetic."""
    lacks = {"has_fma": False, "has_rounding": False, "has_half": False}
    return Target(triple, "x86-64", "", vector_bytes=16, registers=16, **lacks)


def neon(triple: str = "aarch64-unknown-linux-gnu") -> Target:
    """Return an AArch64 machine: 16-byte vectors, 32 registers."""
    return Target(triple, "generic", "+neon", vector_bytes=16, registers=32, has_fma=True)


CHOICES: dict[str, Callable[[str], Target]] = {"sse2": sse2, "avx2": avx2, "avx512": avx512}
_X86_64_V3 = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_X86_64_V4 = (*_X86_64_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_NEEDED = {"sse2": (), "avx2": _X86_64_V3, "avx512": _X86_64_V4}
