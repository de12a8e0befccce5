"""The memory that is a program's own: its arena, its constants, and numbers that it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ....core.dtype import Array
from ....graph.run import Sizes
from ....lower.dynamic import OBJECT
from ....lower.memory import ARENA, MemoryPlan
from ....lower.storage import Buffer, View
from ...host import behind_window, shown
from .arena import aligned_empty
from .states import words_of


class SizedMemory(NamedTuple):
    """What a program for many sizes computes in, and the words in which it finds sizes."""

    arena: Array
    words: Array


class ProgramMemory:
    """Arrays for the buffers of a program, and the table by which its code finds them.

    arena     what it computes in; a few bytes if each call is lent one
    counter   of runs whose native code came to its end
    numbers   a word for each state that is a number
    table     addresses: of all these, of constants, and of what is recorded
    arrays    of buffers; those of arguments are there while the host needs them
    objects   arrays whose shapes only a run can tell, and `sizes` what these have told
    """

    def __init__(
        self,
        layout: MemoryPlan,
        constants: Sequence[Array],
        records: Sequence[Array],
        *,
        own: bool,
        sized: SizedMemory | None = None,
    ) -> None:
        self.layout = layout
        self.arena: Array = sized.arena if sized else self._new_arena(own)
        self.counter: Array = np.zeros(1, np.int64)
        self.numbers: Array = np.zeros(max(1, len(layout.numbers)), np.int64)
        constants = [np.ascontiguousarray(array) for array in constants]
        words = [] if sized is None else [sized.words]
        self.held = [self.arena, self.counter, self.numbers, *constants, *words, *records]
        addresses = [array.ctypes.data for array in self.held]
        behind = len(addresses) - len(records)
        addresses[behind:behind] = self._addresses()
        self.table: Array = np.array(addresses, np.uint64)
        self.arrays: dict[Buffer, Array] = dict(zip(layout.constants, constants, strict=True))
        self.arrays.update(zip(layout.numbers, words_of(self.numbers, layout.numbers), strict=True))
        if own:
            self.arrays.update(self._parts_of_arena())
        self.objects: dict[Buffer, Array] = {}
        self.sizes: Sizes = {}
        self._views: dict[View, Array] = {}

    def _new_arena(self, own: bool) -> Array:
        return aligned_empty(max(64, self.layout.arena_bytes) if own else 64)

    def _addresses(self) -> list[int]:
        """Return where buffers lie that code finds by their addresses."""
        start = self.arena.ctypes.data
        return [start + self.layout.places[b].offset for b in self.layout.addressed or ()]

    def _parts_of_arena(self) -> Iterator[tuple[Buffer, Array]]:
        for buffer, place in self.layout.places.items():
            if place.in_arena and not place.moves:
                part = self.arena[place.offset : place.offset + buffer.nbytes]
                yield buffer, part.view(buffer.dtype)

    def lend_arena(self, arena: Array) -> None:
        """Let the calls that follow compute in given memory."""
        self.table[ARENA] = arena.__array_interface__["data"][0]

    def word(self, buffer: Buffer) -> Array:
        """Return a number in memory that windows move with."""
        return self.arrays[buffer].reshape(())

    def view(self, view: View) -> Array:
        """Return a view as an array; those of the program's own memory are made once."""
        if view.buffer.kind == OBJECT:
            return self.objects[view.buffer]
        known = self._views.get(view)
        if known is None:
            buffer, offset = behind_window(view.buffer, view.offset, self.word)
            taken = self.layout.donated.get(buffer, buffer)
            array = self.arrays[self.layout.shared.get(taken, taken)]
            known = shown(array, replace(view, offset=offset))
            place = self.layout.places[view.buffer]
            if not place.is_argument and not place.moves:
                self._views[view] = known
        return known

    def forget_run(self) -> None:
        """Forget what only the run that has ended could tell, and the arrays that it was passed."""
        self.objects.clear()
        self.sizes.clear()
        for buffer in self.layout.arguments:
            self.arrays.pop(buffer, None)
