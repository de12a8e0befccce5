"""Programs of launches alone: the host reads nothing in them, drives nothing and writes no states.

What such a program's launches are given is the same in every run but for its feeds and results. It
is found once, since small programs take no longer than the host takes to ask for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...core.device_array import DeviceArray
from ...lower.storage import Buffer, View
from ..device_memory import DeviceBlock, DevicePool
from .code import DeviceCode
from .driver import Pointer
from .launch import Launch


class _Step(NamedTuple):
    """A launch, what it is given in all runs, and where it is given which value of a run.

    changing   numbers of arguments, of the values that they are (feeds, then new results), and of
               the elements that they begin at
    """

    launch: Launch
    fixed: list[Pointer]
    changing: list[tuple[int, int, int]]


class StraightRun:
    """A program that is called with values of its device, one for each feed."""

    def __init__(
        self, code: DeviceCode, pool: DevicePool, constants: Mapping[int, DeviceBlock]
    ) -> None:
        self._pool, self._counts = pool, pool.counts
        self._constants = constants  # whose memory would else be other values' before the last run
        self._lock, self._driver = code.lock, code.driver
        program = code.program
        made = list(dict.fromkeys(view.buffer for view in program.fetches))
        self._shelves = [pool.shelf(buffer.shape, buffer.dtype) for buffer in made]
        self._results = [(made.index(view.buffer), tuple(view.shape)) for view in program.fetches]
        given = {b.number: b.slot for b in program.buffers if b.kind == "feed"}
        given |= {buffer.number: program.feeds + i for i, buffer in enumerate(made)}
        self._steps = [
            _step(code, launch, constants, given)
            for kernel in program.kernels
            for launch in code.launches[id(kernel)]
        ]

    def __call__(self, feeds: Sequence[DeviceArray]) -> list[DeviceArray]:
        """Ask for all launches; return the results, which are there when the device is done."""
        pool = self._pool
        blocks = [pool.allocated(shelf) for shelf in self._shelves]
        handles = [x.block.memory.handle for x in feeds]
        handles += [block.memory.handle for block in blocks]
        ask = self._driver.launch
        with self._lock:
            for launch, fixed, changing in self._steps:
                pointers = fixed.copy()  # so that memory of this run is not held on to
                for argument, value, offset in changing:
                    pointers[argument] = handles[value], offset
                ask(launch, pointers)
        self._counts["programs"] += 1
        name = pool.name
        return [
            DeviceArray(name, blocks[i], shape, blocks[i].shelf.dtype) for i, shape in self._results
        ]


def _step(
    code: DeviceCode,
    launch: Launch,
    constants: Mapping[int, DeviceBlock],
    given: Mapping[int, int],
) -> _Step:
    """Return what is known of a launch before any run."""
    known = code.fixed[id(launch)]
    assert known is not None
    fixed: list[Pointer] = []
    changing = []
    for number, offset, place in known:
        if number in given:
            changing.append((len(fixed), given[number], offset))
            fixed.append((None, 0))
        elif number in constants:
            fixed.append((constants[number].memory.handle, offset))
        else:
            fixed.append((code.arena(), place))
    return _Step(launch, fixed, changing)


def is_straight(code: DeviceCode) -> bool:
    """Tell whether a program is one of launches alone."""
    program = code.program
    if program.flag is not None or program.states or program.commits or code.begun:
        return False
    if any(id(kernel) not in code.launches for kernel in program.kernels):
        return False
    if any(code.fixed[id(launch)] is None for launch in code.functions):
        return False
    return all(_is_new(view, view.buffer) for view in program.fetches)


def _is_new(view: View, buffer: Buffer) -> bool:
    """Tell whether a result is all of some memory of the program's own."""
    return buffer.kind == "arena" and view.whole
