"""Programs as a library holds them: which functions run, on what, and what is copied afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....core.dim import SizeVar
from ....core.errors import GraphError
from ....core.shape import Shape
from ....lower.kernels import CallKernel, walk
from ....lower.memory import CONSTANTS, Place
from ....lower.storage import View
from ....plan.run_plan import RunPlan
from ..runtime.analysis import Analysis
from ..runtime.sized import SizedCodeText
from .data import LibraryData
from .image import Address, Word
from .records import FROM_INPUT, FROM_OUTPUT, FROM_STATE, PROGRAM


class ExportedProgram(NamedTuple):
    """A program for inputs of certain shapes.

    analysis   how its code came about
    plan       what a run needs to know
    words      what code for many sizes reads, at these
    """

    analysis: Analysis
    plan: RunPlan
    words: np.ndarray[Any, Any] | None = None

    @property
    def shapes(self) -> list[Shape]:
        """Return the shapes of its outputs."""
        return [view.shape for view in self.plan.fetches]

    @property
    def modules(self) -> Mapping[str, str]:
        """Return the text of its code by names that follow from the content."""
        return self.analysis.text.modules

    @property
    def entry(self) -> str:
        """Return which of these modules runs it."""
        return self.analysis.text.entry


class ExportedSizes:
    """A program for many sizes, of which a library holds some."""

    def __init__(self, text: SizedCodeText) -> None:
        self.text = text

    def admits(self, sizes: Mapping[SizeVar, int]) -> bool:
        """Tell whether the code is right for some sizes."""
        return self.text.admits(sizes)

    def bind(self, sizes: Mapping[SizeVar, int]) -> ExportedProgram:
        """Return the program for some sizes."""
        return ExportedProgram(*self.text.at(sizes))


def refuse_host_calls(analysis: Analysis) -> None:
    """Raise if a program calls operators from Python, which a library cannot."""
    for kernel in walk(analysis.program.kernels):
        if isinstance(kernel, CallKernel):
            nodes = analysis.sources.origins(kernel)
            where = next((node.where for node in nodes if node.where), "an unknown line")
            raise GraphError(
                f"export: {kernel.op.name}, built at {where}, has no machine code of Weft's own: "
                "it is called from Python, which the library does without. Export what comes "
                "before and behind it, or write it in other operators"
            )


class ProgramTables:
    """Writes the records of programs; states are known by their numbers in the library."""

    def __init__(self, data: LibraryData, states: Mapping[Any, int]) -> None:
        self.data = data
        self.states = states
        self.stage_bytes = 0
        self.most = {"arguments": 0, "entries": 0, "numbers": 0}

    def record(
        self, program: ExportedProgram, input_shapes: Sequence[Shape], function: Word
    ) -> list[Word]:
        """Return the words of a program's record."""
        plan, data = program.plan, self.data
        layout = plan.memory
        arguments, made = self._arguments(plan)
        offsets = [layout.places[b].offset for b in layout.addressed or ()]
        outputs = [(i, view) for i, view in enumerate(plan.fetches) if i not in made]
        copied = (*layout.copied, *layout.new_numbers)
        commits = [(self._state(plan, number), view) for number, view in copied]
        words: dict[str, Word] = {
            "run": function,
            "input_shapes": self._shapes(input_shapes),
            "output_shapes": self._shapes(program.shapes),
            "arguments": data.numbers(arguments),
            "argument_count": len(arguments) // 2,
            "constants": self._constants(plan),
            "constant_count": len(layout.constants),
            "flag": _flag(plan),
            "words": 0 if program.words is None else data.numbers(program.words.tolist()),
            "offsets": data.numbers(offsets),
            "offset_count": len(offsets),
            "numbers": data.numbers([self._state(plan, b.slot) for b in layout.numbers]),
            "number_count": len(layout.numbers),
            "arena_bytes": max(64, layout.arena_bytes),
            "output_copies": self._copies(plan, outputs),
            "output_copy_count": len(outputs),
            "state_copies": self._copies(plan, commits),
            "state_copy_count": len(commits),
        }
        self._note("arguments", len(arguments) // 2)
        self._note("entries", CONSTANTS + len(layout.constants) + 1 + len(offsets))
        self._note("numbers", len(layout.numbers))
        return [words[name] for name in PROGRAM]

    def _note(self, name: str, count: int) -> None:
        self.most[name] = max(self.most[name], count)

    def _state(self, plan: RunPlan, slot: int) -> int:
        return self.states[plan.sources.states[slot].key]

    def _shapes(self, shapes: Sequence[Shape]) -> Address:
        return self.data.numbers([size for shape in shapes for size in shape])

    def _arguments(self, plan: RunPlan) -> tuple[list[int], set[int]]:
        """Return what is passed to the code, and which outputs it makes by that."""
        layout = plan.memory
        words: list[int] = []
        for feed in layout.used_feeds:
            words += [FROM_INPUT, feed]
        for buffer in layout.states:
            words += [FROM_STATE, self._state(plan, buffer.slot)]
        made: set[int] = set()
        for buffer in layout.fresh:
            output = next(i for i, view in enumerate(plan.fetches) if view.buffer is buffer)
            made.add(output)
            words += [FROM_OUTPUT, output]
        return words, made

    def _constants(self, plan: RunPlan) -> Address:
        arrays = [np.ascontiguousarray(array) for array in plan.sources.constants]
        return self.data.records([self.data.constant(array) for array in arrays])

    def _copies(self, plan: RunPlan, copies: Sequence[tuple[int, View]]) -> Address:
        words: list[Word] = []
        stage = 0
        for to, view in copies:
            words += self._copy(plan.memory.places[view.buffer], to, view, stage)
            stage += -(-_bytes_of(view) // 64) * 64
        self.stage_bytes = max(self.stage_bytes, stage)
        return self.data.records(words)

    def _copy(self, place: Place, to: int, view: View, stage: int) -> list[Word]:
        size = view.dtype.itemsize
        loops, block = _loops(view)
        moves = [
            number
            for word, step in place.moves
            for number in (int(word.is_argument), word.entry, word.offset, step)
        ]
        return [
            to,
            int(place.is_argument),
            place.entry,
            place.offset + view.offset * size,
            self.data.numbers(moves),
            len(place.moves),
            len(loops),
            self.data.numbers([number for loop in loops for number in loop]),
            block,
            stage,
        ]


def _bytes_of(view: View) -> int:
    return int(np.prod(view.shape, dtype=np.int64)) * view.dtype.itemsize


def _flag(plan: RunPlan) -> int:
    """Return which constant is where code reports bad indices: each instance has its own."""
    if plan.flag is None:
        return -1
    return plan.memory.constants.index(plan.flag.buffer)


def _loops(view: View) -> tuple[list[tuple[int, int]], int]:
    """Return counts and strides in bytes that a copy goes by, and the bytes it takes at a time."""
    size = view.dtype.itemsize
    if 0 in view.shape:
        return [], 0
    block = size
    pairs = list(zip(view.shape, view.strides, strict=True))
    while pairs and (pairs[-1][0] == 1 or pairs[-1][1] * size == block):
        block *= pairs.pop()[0]
    return [(count, stride * size) for count, stride in pairs], block
