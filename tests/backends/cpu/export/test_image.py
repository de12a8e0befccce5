"""Memory laid out: names across objects, addresses in data, and what cannot be linked."""

from __future__ import annotations

import struct
import sys

import pytest

from weft.backends.cpu.codegen.target import sse2
from weft.backends.cpu.export.elf import ElfError
from weft.backends.cpu.export.image import BLOB, CODE, PAGE, READ, WRITE, Address, Image
from weft.backends.cpu.runtime.linking import compile_module

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ELF is of Linux")
HEAD = 'target triple = "x86_64-unknown-linux-gnu"\n'


def code(text: str) -> bytes:
    return compile_module(HEAD + text, sse2())


def laid_out(image: Image) -> Image:
    image.reserve(64)
    image.lay_out(0x200)
    image.set_dynamic([0] * 8)
    image.link()
    return image


def content(image: Image, part: str) -> bytes:
    return b"".join(b"".join(piece.content) for piece in image.parts[part].pieces)


def test_names_of_one_object_serve_another():
    image = Image()
    image.add_object(
        code("declare i32 @two()\ndefine i32 @one() {\n %x = call i32 @two()\n ret i32 %x\n}")
    )
    image.add_object(code("define i32 @two() {\n ret i32 2\n}"))
    assert image.undefined == []
    laid_out(image)
    assert image.address("one") != image.address("two")
    assert image.is_code("two")
    assert image.size_of("two") > 0
    assert image.dynamic == []


def test_what_is_missing_is_left_to_the_loader():
    image = Image(renamed={"asked": "given"})
    image.add_object(
        code("declare void @asked()\ndefine void @f() {\n call void @asked()\n ret void\n}")
    )
    assert image.undefined == ["given"]
    laid_out(image)
    assert [(r.symbol, r.value) for r in image.dynamic] == [("given", 0)]
    assert b"\xff\x25" in content(image, CODE)  # a jump through the table of addresses


def test_objects_of_their_own_names_do_not_meet():
    image = Image()
    for i in range(2):
        image.add_object(code(f"define i32 @run() {{\n ret i32 {i}\n}}"), alone=f"{i}.")
    laid_out(image)
    assert image.address("0.run") != image.address("1.run")
    with pytest.raises(KeyError):
        image.address("run")


def test_addresses_in_data_are_told_to_the_loader():
    image = Image()
    image.add_object(code("define void @f() {\n ret void\n}"))
    image.add_data("words", [7, -1, Address("f"), Address("numbers", 8)])
    image.add_data("numbers", [1, 2], constant=True)
    laid_out(image)
    assert {r.value for r in image.dynamic} == {image.address("f"), image.address("numbers") + 8}
    assert struct.pack("<Qq", 7, -1) in content(image, WRITE)
    assert struct.pack("<QQ", 1, 2) in content(image, READ)


def test_parts_begin_on_pages_and_blobs_are_last():
    image = Image()
    image.add_blob("large", [b"x" * 5000], 5000)
    image.add_object(code("define void @f() {\n ret void\n}"))
    laid_out(image)
    begins = [image.parts[name].begin for name in (CODE, WRITE, BLOB)]
    assert begins == sorted(begins)
    assert all(begin % PAGE == 0 for begin in begins)
    assert image.address("large") == begins[-1]


def test_thread_local_variables_are_refused():
    image = Image()
    image.add_object(code("@x = thread_local global i32 0\ndefine ptr @f() {\n ret ptr @x\n}"))
    with pytest.raises(ElfError, match=r"is not known to this linker|kind that this linker"):
        laid_out(image)
