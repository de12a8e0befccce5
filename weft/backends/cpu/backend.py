"""The CPU as a device.

The compiler calls it without going through memory of a device: arrays of the host are where the
code works (runtime/executable.py). By these functions it runs programs as any other back end does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...core.config import config
from ...core.dim import Decisions
from ...core.dtype import DType
from ...core.shape import Shape, TensorType
from ...graph.state import State
from ...lower.program import KernelProgram, Sources
from ...plan.memory import with_memory
from ...plan.run_plan import Planned, RunPlan
from ...plan.threads import with_schedule
from ..exporting import ExportedModel, ExportOptions
from ..host import shown
from ..protocol import Array, Backend, Memories
from .codegen.target import target_named
from .device import CpuDevice, cpu_device
from .export.library import check_options, check_platform, write_library
from .export.programs import ExportedProgram, ExportedSizes, refuse_host_calls
from .runtime.analysis import Analysis, Code, analyse
from .runtime.apart import compiling_apart
from .runtime.executable import Executable
from .runtime.linking import machine_of
from .runtime.objects import find_object, runtime_keys
from .runtime.sized import SizedCodeText, SizedExecutable

LARGE = 64  # nodes of a graph whose code takes long enough to be made by two processes


class CpuBackend:
    """Runs kernel programs as machine code."""

    def describe(self) -> CpuDevice:
        """Return what is known about the device."""
        return cpu_device()

    def restore(self, plan: RunPlan, *, own_arena: bool = True) -> Executable | None:
        """Return a program that some process has built; None if its code is no longer kept.

        Without an arena of its own it is lent one for each call.
        """
        objects = [code for code in map(find_object, plan.objects) if code is not None]
        if len(objects) < len(plan.objects):
            return None
        return Executable(Code(plan, objects), own_arena=own_arena)

    def code(self, key: bytes) -> bytes | None:
        """Return the code that a plan names, if it is kept."""
        return find_object(key)

    def runtime_keys(self) -> list[bytes]:
        """Return the keys of code that programs need besides their own."""
        return runtime_keys()

    def ready_for(self, nodes: int) -> AbstractContextManager[None]:
        """Start another process to compile a large program by two, unless that is unwanted."""
        device = cpu_device()
        if nodes < LARGE or device.threads < 2 or not config.compiler_process:
            return nullcontext()
        return compiling_apart(machine_of(device.target))

    def build(self, planned: Planned, *, own_arena: bool = True) -> Executable:
        """Return a program ready to run, and keep its code by the keys that its plan has."""
        analysis = analyse(planned)
        return Executable(analysis.code(), analysis, own_arena=own_arena)

    def prepare_for_sizes(self, planned: Planned, decisions: Decisions) -> SizedExecutable:
        """Return a program as machine code for many sizes."""
        return SizedExecutable(planned, decisions)

    def export_device(self, options: ExportOptions) -> CpuDevice:
        """Return the machine that a library is for; raise if there cannot be one."""
        check_platform()
        check_options(options)
        device = cpu_device(target_named(options.target))
        return device if options.threads is None else replace(device, threads=options.threads)

    def exportable(self, planned: Planned) -> ExportedProgram:
        """Return a program as a library takes it; raise if it needs Python."""
        analysis = analyse(planned)
        refuse_host_calls(analysis)
        return ExportedProgram(analysis, analysis.plan)

    def exportable_for_sizes(self, planned: Planned, decisions: Decisions) -> ExportedSizes:
        """Return the same for many sizes: what its `bind` returns is for some of them."""
        text = SizedCodeText(planned, decisions)
        refuse_host_calls(text.analysis)
        return ExportedSizes(text)

    def export(self, model: ExportedModel, options: ExportOptions) -> list[Path]:
        """Write a shared library; return the paths of its files."""
        return write_library(model, options)

    def compile(self, program: KernelProgram) -> Loaded:
        """Return a program as machine code."""
        analysis = _analyse_program(program, Sources((), (), ()))
        return Loaded(analysis.program, analysis.code())

    def allocate(self, shape: Shape, dtype: DType) -> Array:
        """Return a new array."""
        return np.empty(shape, dtype)

    def copy_in(self, array: Array, memory: Array) -> None:
        """Copy an array."""
        memory[...] = array

    def copy_out(self, memory: Array) -> Array:
        """Return a copy of an array."""
        return memory.copy()

    def run(self, code: Loaded, memories: Memories) -> None:
        """Run machine code."""
        code.run(memories)

    def synchronize(self) -> None:
        """Return at once: a run ends when all threads have done their work."""

    def prepare(self, program: KernelProgram, sources: Sources) -> Executable:
        """Return a program ready to run on arrays of the host: where they are, without copies."""
        analysis = _analyse_program(program, sources)
        return Executable(analysis.code(), analysis)


def _analyse_program(program: KernelProgram, sources: Sources) -> Analysis:
    """Return what a program becomes on this machine, which may not yet be planned for it."""
    device = cpu_device()
    if program.schedule is None:
        program = with_schedule(with_memory(program), device)
    return Analysis(program, sources, device)


class Loaded:
    """Machine code whose constants and states lie in memory that each run is given."""

    def __init__(self, program: KernelProgram, code: Code) -> None:
        self.program = program
        self._code = code

    def executable(self, sources: Sources) -> Executable:
        """Return the code with the constants and states that its numbers stand for."""
        plan = replace(self._code.plan, sources=replace(sources, feeds=(), nodes=()))
        return Executable(Code(plan, self._code.objects))

    def run(self, memories: Memories) -> None:
        """Run on memory."""
        program, keeper = self.program, _Keeper(self.program, memories)
        given = {(b.kind, b.slot): memories[b.number] for b in program.buffers if b.slot >= 0}
        constants = tuple(given[key] for key in sorted(given) if key[0] == "constant")
        states = tuple(
            State(keeper, TensorType(s.shape, s.dtype), keeper, i, name=s.name)
            for i, s in enumerate(program.states)
        )
        executable = self.executable(Sources((), constants, states))
        feeds: list[Any] = [given.get(("feed", i)) for i in range(program.feeds)]
        for view, array in zip(program.fetches, executable.run(feeds), strict=True):
            _keep(view, array, memories)


class _Keeper:
    """Keeps states in memory: their old values where they are read, the new ones where they go."""

    def __init__(self, program: KernelProgram, memories: Memories) -> None:
        self._old = {b.slot: b.number for b in program.buffers if b.kind == "state"}
        self._new = dict(program.commits)
        self._memories = memories

    def read(self, keys: Sequence[int]) -> list[Any]:
        """Return the values now."""
        return [self._memories[self._old[key]] for key in keys]

    def write(self, keys: Sequence[int], values: Iterable[Any]) -> None:
        """Give them new values."""
        for key, value in zip(keys, values, strict=True):
            _keep(self._new[key], value, self._memories)


def _keep(view: Any, array: Array, memories: Memories) -> None:
    """Put what a program has made where it is looked for."""
    number = view.buffer.number
    if view.buffer.kind == "object":
        memories[number] = array
    elif view.buffer.kind == "arena":
        shown(memories[number], view)[...] = array


BACKEND: Backend = CpuBackend()
