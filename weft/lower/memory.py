"""Where the buffers of a program lie, once that is planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.shape import Size
from .storage import Buffer, View

# The first entries of a program's memory: the arena, the count of runs, and numbers that are read
# anew in each run; its constants follow.
ARENA, COUNTER, NUMBERS, CONSTANTS = 0, 1, 2, 3
WORD = 8  # bytes of a number


@dataclass(frozen=True, slots=True)
class Place:
    """Where a buffer lies: which entry of which table, and how many bytes behind it.

    is_argument   whether each run passes it; else it is the program's own
    moves         places of numbers, and how many bytes further it lies for each unit of them
    """

    is_argument: bool
    entry: int
    offset: Size = 0
    moves: tuple[tuple[Place, Size], ...] = ()

    @property
    def in_arena(self) -> bool:
        """Tell whether it is a part of the arena."""
        return not self.is_argument and self.entry == ARENA


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Where everything lies: in the arena, in memory of the program's own, or in arguments.

    feeds         how many values each run is given
    used_feeds    which of them are arguments
    states        buffers of states that are arguments, those first that are changed in place
    changed       how many these are
    fresh         buffers of fetches that each run makes, and hands out as they are
    constants     buffers of constants
    numbers       buffers of states that are numbers, a word for each
    arguments     buffers that each run passes: the feeds that are used, states, fresh ones
    places        of all buffers
    shared        buffers of new values of states, and of those whose memory they take
    copied        states whose new values are copied when a run has ended, and where these lie
    new_numbers   the same for numbers whose new values lie side by side
    arena_bytes   the size of the arena
    donated       buffers of fetches that take the memory of feeds which were given away, and of
                  these feeds
    addressed     buffers of the arena whose addresses lie in the table of memory, behind that of
                  the words that hold sizes, since where they lie follows from these; None for a
                  program whose sizes are all known
    """

    feeds: int
    used_feeds: tuple[int, ...]
    states: tuple[Buffer, ...]
    changed: int
    fresh: tuple[Buffer, ...]
    constants: tuple[Buffer, ...]
    numbers: tuple[Buffer, ...]
    arguments: tuple[Buffer, ...]
    places: Mapping[Buffer, Place]
    shared: Mapping[Buffer, Buffer]
    copied: tuple[tuple[int, View], ...]
    new_numbers: tuple[tuple[int, View], ...]
    arena_bytes: Size
    donated: Mapping[Buffer, Buffer] = field(default_factory=dict)
    addressed: tuple[Buffer, ...] | None = None

    @property
    def sizes_entry(self) -> int:
        """Return the entry of the words that hold sizes, if there are any; addresses follow it."""
        return CONSTANTS + len(self.constants)

    @property
    def first_state(self) -> int:
        """Return which argument is the first state."""
        return len(self.used_feeds)

    @property
    def in_place(self) -> tuple[Buffer, ...]:
        """Return the buffers of states that are changed in place."""
        return self.states[: self.changed]

    def in_arena(self) -> dict[Buffer, Size]:
        """Return the buffers that have memory of their own in the arena, and where it begins."""
        kept = ((b, place) for b, place in self.places.items() if place.in_arena)
        return {buffer: place.offset for buffer, place in kept if buffer.kind == "arena"}
