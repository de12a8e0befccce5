"""What a back end is: the handful of functions by which a device runs kernel programs.

A back end is a folder beside this file with a module `backend`, in which `BACKEND` is an object
with these functions. It needs no other mention: the folder's name is that of the device, and
everything above goes through here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ..core.dim import Decisions, SizeVar
from ..core.dtype import DType
from ..core.shape import Shape
from ..graph.state import State
from ..lower.program import KernelProgram, Sources
from ..plan.device import Device
from ..plan.run_plan import Planned, RunPlan
from .exporting import ExportedModel, ExportOptions

Array = np.ndarray[Any, Any]
Memories = dict[int, Any]  # memory of the device, by the numbers of a program's buffers


class Backend(Protocol):
    """Runs kernel programs on a device."""

    def describe(self) -> Device:
        """Return what is known about the device."""

    def compile(self, program: KernelProgram) -> Any:
        """Return a program in the form that `run` takes."""

    def allocate(self, shape: Shape, dtype: DType) -> Any:
        """Return new memory of the device."""

    def copy_in(self, array: Array, memory: Any) -> None:
        """Copy an array of the host to memory of its shape and dtype."""

    def copy_out(self, memory: Any) -> Array:
        """Return what memory holds as a new array of the host."""

    def run(self, code: Any, memories: Memories) -> None:
        """Run a program.

        It is given memory for what comes from outside and for what is read when it has run: feeds,
        constants, states, fetches and new values of states. The rest is the back end's own affair.
        An array whose size only the run can tell is added to the memories by it.
        """

    def synchronize(self) -> None:
        """Wait until all that was started is done."""

    def prepare(self, program: KernelProgram, sources: Sources) -> Runnable:
        """Return a program ready to run on arrays of the host, and on the states it refers to.

        `Execution(self, program, sources)` does all of that by the functions above; a device that
        works in the host's own memory can do with fewer copies.
        """


@runtime_checkable
class IndexedBackend(Protocol):
    """A back end of several devices, `name:0`, `name:1` and so on: each is a back end of its own.

    `BACKEND` is such an object then.
    """

    def count(self) -> int:
        """Return how many devices there are; raise a WeftError that says why there are none."""

    def at(self, index: int) -> Backend:
        """Return one of them."""


@runtime_checkable
class KeepingBackend(Backend, Protocol):
    """A back end that keeps the code of programs between processes."""

    def restore(self, plan: RunPlan, **options: Any) -> Restorable | None:
        """Return a program that some process has built; None if its code is no longer kept."""

    def build(self, planned: Planned, **options: Any) -> Restorable:
        """Return a program ready to run, and keep its code by the keys that its plan has."""


@runtime_checkable
class PreparingBackend(Backend, Protocol):
    """A back end that wants to know of a program before it is planned, to be ready for it."""

    def ready_for(self, nodes: int) -> AbstractContextManager[None]:
        """Be ready, in a with block, to make code for a graph of so many nodes."""


@runtime_checkable
class SavingBackend(KeepingBackend, Protocol):
    """A back end whose code can be put into files of its own."""

    def code(self, key: bytes) -> bytes | None:
        """Return the code that a plan names, if it is kept."""

    def runtime_keys(self) -> Sequence[bytes]:
        """Return the keys of code that programs need besides their own."""


@runtime_checkable
class SizedBackend(Backend, Protocol):
    """A back end whose code can be for many sizes."""

    def prepare_for_sizes(self, planned: Planned, decisions: Decisions) -> Sizable:
        """Return a program ready for sizes that runs are told; UnknownSizeError if it cannot be."""


@runtime_checkable
class ExportingBackend(Backend, Protocol):
    """A back end whose programs can leave Python, as libraries."""

    def export_device(self, options: ExportOptions) -> Device:
        """Return the machine that a library is for; raise if there cannot be one."""

    def exportable(self, planned: Planned) -> Any:
        """Return a program as a library takes it; raise if it needs Python."""

    def exportable_for_sizes(self, planned: Planned, decisions: Decisions) -> Any:
        """Return the same for many sizes: what its `bind` returns is for some of them."""

    def export(self, model: ExportedModel, options: ExportOptions) -> list[Path]:
        """Write a library; return the paths of its files."""


class Sizable(Protocol):
    """A program that is ready for many sizes."""

    def admits(self, sizes: Mapping[SizeVar, int]) -> bool:
        """Tell whether the code is right for some sizes."""

    def bind(self, sizes: Mapping[SizeVar, int]) -> Runnable:
        """Return it for some sizes."""


class DirectRun(NamedTuple):
    """The shortest way to run a program, for code that is written for it.

    run       takes the feeds, as they come, and returns the fetches; `refused` or None where a run
              by `run_unchecked` is needed. The code itself looks at feeds and states
    code      the program
    guard     whose `lock` the caller holds
    states    that the code looks at: a tensor of another shape or dtype is refused
    """

    run: Callable[[tuple[Any, ...]], Any]
    code: Runnable
    guard: Any
    refused: object
    states: Sequence[State]


class Runnable(Protocol):
    """A program that is ready to run on arrays of the host."""

    @property
    def checks_feeds(self) -> bool:
        """Whether `run_unchecked` may be called."""

    def run(self, feeds: Sequence[Array]) -> list[Array]:
        """Run on arrays of the shapes it was compiled for, write the states, return the fetches."""

    @property
    def direct(self) -> DirectRun | None:
        """The shortest way to run, if there is one by now."""

    def run_unchecked(self, feeds: tuple[Any, ...]) -> list[Array] | None:
        """Return the fetches; None if the feeds, which may be anything, are not as compiled for."""

    def stats(self) -> dict[str, Any]:
        """Return how many kernels of each kind there are, and what runs in Python."""


Planner = Callable[[], Planned | None]  # goes through all stages; None if it cannot be compiled


class Restorable(Runnable, Protocol):
    """A program that is ready to run, and that another process can restore."""

    @property
    def plan(self) -> RunPlan:
        """What restores it."""

    def explain_by(self, planner: Planner) -> None:
        """Take who plans it again when someone looks inside, which no run needs."""
