"""Write the program of a lowered graph: its kernels, and functions that run them in order.

    void run_0(ptr arrays, ptr memory)

runs a stretch of kernels between two calls of reference kernels. `arrays` holds the addresses of
what each run passes, `memory` those of the arena and of constants, and of the words in which code
for many sizes finds those of the run: the words of each kernel, then those of the functions here.
Each kernel is a module of its
own, named by its content, so that equal kernels are compiled once, in this program and in others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....core.dim import Dim
from ....core.shape import Size
from ....lower.kernels import (
    ColumnKernel,
    GemmKernel,
    Kernel,
    RowKernel,
    ScanKernel,
    ScatterKernel,
    walk,
)
from ....lower.memory import COUNTER, MemoryPlan, Place
from ....lower.program import KernelProgram
from ....lower.schedule import Piece, Region, RunSchedule, TogetherCalls, flattened
from ....lower.storage import View
from .chains import (
    CHAIN_PARAMETERS,
    PARALLEL_FOR,
    chain_thread,
    in_chain,
    stopped_or_polled,
    write_chains,
)
from .columns import write_column_kernel
from .control import write_calls
from .gemm.kernel import write_gemm_kernel
from .keys import kernel_key
from .rows import write_row_kernel
from .scans import write_scan_kernel
from .scatter import write_scatter_kernel
from .sizes import TABLE
from .target import Target
from .text import FunctionText, ModuleText
from .values import IRValue

CALLS = 128  # of regions in one function: LLVM's time grows with the square of a function's length
UNNAMED = "weft_unnamed_kernel"  # a kernel's name while its text, which names it, is written


@dataclass
class ProgramText:
    """The modules of a program.

    schedule    what to run in order
    modules     text by a name that follows from the content
    functions   of kernels, by their identities: the names of the modules that hold them too
    words       of kernels whose sizes only a run knows, by their identities: what they read
    plans       of those of them that read more than sizes: how that is found
    entry       the name of the module of the functions that run stretches, if there are any
    entry_words what these functions read
    """

    schedule: RunSchedule
    modules: dict[str, str] = field(default_factory=dict)
    functions: dict[int, str] = field(default_factory=dict)
    words: dict[int, tuple[Dim, ...]] = field(default_factory=dict)
    plans: dict[int, Any] = field(default_factory=dict)
    entry: str = ""
    entry_words: tuple[Dim, ...] = ()

    @property
    def all_words(self) -> list[Dim]:
        """Return what the host writes for a run, in the order in which code finds it."""
        return [*(word for words in self.words.values() for word in words), *self.entry_words]

    def function_of(self, piece: Piece) -> str:
        """Return the name of a kernel's function."""
        return self.functions[id(piece.kernel)]


def write_program(
    program: KernelProgram, target: Target, written: Callable[[str], None] = lambda text: None
) -> ProgramText:
    """Return the code of a planned program; each module is handed over when it is written."""
    assert program.memory is not None, "memory is planned before code is written"
    assert program.schedule is not None, "so is who calls kernels"
    text = ProgramText(program.schedule)
    return ProgramWriter(text, program.memory, target, written).write(program.kernels)


@dataclass(frozen=True)
class Part:
    """A part of a kernel's work: its units, and which of the kernel's chunks it is, on whom."""

    begin: IRValue
    end: IRValue
    chunk: IRValue
    thread: IRValue


class ProgramWriter:
    """Writes kernels, and the functions that run them."""

    def __init__(
        self,
        program: ProgramText,
        memory: MemoryPlan,
        target: Target,
        written: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.program = program
        self.places = memory.places
        self.sizes_entry = memory.sizes_entry
        self.target = target
        self.written = written
        self._known: dict[Hashable, tuple[str, tuple[Dim, ...], Any]] = {}
        self._tasks = 0
        self._parts = 0

    def write(self, kernels: Sequence[Kernel]) -> ProgramText:
        """Return the code of kernels, and of what calls them."""
        program = self.program
        for kernel in walk(kernels):
            if type(kernel) in WRITERS:
                name, words, plan = self._function(kernel, WRITERS[type(kernel)])
                program.functions[id(kernel)], program.words[id(kernel)] = name, words
                program.plans[id(kernel)] = plan
        if program.schedule.stretches:
            text = self.entry()
            program.entry = _digest("entry", text)
            self._add(program.entry, text)
        return program

    def _function(self, kernel: Any, write: Any) -> tuple[str, tuple[Dim, ...], Any]:
        """Return the name of a kernel's function and its words; add its module if it is new."""
        key = kernel_key(kernel)
        if key is not None and key in self._known:
            return self._known[key]
        module = ModuleText(self.target)
        write(module, UNNAMED, kernel)
        text = module.text()
        digest = _digest("kernel", text)
        if digest not in self.program.modules:
            self._add(digest, text.replace(UNNAMED, digest))
        self._known[key] = digest, module.sizes.words, module.plan
        return self._known[key]

    def _add(self, name: str, text: str) -> None:
        self.program.modules[name] = text
        self.written(text)

    # -- the entry ---------------------------------------------------------------------------------

    def entry(self) -> str:
        """Return the module of the functions that run stretches."""
        schedule, module = self.program.schedule, ModuleText(self.target, quick=True)
        module.declare(PARALLEL_FOR, ["ptr", "ptr", "i64"])
        for name, calls in zip(schedule.names, schedule.stretches, strict=True):
            run = self._stretch(module, name)
            self._write_calls(module, run, _both_tables(run), calls)
            if calls is schedule.stretches[-1]:
                _count_run(run)
            run.ret()
        for piece in schedule.pieces:
            table = ["ptr"] if self.program.words[id(piece.kernel)] else []
            parameters = [*["ptr"] * len(piece.views), "i64", "i64", *table]
            module.declare(self.program.function_of(piece), parameters)
        self.program.entry_words = module.sizes.words
        return module.text()

    def _stretch(
        self, module: ModuleText, name: str, parameters: Sequence[str] = ("ptr", "ptr")
    ) -> FunctionText:
        """Start a function that takes both tables first, and finds that of sizes in the second."""
        f = module.function(name, parameters)
        f.table_from = self._words_behind(f.parameters[1])
        return f

    def _words_behind(self, memory: IRValue) -> list[str]:
        """Return how the words of this module are found in the table of the program's memory."""
        before = sum(map(len, self.program.words.values()))
        return [
            f"%words.at = getelementptr ptr, ptr {memory}, i64 {self.sizes_entry}",
            "%words = load ptr, ptr %words.at",
            f"{TABLE} = getelementptr i64, ptr %words, i64 {before}",
        ]

    def _leave_if_set(self, run: FunctionText, flag: View) -> None:
        """End the run before anything is written that others see, if an index was out of range."""
        word = run.load("i64", self._pointer(run, run.parameters, flag))
        leave, stay = run.label("leave"), run.label("stay")
        run.branch_if(run.icmp("ne", word, 0), leave, stay)
        run.block(leave)
        run.ret()
        run.block(stay)

    def _write_calls(
        self,
        module: ModuleText,
        run: FunctionText,
        tables: IRValue,
        calls: Sequence[Any],
        inside: bool = False,
    ) -> None:
        """Write what is called; inside control flow, all that checks indices can end the run."""
        flags = {i: c.flag for i, c in enumerate(calls) if isinstance(c, Region) and c.flag}
        ends = set(flags if inside else [*flags][-1:])
        batches = _batches(calls, ends)
        apart = len(calls) > CALLS
        for batch in batches:
            first = calls[batch.start]
            if isinstance(first, TogetherCalls):
                self._together(module, run, first)
            elif not isinstance(first, Region):
                write_calls(
                    run,
                    first,
                    lambda view: self._pointer(run, run.parameters, view),
                    lambda inner: self._write_calls(module, run, tables, inner, True),
                    stopped_or_polled if in_chain(run) else None,
                )
            elif apart:
                self._part(module, run, [calls[i] for i in batch])
            else:
                self._regions(module, run, tables, [calls[i] for i in batch])
            if batch[-1] in ends:
                self._leave_if_set(run, flags[batch[-1]])

    def _together(self, module: ModuleText, run: FunctionText, calls: TogetherCalls) -> None:
        """Write chains as functions of their own, and their calls by the pool; a flag ends all."""
        names = []
        for chain in calls.chains:
            self._parts += 1
            f = self._stretch(module, f"chain_{self._parts}", CHAIN_PARAMETERS)
            self._write_calls(module, f, _both_tables(f), chain, inside=True)
            f.ret()
            names.append(f.name)
        self._tasks += 1
        write_chains(module, run, calls, names, f"task_{self._tasks}")
        regions = (region for region, _ in flattened([calls]))
        flag = next((region.flag for region in regions if region.flag is not None), None)
        if flag is not None:
            self._leave_if_set(run, flag)

    def _part(self, module: ModuleText, run: FunctionText, regions: Sequence[Region]) -> None:
        """Write the calls of regions as a function of its own, and its call."""
        self._parts += 1
        part = self._stretch(module, f"part_{self._parts}", [p.type for p in run.parameters])
        self._regions(module, part, _both_tables(part), regions)
        part.ret()
        run.call(part.name, "void", *run.parameters)

    def _regions(
        self, module: ModuleText, run: FunctionText, tables: IRValue, regions: Sequence[Region]
    ) -> None:
        for region in regions:
            self._tasks += 1
            self._region(module, run, region, tables, f"task_{self._tasks}")

    def _region(
        self, module: ModuleText, run: FunctionText, region: Region, tables: IRValue, name: str
    ) -> None:
        """Write the call of all pieces of a region: one after another, or by the thread pool."""
        if not isinstance(region.parallel, Dim):
            if region.parallel:
                self._by_pool(module, run, region, tables, name)
            else:
                self._one_by_one(run, region)
            return
        together, alone, done = run.label("together"), run.label("alone"), run.label("region")
        run.branch_if(run.icmp("ne", run.size(region.parallel), 0), together, alone)
        run.block(together)
        self._by_pool(module, run, region, tables, name)
        run.branch(done)
        run.block(alone)
        self._one_by_one(run, region)
        run.branch(done)
        run.block(done)

    def _one_by_one(self, run: FunctionText, region: Region) -> None:
        zero = run.constant("i64", 0)
        thread = chain_thread(run) if in_chain(run) else zero
        for piece in region.pieces:
            whole = Part(zero, run.constant("i64", piece.units), zero, thread)
            self.call_kernel(run, run.parameters, piece, whole)

    def _by_pool(
        self, module: ModuleText, run: FunctionText, region: Region, tables: IRValue, name: str
    ) -> None:
        f = module.function(name, ["ptr", "i64", "i64"])
        both = tuple(f.load("ptr", f.gep(f.parameters[0], i, "ptr")) for i in range(2))
        f.table_from = [
            f"%memory.at = getelementptr ptr, ptr {f.parameters[0]}, i64 1",
            "%memory = load ptr, ptr %memory.at",
            *self._words_behind(IRValue("%memory", "ptr")),
        ]
        self._choose(f, both, region.pieces, f.parameters[1])
        chunks = run.constant("i64", sum(piece.chunks for piece in region.pieces))
        run.call(PARALLEL_FOR, "void", IRValue(f"@{name}", "ptr"), tables, chunks)

    def _choose(
        self, f: FunctionText, tables: tuple[IRValue, ...], pieces: Sequence[Piece], chunk: IRValue
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
        self, f: FunctionText, tables: tuple[IRValue, ...], piece: Piece, chunk: IRValue
    ) -> None:
        """Write the call for one chunk of a kernel; fixed chunks, whoever does them."""
        begin = f.udiv(f.mul(chunk, piece.units), piece.chunks)
        end = f.udiv(f.mul(f.add(chunk, 1), piece.units), piece.chunks)
        self.call_kernel(f, tables, piece, Part(begin, end, chunk, f.parameters[2]))

    def call_kernel(
        self, f: FunctionText, tables: tuple[IRValue, ...], piece: Piece, part: Part
    ) -> None:
        """Write the call of a kernel's function for a part of its units."""
        arguments = [self._pointer(f, tables, view) for view in piece.views]
        arguments += [part.begin, part.end, *self._words_of(f, piece.kernel)]
        f.call(self.program.function_of(piece), "void", *arguments)

    def _words_of(self, f: FunctionText, kernel: Kernel) -> list[IRValue]:
        """Return the address of a kernel's words, if it has any: they lie before those here."""
        words = self.program.words
        if not words[id(kernel)]:
            return []
        kernels = list(words)
        behind = sum(len(words[key]) for key in kernels[kernels.index(id(kernel)) :])
        return [f.gep(f.all_sizes(), -behind, "i64")]

    def _pointer(self, f: FunctionText, tables: tuple[IRValue, ...], view: View) -> IRValue:
        place = self.places[view.buffer]
        pointer = _address(f, tables, place, view.offset * view.dtype.itemsize)
        for word, step in place.moves:
            number = f.load("i64", _address(f, tables, word, 0))
            pointer = f.gep(pointer, f.mul(number, step))
        return pointer


def _address(f: FunctionText, tables: tuple[IRValue, ...], place: Place, further: Size) -> IRValue:
    arrays, memory, *_ = tables
    base = f.load("ptr", f.gep(arrays if place.is_argument else memory, place.entry, "ptr"))
    offset = place.offset + further
    return base if offset.__class__ is int and offset == 0 else f.gep(base, offset)


# What writes the function of each kind of kernel: adds it to a module, under a name.
WRITERS: dict[type, Callable[[ModuleText, str, Any], None]] = {
    RowKernel: write_row_kernel,
    ColumnKernel: write_column_kernel,
    ScatterKernel: write_scatter_kernel,
    ScanKernel: write_scan_kernel,
    GemmKernel: write_gemm_kernel,
}


def _both_tables(run: FunctionText) -> IRValue:
    """Return where a function has its two tables side by side, for the tasks of the pool."""
    tables = run.alloca("ptr", 2)
    for i, table in enumerate(run.parameters[:2]):
        run.store(table, run.gep(tables, i, "ptr"))
    return tables


def _batches(calls: Sequence[Any], ends: Collection[int]) -> list[range]:
    """Return calls in stretches of regions, none too long or behind an end, and control flow."""
    found: list[range] = []
    for i, call in enumerate(calls):
        last = found[-1] if found else range(0)
        joins = last and isinstance(call, Region) and isinstance(calls[last[0]], Region)
        if joins and len(last) < CALLS and last[-1] not in ends:
            found[-1] = range(last.start, i + 1)
        else:
            found.append(range(i, i + 1))
    return found


def _count_run(run: FunctionText) -> None:
    """Count the runs whose native code came to its end."""
    counter = run.load("ptr", run.gep(run.parameters[1], COUNTER, "ptr"))
    run.store(run.add(run.load("i64", counter), 1), counter)


def _digest(kind: str, text: str) -> str:
    return f"{kind}_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
