"""Run text from the writer natively, for tests only: the product does this in weft/runtime."""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from weft.backends.cpu.codegen import (
    FunctionText,
    IRValue,
    ModuleText,
    Target,
    element_of,
    host,
    vector_of,
)

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()

Expression = Callable[..., IRValue]


def machine(target: Target) -> Any:
    """Return LLVM's machine for a target; raises RuntimeError if LLVM was built without it."""
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=3, reloc="pic", codemodel="small"
    )


def verify(text: str) -> Any:
    module = llvm.parse_assembly(text)
    module.verify()
    return module


def assembly(text: str, target: Target) -> str:
    made: str = machine(target).emit_assembly(verify(text))
    return made


@dataclass
class Native:
    """Functions of a module, callable with arrays (passed by address) and integers."""

    text: str
    target: Target

    def __post_init__(self) -> None:
        self.compiler = llvm.create_lljit_compiler(machine(self.target))
        library = llvm.JITLibraryBuilder().add_ir(self.text).add_current_process()
        self.names = [line.split("@")[1].split("(")[0] for line in self._definitions()]
        for name in self.names:
            library.export_symbol(name)
        self.library = library.link(self.compiler, f"module{id(self)}")

    def _definitions(self) -> list[str]:
        return [
            line
            for line in self.text.splitlines()
            if line.startswith("define ") and " internal " not in line
        ]

    def __call__(self, name: str, *arguments: Any) -> None:
        kinds = [
            ctypes.c_void_p if isinstance(a, np.ndarray) else ctypes.c_int64 for a in arguments
        ]
        function = ctypes.CFUNCTYPE(None, *kinds)(self.library[name])
        function(*(a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments))


def map_text(
    expression: Expression,
    inputs: Sequence[str],
    output: str,
    target: Target,
    lanes: int | None = None,
) -> str:
    """Return a module with `kernel(inputs..., output, n)`, which maps an expression over arrays."""
    module = ModuleText(target)
    f = module.function("kernel", ["ptr noalias"] * (len(inputs) + 1) + ["i64"])
    *sources, sink, count = f.parameters
    width = lanes or target.lanes(inputs[0])
    _write_map(f, expression, list(zip(sources, inputs, strict=True)), (sink, output), count, width)
    f.ret()
    return module.text()


def _write_map(
    f: FunctionText,
    expression: Expression,
    sources: list[tuple[IRValue, str]],
    sink: tuple[IRValue, str],
    count: IRValue,
    lanes: int,
) -> None:
    def body(i: IRValue, rest: IRValue | None) -> None:
        values = [
            f.load(vector_of(element_of(dtype), lanes), f.gep(p, i, element_of(dtype)), count=rest)
            for p, dtype in sources
        ]
        f.store(expression(f, *values), f.gep(sink[0], i, element_of(sink[1])), count=rest)

    f.each_vector(count, lanes, body)


def evaluate(
    expression: Expression,
    *arrays: np.ndarray,
    output: str | None = None,
    lanes: int | None = None,
    target: Target | None = None,
) -> np.ndarray:
    """Return `expression` computed natively on arrays of one size."""
    inputs = tuple(str(a.dtype) for a in arrays)
    result = np.zeros(arrays[0].shape, output or inputs[0])
    native = _map_kernel(expression, inputs, str(result.dtype), lanes, target or host())
    native("kernel", *map(np.ascontiguousarray, arrays), result, result.size)
    return result


@cache
def _map_kernel(
    expression: Expression,
    inputs: tuple[str, ...],
    output: str,
    lanes: int | None,
    target: Target,
) -> Native:
    return Native(map_text(expression, inputs, output, target, lanes), target)
