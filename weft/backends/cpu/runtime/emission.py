"""Make object code of LLVM IR text, with nothing but llvmlite.

    code = emitted(text, Machine(triple, cpu, features), 3)

Run as a program, this file does it for another process, which writes frames to its standard input
(`REQUEST`, text) and reads others from its standard output (`REPLY`, code; empty if LLVM rejects
the text). It imports nothing of Weft's, so that it is ready soon. Both ways give the same bytes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from queue import SimpleQueue
from struct import Struct
from threading import Thread
from typing import Any, BinaryIO, NamedTuple

if __name__ == "__main__":  # as another process: no site, but where llvmlite is found
    sys.path.append(sys.argv[1])

import llvmlite.binding as llvm

REQUEST = Struct("<IIQ")  # number of the module, level, bytes of its text
REPLY = Struct("<IQ")  # number of the module, bytes of its code
READY = b"weft-emission-1\n"


class Machine(NamedTuple):
    """What code is made for, in LLVM's words."""

    triple: str
    cpu: str
    features: str


def emitted(text: str, machine: Machine, level: int) -> bytes:
    """Return the object code of a module; RuntimeError if LLVM rejects it."""
    with parsed(text) as module:
        code: bytes = generator(machine, level).emit_object(module)
        return code


@contextmanager
def parsed(text: str) -> Iterator[Any]:
    """Give a verified module in a context of its own, so that nothing of it stays behind."""
    initialize()
    with llvm.create_context() as context:  # which must outlive the module, also a bad one
        module = llvm.parse_assembly(text, context)
        with module:
            module.verify()
            yield module


@cache
def initialize() -> None:
    """Let LLVM know its targets."""
    if llvm.llvm_version_info[0] < 20:  # later ones do it by themselves, and refuse to be asked
        llvm.initialize()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@cache
def generator(machine: Machine, level: int) -> Any:
    """Return the code generator for a machine.

    Position-independent small code reaches constants by short relative addresses and everything
    outside through tables that the linker makes, wherever that lies.
    """
    initialize()
    return llvm.Target.from_triple(machine.triple).create_target_machine(
        cpu=machine.cpu, features=machine.features, opt=level, reloc="pic", codemodel="small"
    )


# -- as another process ----------------------------------------------------------------------------


def serve(machine: Machine, requests: BinaryIO, replies: BinaryIO) -> None:
    """Make code until there are no more requests.

    A thread reads them, so that who writes them never waits for LLVM.
    """
    waiting: SimpleQueue[tuple[int, int, str] | None] = SimpleQueue()

    def read() -> None:
        while len(head := requests.read(REQUEST.size)) == REQUEST.size:
            number, level, size = REQUEST.unpack(head)
            waiting.put((number, level, requests.read(size).decode()))
        waiting.put(None)

    Thread(target=read, daemon=True).start()
    while (request := waiting.get()) is not None:
        number, level, text = request
        try:
            code = emitted(text, machine, level)
        except Exception:  # the other process says what is wrong with the text
            code = b""
        replies.write(REPLY.pack(number, len(code)) + code)
        replies.flush()


def main(arguments: list[str]) -> None:
    """Serve on the standard streams; whatever else is printed goes elsewhere."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    machine = Machine(*arguments)
    generator(machine, 3)
    replies.write(READY)
    replies.flush()
    serve(machine, sys.stdin.buffer, replies)


if __name__ == "__main__":
    main(sys.argv[2:])
