"""What libraries ask a processor for."""

from __future__ import annotations

import sys

import pytest

from weft.backends.cpu.codegen.target import CHOICES, host, needed_features, target_named
from weft.backends.cpu.export.processor import required
from weft.core.errors import ArgumentError


def test_the_least_target_asks_for_nothing():
    assert required(target_named("sse2")) == []


@pytest.mark.parametrize(("name", "mask"), [("avx2", 0x6), ("avx512", 0xE6)])
def test_wide_targets_ask_for_instructions_and_saved_registers(name, mask):
    found = required(target_named(name))
    assert {feature.name for feature in found} >= {"avx2", "fma", "bmi2"}
    assert found[-2].mask == 1 << 27  # whether XCR0 can be read comes before reading it
    assert (found[-1].leaf, found[-1].mask) == (-1, mask)


def test_every_named_feature_can_be_asked_for():
    for name in CHOICES:
        target = target_named(name)
        asked = {feature.name for feature in required(target)}
        assert set(needed_features(target)) <= asked


@pytest.mark.skipif(sys.platform != "linux", reason="ELF is of Linux")
def test_this_machine_asks_for_what_it_has():
    assert target_named("native") is host()
    names = needed_features(host())
    assert {feature.name for feature in required(host())} & set(names) or not names


def test_names_that_there_are_not():
    with pytest.raises(ArgumentError, match="target must be one of native, sse2, avx2, avx512"):
        target_named("pentium")
