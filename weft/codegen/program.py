"""Write the program of a lowered graph: its kernels, and functions that run them in order.

    void run_0(ptr arrays, ptr memory)

runs a stretch of kernels between two calls of reference kernels. `arrays` holds the addresses of
what each run brings, `memory` those of the arena and of constants. Each kernel is a module of its
own, named by its content, so that equal kernels are compiled once, in this program and in others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.threads import get_num_threads
from ..lower.kernels import ColumnKernel, GemmKernel, Kernel, LibraryKernel, RowKernel
from ..lower.storage import Buffer, View
from .columns import column_lanes, strips, write_column_kernel
from .cost import column_cost, gemm_cost, row_cost
from .gemm import gemm_chunks, gemm_units, gemm_views, write_gemm_kernel
from .regions import Piece, Place, Region, arrange
from .rows import write_row_kernel
from .target import Target
from .text import FunctionText, ModuleText
from .values import Value

PARALLEL_FOR = "weft_parallel_for"


@dataclass
class ProgramText:
    """The modules of a program, and what to run in order.

    modules   text by a name that follows from the content
    steps     names of native functions, and reference kernels to call
    """

    modules: dict[str, str] = field(default_factory=dict)
    steps: list[Any] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)


def write_program(
    kernels: Sequence[Kernel], places: dict[Buffer, Place], target: Target
) -> ProgramText:
    """Return the code of kernels that run one after another."""
    return _ProgramWriter(places, target).write(kernels)


class _ProgramWriter:
    def __init__(self, places: dict[Buffer, Place], target: Target) -> None:
        self.places = places
        self.target = target
        self.program = ProgramText()

    def write(self, kernels: Sequence[Kernel]) -> ProgramText:
        stretch: list[Piece] = []
        stretches: list[list[Piece]] = []
        for kernel in kernels:
            if isinstance(kernel, LibraryKernel):
                self._close(stretch, stretches)
                stretch = []
                self.program.steps.append(kernel)
            else:
                stretch.append(self._piece(kernel))
        self._close(stretch, stretches)
        if stretches:
            text = self._entry(stretches)
            self.program.modules[_digest("entry", text)] = text
        return self.program

    def _close(self, stretch: list[Piece], stretches: list[list[Piece]]) -> None:
        if stretch:
            self.program.steps.append(f"run_{len(stretches)}")
            stretches.append(stretch)

    # -- kernels -----------------------------------------------------------------------------------

    def _piece(self, kernel: RowKernel | ColumnKernel | GemmKernel) -> Piece:
        piece = _PIECES[type(kernel)](self, kernel)
        self.program.pieces.append(piece)
        return piece

    def _row_piece(self, kernel: RowKernel) -> Piece:
        return Piece(
            self._function(kernel, write_row_kernel),
            [operand.view for operand in kernel.operands],
            frozenset(output.operand for output in kernel.outputs),
            kernel.units,
            0,
            row_cost(kernel, self.target),
            kernel.name,
        )

    def _column_piece(self, kernel: ColumnKernel) -> Piece:
        return Piece(
            self._function(kernel, write_column_kernel),
            [operand.view for operand in kernel.operands],
            frozenset((kernel.output.operand,)),
            strips(kernel, column_lanes(kernel, self.target.lanes)),
            0,
            column_cost(kernel, self.target),
            kernel.name,
        )

    def _gemm_piece(self, kernel: GemmKernel) -> Piece:
        views = gemm_views(kernel)
        return Piece(
            self._function(kernel, write_gemm_kernel),
            views,
            frozenset(i for i, view in enumerate(views) if view is kernel.out),
            gemm_units(kernel, self.target),
            gemm_chunks(kernel, self.target, get_num_threads()),
            gemm_cost(kernel),
            kernel.name,
        )

    def _function(self, kernel: Any, write: Any) -> str:
        """Return the name of a kernel's function, adding its module if it is new."""
        draft = ModuleText(self.target)
        write(draft, "kernel", kernel)
        digest = _digest("kernel", draft.text())
        if digest not in self.program.modules:
            module = ModuleText(self.target)
            write(module, digest, kernel)
            self.program.modules[digest] = module.text()
        return digest

    # -- the entry ---------------------------------------------------------------------------------

    def _entry(self, stretches: list[list[Piece]]) -> str:
        module = ModuleText(self.target)
        module.declare(PARALLEL_FOR, ["ptr", "ptr", "i64"])
        for number, stretch in enumerate(stretches):
            regions = arrange(stretch, self.places, get_num_threads())
            self.program.regions += regions
            run = module.function(f"run_{number}", ["ptr", "ptr"])
            tables = run.alloca("ptr", 2)
            for i, table in enumerate(run.parameters):
                run.store(table, run.gep(tables, i, "ptr"))
            for i, region in enumerate(regions):
                self._region(module, run, region, tables, f"task_{number}_{i}")
            if self.program.steps[-1] == f"run_{number}":
                self._count_run(run)
            run.ret()
        for piece in {p.function: p for s in stretches for p in s}.values():
            module.declare(piece.function, [*["ptr"] * len(piece.views), "i64", "i64"])
        return module.text()

    def _region(
        self, module: ModuleText, run: FunctionText, region: Region, tables: Value, name: str
    ) -> None:
        """Write the call of all pieces of a region: one after another, or by the thread pool."""
        if not region.parallel:
            for piece in region.pieces:
                self._call(run, run.parameters, piece, run.constant("i64", 0), piece.units)
            return
        f = module.function(name, ["ptr", "i64", "i64"])
        both = tuple(f.load("ptr", f.gep(f.parameters[0], i, "ptr")) for i in range(2))
        self._choose(f, both, region.pieces, f.parameters[1])
        chunks = sum(piece.chunks for piece in region.pieces)
        task = Value(f"@{name}", "ptr")
        run.call(PARALLEL_FOR, "void", task, tables, run.constant("i64", chunks))

    def _choose(
        self, f: FunctionText, tables: tuple[Value, ...], pieces: list[Piece], chunk: Value
    ) -> None:
        """Write the search for the piece that a chunk belongs to, and its call."""
        if len(pieces) == 1:
            self._chunk(f, tables, pieces[0], chunk)
            f.ret()
            return
        half = len(pieces) // 2
        first = sum(piece.chunks for piece in pieces[:half])
        low, high = f.label("low"), f.label("high")
        f.branch_if(f.icmp("slt", chunk, first), low, high)
        f.block(low)
        self._choose(f, tables, pieces[:half], chunk)
        f.block(high)
        self._choose(f, tables, pieces[half:], f.sub(chunk, first))

    def _chunk(
        self, f: FunctionText, tables: tuple[Value, ...], piece: Piece, chunk: Value
    ) -> None:
        """Write the call for one chunk of a kernel; fixed chunks, whoever does them."""
        begin = f.udiv(f.mul(chunk, piece.units), piece.chunks)
        end = f.udiv(f.mul(f.add(chunk, 1), piece.units), piece.chunks)
        self._call(f, tables, piece, begin, end)

    def _count_run(self, run: FunctionText) -> None:
        """Count, behind the addresses of the table, the runs that came to their end."""
        entries = [place.entry for place in self.places.values() if not place.brought]
        counter = run.gep(run.parameters[1], 1 + max(entries, default=0), "i64")
        run.store(run.add(run.load("i64", counter), 1), counter)

    def _call(
        self, f: FunctionText, tables: tuple[Value, ...], piece: Piece, begin: Any, end: Any
    ) -> None:
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


_PIECES: dict[type, Callable[[_ProgramWriter, Any], Piece]] = {
    RowKernel: _ProgramWriter._row_piece,
    ColumnKernel: _ProgramWriter._column_piece,
    GemmKernel: _ProgramWriter._gemm_piece,
}


def _digest(kind: str, text: str) -> str:
    return f"{kind}_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
