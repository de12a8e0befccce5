"""Shared libraries that the system's loader takes."""

from __future__ import annotations

import ctypes
import sys

import pytest

from weft.backends.cpu.codegen.target import sse2
from weft.backends.cpu.export.elf import dynamic_symbols, needed_libraries
from weft.backends.cpu.export.image import Address, Image
from weft.backends.cpu.export.shared_library import write_shared_library
from weft.backends.cpu.runtime.linking import compile_module

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ELF is of Linux")

TEXT = """
target triple = "x86_64-unknown-linux-gnu"
@words = external global i8
@count = internal global i64 40
@pointer = global ptr @count
declare i64 @strlen(ptr)
declare extern_weak void @there_is_no_such_function()
define i64 @length(ptr %text) {
  %n = call i64 @strlen(ptr %text)
  ret i64 %n
}
define i64 @word(i64 %i) {
  %at = getelementptr i64, ptr @words, i64 %i
  %x = load i64, ptr %at
  ret i64 %x
}
define i64 @counted() {
  %p = load ptr, ptr @pointer
  %n = load i64, ptr %p
  %next = add i64 %n, 1
  store i64 %next, ptr %p
  ret i64 %next
}
define i1 @is_missing() {
  %x = icmp eq ptr @there_is_no_such_function, null
  ret i1 %x
}
define ptr @blob() {
  %at = getelementptr i64, ptr @words, i64 1
  %p = load ptr, ptr %at
  ret ptr %p
}
define internal void @secret() {
  ret void
}
"""
EXPORTS = ["length", "word", "counted", "is_missing", "blob"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    image = Image()
    image.add_object(compile_module(TEXT, sse2()))
    image.add_data("words", [-5, Address("many")])
    image.add_blob("many", [b"abc", b"def\0"], 7)
    path = tmp_path_factory.mktemp("library") / "made.so"
    with open(path, "wb") as file:
        write_shared_library(
            file,
            image,
            exports=EXPORTS,
            soname="made.so",
            needed=["libc.so.6"],
            optional=["there_is_no_such_function"],
        )
    return path


def test_functions_are_called_and_data_is_found(path):
    library = ctypes.CDLL(str(path))
    assert library.length(b"twelve chars") == 12
    library.word.restype = ctypes.c_int64
    assert library.word(ctypes.c_int64(0)) == -5
    assert [library.counted() for _ in range(3)] == [41, 42, 43]
    assert library.is_missing() & 1 == 1
    library.blob.restype = ctypes.c_char_p
    assert library.blob() == b"abcdef"


def test_only_what_is_exported_is_found(path):
    with pytest.raises(AttributeError):
        ctypes.CDLL(str(path)).secret  # noqa: B018  (looking it up is the test)
    content = path.read_bytes()
    assert needed_libraries(content) == ["libc.so.6"]
    symbols = {symbol.name: symbol.is_defined for symbol in dynamic_symbols(content)}
    assert {name for name, here in symbols.items() if here} == set(EXPORTS)
    assert {name for name, here in symbols.items() if not here} == {
        "strlen",
        "there_is_no_such_function",
    }
