"""Write the program of a lowered graph: its kernels, and functions that run them in order.

    void run_0(ptr arrays, ptr memory)

runs a stretch of kernels between two calls of reference kernels. `arrays` holds the addresses of
what each run brings, `memory` those of the arena and of constants. Each kernel is a module of its
own, named by its content, so that equal kernels are compiled once, in this program and in others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.shape import size_of
from ..core.threads import get_num_threads
from ..lower.kernels import (
    ColumnKernel,
    GemmKernel,
    Kernel,
    LibraryKernel,
    RowKernel,
    ScanKernel,
    ScatterKernel,
)
from ..lower.storage import Buffer, View
from .columns import column_lanes, strips, write_column_kernel
from .gemm import gemm_chunks, gemm_units, write_gemm_kernel
from .keys import kernel_key
from .rows import write_row_kernel
from .scans import scan_units, write_scan_kernel
from .scatter import scatter_units, write_scatter_kernel
from .target import Target
from .text import FunctionText, ModuleText
from .values import Value

NativeKernel = RowKernel | ColumnKernel | ScatterKernel | ScanKernel | GemmKernel
PARALLEL_FOR = "weft_parallel_for"
# The first entries of a program's memory; its constants follow.
ARENA, COUNTER, CONSTANTS = 0, 1, 2
WORTH = 1 << 15  # element operations that make a chunk of parallel work
UNNAMED = "weft_unnamed_kernel"  # a kernel's name while its text, which names it, is written


@dataclass(frozen=True)
class Place:
    """Where a buffer lies: which entry of which table, and how many bytes behind it."""

    brought: bool  # by each run; else it is the program's own
    entry: int
    offset: int = 0


@dataclass
class Piece:
    """A kernel ready to be called: its function, the views it takes, and its units of work."""

    function: str
    views: list[View]
    units: int
    chunks: int
    name: str
    kernel: Kernel | None = None


@dataclass
class ProgramText:
    """The modules of a program, and what to run in order.

    modules     text by a name that follows from the content
    steps       names of native functions, and reference kernels to call
    stretches   the pieces that each native function runs
    entry       the name of the module of these functions, if there are any
    """

    modules: dict[str, str] = field(default_factory=dict)
    steps: list[Any] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    stretches: list[list[Piece]] = field(default_factory=list)
    entry: str = ""


def write_program(
    kernels: Sequence[Kernel], places: dict[Buffer, Place], target: Target
) -> ProgramText:
    """Return the code of kernels that run one after another."""
    return ProgramWriter(places, target).write(kernels)


class ProgramWriter:
    """Writes kernels, and the functions that run them."""

    def __init__(self, places: dict[Buffer, Place], target: Target) -> None:
        self.places = places
        self.target = target
        self.program = ProgramText()
        self._functions: dict[Hashable, str] = {}

    def write(self, kernels: Sequence[Kernel]) -> ProgramText:
        """Return the code of kernels that run one after another."""
        stretch: list[Piece] = []
        stretches = self.program.stretches
        for kernel in kernels:
            if isinstance(kernel, LibraryKernel):
                self._close(stretch, stretches)
                stretch = []
                self.program.steps.append(kernel)
            else:
                stretch.append(self._piece(kernel))
                stretch[-1].kernel = kernel
        self._close(stretch, stretches)
        if stretches:
            text = self.entry(stretches)
            self.program.entry = _digest("entry", text)
            self.program.modules[self.program.entry] = text
        return self.program

    def _close(self, stretch: list[Piece], stretches: list[list[Piece]]) -> None:
        if stretch:
            self.program.steps.append(f"run_{len(stretches)}")
            stretches.append(stretch)

    # -- kernels -----------------------------------------------------------------------------------

    def _piece(self, kernel: NativeKernel) -> Piece:
        if isinstance(kernel, RowKernel):
            flat = len(kernel.loops) == 1
            units = kernel.loops[0] if flat else kernel.rows
            work = size_of(kernel.loops) * max(1, len(kernel.nodes))
            views = [operand.view for operand in kernel.operands]
            function = self._function(kernel, write_row_kernel)
        elif isinstance(kernel, ColumnKernel):
            lanes = column_lanes(kernel, self.target.lanes)
            units, work = strips(kernel, lanes), size_of(kernel.loops)
            views = [operand.view for operand in kernel.operands]
            function = self._function(kernel, write_column_kernel)
        elif isinstance(kernel, ScanKernel):
            units, work = scan_units(kernel, self.target), 2 * size_of(kernel.loops)
            views = [operand.view for operand in kernel.operands]
            function = self._function(kernel, write_scan_kernel)
        elif isinstance(kernel, ScatterKernel):
            units, work = scatter_units(kernel), 4 * size_of(kernel.loops)
            views = [operand.view for operand in kernel.operands]
            function = self._function(kernel, write_scatter_kernel)
        else:
            units = gemm_units(kernel, self.target)
            views = kernel.views
            function = self._function(kernel, write_gemm_kernel)
            return self._added(
                Piece(
                    function,
                    views,
                    units,
                    gemm_chunks(kernel, self.target, get_num_threads()),
                    kernel.name,
                )
            )
        chunks = max(1, min(units, work // WORTH))
        return self._added(Piece(function, views, units, chunks, kernel.name))

    def _added(self, piece: Piece) -> Piece:
        self.program.pieces.append(piece)
        return piece

    def _function(self, kernel: Any, write: Any) -> str:
        """Return the name of a kernel's function, adding its module if it is new."""
        key = kernel_key(kernel)
        if key is not None and key in self._functions:
            return self._functions[key]
        module = ModuleText(self.target)
        write(module, UNNAMED, kernel)
        text = module.text()
        digest = _digest("kernel", text)
        self.program.modules.setdefault(digest, text.replace(UNNAMED, digest))
        self._functions[key] = digest
        return digest

    # -- the entry ---------------------------------------------------------------------------------

    def entry(self, stretches: list[list[Piece]]) -> str:
        """Return the module of the functions that run pieces."""
        module = ModuleText(self.target)
        module.declare(PARALLEL_FOR, ["ptr", "ptr", "i64"])
        for number, stretch in enumerate(stretches):
            tasks = [self._task(module, f"task_{number}_{i}", p) for i, p in enumerate(stretch)]
            run = module.function(f"run_{number}", ["ptr", "ptr"])
            tables = run.alloca("ptr", 2)
            for i, table in enumerate(run.parameters):
                run.store(table, run.gep(tables, i, "ptr"))
            last_check = max((i for i, p in enumerate(stretch) if _flag(p)), default=-1)
            for i, (piece, task) in enumerate(zip(stretch, tasks, strict=True)):
                self.run_piece(run, piece, task, tables)
                if i == last_check:
                    self._leave_if_set(run, _flag(piece))
            if number == len(stretches) - 1:
                _count_run(run)
            run.ret()
        for piece in {p.function: p for s in stretches for p in s}.values():
            module.declare(piece.function, [*["ptr"] * len(piece.views), "i64", "i64"])
        return module.text()

    def run_piece(self, run: FunctionText, piece: Piece, task: str | None, tables: Value) -> None:
        """Write the call of a kernel: of all its units here, or of its chunks by the pool."""
        if task is None:
            zero = run.constant("i64", 0)
            self.call_kernel(run, run.parameters, piece, zero, piece.units)
        else:
            chunks = run.constant("i64", piece.chunks)
            run.call(PARALLEL_FOR, "void", Value(f"@{task}", "ptr"), tables, chunks)

    def _leave_if_set(self, run: FunctionText, flag: View | None) -> None:
        """End the run before anything is written that others see, if an index was out of range."""
        assert flag is not None
        word = run.load("i64", self._pointer(run, run.parameters, flag))
        leave, stay = run.label("leave"), run.label("stay")
        run.branch_if(run.icmp("ne", word, 0), leave, stay)
        run.block(leave)
        run.ret()
        run.block(stay)

    def _task(self, module: ModuleText, name: str, piece: Piece) -> str | None:
        """Write the function that does one chunk of a kernel; fixed chunks, whoever does them."""
        if piece.chunks == 1:
            return None
        f = module.function(name, ["ptr", "i64", "i64"])
        tables, chunk, _ = f.parameters
        both = tuple(f.load("ptr", f.gep(tables, i, "ptr")) for i in range(2))
        begin = f.udiv(f.mul(chunk, piece.units), piece.chunks)
        end = f.udiv(f.mul(f.add(chunk, 1), piece.units), piece.chunks)
        self.call_kernel(f, both, piece, begin, end)
        f.ret()
        return name

    def call_kernel(
        self, f: FunctionText, tables: tuple[Value, ...], piece: Piece, begin: Any, end: Any
    ) -> None:
        """Write the call of a kernel's function for a range of its units."""
        pointers = [self._pointer(f, tables, view) for view in piece.views]
        stop = end if isinstance(end, Value) else f.constant("i64", end)
        f.call(piece.function, "void", *pointers, begin, stop)

    def _pointer(self, f: FunctionText, tables: tuple[Value, ...], view: View) -> Value:
        place = self.places[view.buffer]
        arrays, memory = tables
        table = arrays if place.brought else memory
        base = f.load("ptr", f.gep(table, place.entry, "ptr"))
        offset = place.offset + view.offset * view.dtype.itemsize
        return f.gep(base, offset) if offset else base


def _flag(piece: Piece) -> View | None:
    """Return what a piece sets if it meets an index out of range."""
    kernel = piece.kernel
    return kernel.flag if isinstance(kernel, (RowKernel, ScatterKernel)) else None


def _count_run(run: FunctionText) -> None:
    """Count the runs whose native code came to its end."""
    counter = run.load("ptr", run.gep(run.parameters[1], COUNTER, "ptr"))
    run.store(run.add(run.load("i64", counter), 1), counter)


def _digest(kind: str, text: str) -> str:
    return f"{kind}_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
