"""A program ready to run on a device, and what can be asked of it: its text, its times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.cached_property import cached_property
from ...core.device_array import DeviceArray
from ...core.dtype import DType
from ...core.errors import IndexOutOfRange
from ...core.shape import Shape
from ...lower.kernels import CallKernel, Kernel, walk
from ..execution import Execution
from .code import DeviceCode
from .kernels import has_code
from .launch import Launch
from .straight import StraightRun, is_straight


class KernelTime(NamedTuple):
    """A kernel, how often it was launched in one run, and its seconds by the device's own clock."""

    kind: str
    name: str
    launches: int
    seconds: float


class DeviceProfile:
    """The times of a program's kernels in its fastest run of several.

    kernels   a KernelTime for each, in the order in which they run
    seconds   of all of them
    """

    def __init__(self, kernels: Sequence[KernelTime]) -> None:
        self.kernels = list(kernels)
        self.seconds = sum(kernel.seconds for kernel in kernels)

    def table(self) -> str:
        """Return the times as text."""
        lines = [f"{'kernel':<44} {'launches':>8} {'us':>10} {'share':>6}"]
        for kernel in self.kernels:
            share = kernel.seconds / self.seconds if self.seconds else 0.0
            name = f"{kernel.kind} {kernel.name}"[:44]
            lines.append(
                f"{name:<44} {kernel.launches:>8} {kernel.seconds * 1e6:>10.1f} {share:>6.1%}"
            )
        return "\n".join([*lines, f"{'all':<44} {'':>8} {self.seconds * 1e6:>10.1f}"])

    def __repr__(self) -> str:
        return self.table()


class DeviceExecution(Execution):
    """A program on a device, for feeds of certain shapes."""

    @cached_property
    def checks_feeds(self) -> bool:
        """Whether `run_unchecked` may be called: not if the host takes part."""
        return not self.on_host

    @cached_property
    def straight(self) -> StraightRun | None:
        """The program as launches that the host only asks for; None if it does more."""
        if not is_straight(self.code):
            return None
        return StraightRun(self.code, self.memory, self._constants)

    def run_unchecked(self, feeds: tuple[Any, ...]) -> list[Any] | None:
        """Return the fetches; None if the feeds are not values of the device, as compiled for.

        None too if an index is out of range: a checked run tells which.
        """
        if len(feeds) != len(self._types):
            return None
        here = self.memory.name
        for slot, shape, dtype in self._types:
            x = feeds[slot]
            if x.__class__ is not DeviceArray or x.device != here:
                return None
            if x.dtype != dtype or x.shape != shape:
                return None
        if self.straight is not None:
            return self.straight(feeds)
        try:
            return self.run(feeds)
        except IndexOutOfRange:
            return None

    @cached_property
    def _types(self) -> list[tuple[int, Shape, DType]]:
        """What is fed: its place among the feeds, its shape and its dtype."""
        return [(buffer.slot, tuple(buffer.shape), buffer.dtype) for buffer in self._fed]

    @property
    def code(self) -> DeviceCode:
        """Return the functions of the program."""
        code: DeviceCode = self._code
        return code

    def source(self, name: str | None = None) -> str:
        """Return the text of all that runs, or of the kernels whose names hold some text."""
        if name is None:
            return self.code.source()
        return "\n\n".join(launch.text for launch in self._launches(name))

    def _launches(self, name: str) -> list[Launch]:
        kernels = [k for k in walk(self.program.kernels) if name in k.name]
        return [launch for k in kernels for launch in self.code.alone.get(id(k), ())]

    @property
    def on_host(self) -> list[str]:
        """Return the operators that the host runs, since the device has no kernels for them."""
        calls = [k for k in walk(self.program.kernels) if isinstance(k, CallKernel)]
        return [k.op.name for k in calls if not has_code(k)]

    def profile(self, feeds: Sequence[Any], runs: int = 3) -> DeviceProfile:
        """Run some times; return the times of the fastest run, as the device's timers have them.

        States are written as by any run.
        """
        found = [self._timed(feeds) for _ in range(max(1, runs))]
        return min(found, key=lambda profile: profile.seconds)

    def _timed(self, feeds: Sequence[Any]) -> DeviceProfile:
        with self.code.timing() as launched:
            self.run(feeds)
        self.backend.synchronize()
        totals: dict[int, tuple[Kernel, int, float]] = {}
        for kernel, event in launched:
            _, count, seconds = totals.get(id(kernel), (kernel, 0, 0.0))
            totals[id(kernel)] = kernel, count + 1, seconds + self.code.driver.seconds(event)
        return DeviceProfile([KernelTime(k.kind, k.name, n, s) for k, n, s in totals.values()])
