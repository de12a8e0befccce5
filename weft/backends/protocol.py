"""What a back end is: the handful of functions by which a device runs kernel programs.

A back end is a folder beside this file with a module `backend`, in which `BACKEND` is an object
with these functions. It needs no other mention: the folder's name is that of the device, and
everything above goes through here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..core.dtype import DType
from ..core.shape import Shape
from ..lower.program import KernelProgram, Sources
from ..plan.device import Device
from ..plan.run_plan import Planned, RunPlan

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


class Kept(Protocol):
    """Where the code of one program is kept between processes."""

    def find(self) -> RunPlan | None:
        """Return what was kept."""

    def keep(self, plan: RunPlan) -> None:
        """Keep what a run needs to know, but for the code, whose keys it has."""


Plan = Callable[[], Planned | None]  # goes through all stages; None if it cannot be compiled
Keep = Callable[[], Kept | None]  # looks for the place; None if there is none


@runtime_checkable
class KeepingBackend(Backend, Protocol):
    """A back end whose code can be kept between processes."""

    def load(self, plan: Plan, kept: Keep, **options: Any) -> Runnable | None:
        """Return a program ready to run: by code that was kept, else by what it keeps now.

        None if it cannot be compiled.
        """


class Runnable(Protocol):
    """A program that is ready to run on arrays of the host."""

    @property
    def checks_feeds(self) -> bool:
        """Whether `run_unchecked` may be called."""

    def run(self, feeds: Sequence[Array]) -> list[Array]:
        """Run on arrays of the shapes it was compiled for, write the states, return the fetches."""

    def run_unchecked(self, feeds: tuple[Any, ...]) -> list[Array] | None:
        """Return the fetches; None if the feeds, which may be anything, are not as compiled for."""

    def stats(self) -> dict[str, Any]:
        """Return how many kernels of each kind there are, and what runs in Python."""
