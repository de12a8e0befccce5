"""What a processor must have to run code, and where it says that it does (CPUID).

A library asks before it runs anything that another processor might not know.
"""

from __future__ import annotations

from typing import NamedTuple

from ..codegen.target import Target, needed_features

EXTENDED_STATE = -1  # in the place of a leaf: which registers the system saves (XCR0)
_EAX, _EBX, _ECX, _EDX = range(4)
_WIDE, _WIDEST = 0x6, 0xE6  # of XCR0: registers of AVX, and of AVX-512


class Feature(NamedTuple):
    """A bit, or several, of a register that CPUID fills."""

    leaf: int
    register: int
    mask: int
    name: str


def _bits(leaf: int, register: int, **names: int) -> dict[str, Feature]:
    spelled = {name.replace("_", "."): bit for name, bit in names.items()}
    return {name: Feature(leaf, register, 1 << bit, name) for name, bit in spelled.items()}


_FEATURES = {
    **_bits(1, _ECX, sse3=0, ssse3=9, fma=12, sse4_1=19, sse4_2=20, movbe=22, popcnt=23, avx=28),
    **_bits(1, _ECX, f16c=29),
    **_bits(7, _EBX, bmi=3, avx2=5, bmi2=8, avx512f=16, avx512dq=17, adx=19, avx512ifma=21),
    **_bits(7, _EBX, avx512cd=28, avx512bw=30, avx512vl=31),
    **_bits(7, _ECX, avx512vbmi=1, avx512vbmi2=6, gfni=8, vaes=9, vpclmulqdq=10, avx512vnni=11),
    **_bits(7, _ECX, avx512bitalg=12, avx512vpopcntdq=14),
    **_bits(7, _EDX, avx512fp16=23),
    **_bits(-(2**31) + 1, _ECX, lzcnt=5),
}
_SAVES_STATE = Feature(1, _ECX, 1 << 27, "a system that saves wide registers")


def required(target: Target) -> list[Feature]:
    """Return what code for a target needs, in an order in which it can be asked for."""
    names = needed_features(target)
    found = [_FEATURES[name] for name in names if name in _FEATURES]
    if any(name.startswith("avx") for name in names):
        mask = _WIDEST if "avx512f" in names else _WIDE
        found += [_SAVES_STATE, Feature(EXTENDED_STATE, _EAX, mask, _SAVES_STATE.name)]
    return found
