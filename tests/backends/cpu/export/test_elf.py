"""Object code and shared libraries, taken apart."""

from __future__ import annotations

import sys

import pytest

from weft.backends.cpu.codegen.target import sse2
from weft.backends.cpu.export import elf
from weft.backends.cpu.runtime.linking import compile_module

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ELF is of Linux")

TEXT = """
target triple = "x86_64-unknown-linux-gnu"
@table = constant [2 x double] [double 1.5, double 2.5], align 16
@zeros = global [4 x i64] zeroinitializer
declare double @elsewhere(double)
define double @here(i64 %i) {
  %at = getelementptr double, ptr @table, i64 %i
  %x = load double, ptr %at
  %y = call double @elsewhere(double %x)
  ret double %y
}
"""


@pytest.fixture(scope="module")
def parts():
    return elf.read_object(compile_module(TEXT, sse2()))


def test_symbols_are_defined_here_or_wanted_from_elsewhere(parts):
    symbols = {symbol.name: symbol for symbol in parts.symbols if symbol.name}
    assert symbols["here"].is_defined
    assert symbols["here"].kind == elf.STT_FUNC
    assert symbols["table"].is_defined
    assert symbols["table"].size == 16
    assert not symbols["elsewhere"].is_defined


def test_sections_have_content_and_relocations(parts):
    loaded = {s.name: s for s in parts.sections if s.is_loaded and s.size}
    assert len(loaded[".text"].relocations) >= 2
    assert {r.kind for r in loaded[".text"].relocations} & {elf.R_PLT32}
    zeros = next(s for s in loaded.values() if s.kind == elf.SHT_NOBITS)
    assert (zeros.size, zeros.content) == (32, b"")
    assert ".eh_frame" not in loaded


@pytest.mark.parametrize("content", [b"", b"text", b"\x7fELF" + bytes(10)])
def test_what_is_no_elf_is_refused(content):
    with pytest.raises(elf.ElfError, match="this is no ELF file"):
        elf.read_object(content)


def test_object_code_is_no_library():
    with pytest.raises(elf.ElfError, match="expected ELF of kind 3"):
        elf.needed_libraries(compile_module(TEXT, sse2()))
