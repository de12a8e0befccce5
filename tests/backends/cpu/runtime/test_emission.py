"""Object code with nothing but llvmlite, as another process makes it."""

from __future__ import annotations

from io import BytesIO

import pytest

from weft.backends.cpu.codegen.target import host
from weft.backends.cpu.codegen.text import QUICK, ModuleText
from weft.backends.cpu.runtime.emission import REPLY, REQUEST, emitted, serve
from weft.backends.cpu.runtime.linking import compile_module, level_of, machine_of

MACHINE = machine_of(host())


def module(number: int, *, quick: bool = False) -> str:
    """Return a module that returns a number."""
    text = ModuleText(host(), quick=quick)
    f = text.function(f"answer_{number}", [], "i64")
    f.ret(f.constant("i64", number))
    return text.text()


def served(*requests: tuple[int, int, str]) -> list[tuple[int, bytes]]:
    """Return what a process answers to requests, by their numbers."""
    texts = [(number, level, text.encode()) for number, level, text in requests]
    stream = b"".join(REQUEST.pack(n, level, len(t)) + t for n, level, t in texts)
    replies = BytesIO()
    serve(MACHINE, BytesIO(stream), replies)
    replies.seek(0)
    found = []
    while head := replies.read(REPLY.size):
        number, size = REPLY.unpack(head)
        found.append((number, replies.read(size)))
    return found


def test_code_is_that_of_the_linker() -> None:
    text = module(1)
    assert emitted(text, MACHINE, 3) == compile_module(text, host())


def test_a_module_that_only_calls_is_made_quickly() -> None:
    assert level_of(module(1)) == 3
    assert module(1, quick=True).startswith(QUICK)
    assert level_of(module(1, quick=True)) == 0


def test_a_rejected_text_is_an_error() -> None:
    with pytest.raises(RuntimeError):
        emitted("no module", MACHINE, 3)


def test_requests_are_answered_in_order() -> None:
    texts = [module(n) for n in range(3)]
    found = served(*[(7 + n, 3, text) for n, text in enumerate(texts)])
    assert found == [(7 + n, emitted(text, MACHINE, 3)) for n, text in enumerate(texts)]


def test_a_rejected_text_is_answered_by_nothing() -> None:
    (bad, good) = served((1, 3, "no module"), (2, 0, module(2, quick=True)))
    assert bad == (1, b"")
    assert good == (2, emitted(module(2, quick=True), MACHINE, 0))
