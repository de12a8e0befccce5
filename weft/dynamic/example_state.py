"""What a run knows of one example."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.device_array import to_host
from ..core.dtype import Array
from ..core.rng import Generator
from ..core.tensor import Tensor
from .deferred import DeferredTensor
from .reads import ExampleReads
from .signatures import Slot

if TYPE_CHECKING:
    from .running import PutOffRun

MOST_SEEN = 1 << 10  # elements of a tensor whose value is part of a structure


class ExampleState:
    """What a run knows of one example.

    index     its number, which tells it its random numbers
    first     the number of its first value
    task      what can be suspended, if it runs in such
    awaited   the number of the value that it is suspended for
    brought   the numbers of the tensors in it, by identity
    draws     what states were drawn, by the identity of their tensors
    data      what stands for the tensors that it made and brought, by identity
    places    in how many places numbers were data when it began, and so had numbers as values
    slots     those of shared tensors that are data here, by identity
    owner     its number among those that had a turn
    ahead     what is known of values that its code reads, without waiting
    looks     the values that its code sees of the tensors in it, by their numbers
    reads     what its code reads of values, if that is to be known
    """

    __slots__ = (
        *("awaited", "brought", "data", "draws", "first", "has_looked", "has_written", "index"),
        *("ahead", "looks", "places"),
        *("owner", "reads", "records", "slots", "task"),
    )

    def __init__(self, index: int, run: PutOffRun) -> None:
        self.index = index
        self.first = run.count
        self.places = run.table.data_places
        self.records = run.records
        self.task: Any = None
        self.awaited = -1
        self.has_written = False  # to a tensor from outside
        self.has_looked = False  # at the value of one
        self.brought: dict[int, int] = {}
        self.draws: dict[int, tuple[Generator, int]] = {}
        self.data: dict[int, tuple[Tensor, DeferredTensor]] = {}
        self.slots: dict[int, Slot] = {}
        self.ahead: Any = None
        self.looks: dict[int, Array] = {}
        self.owner = -1
        self.reads: ExampleReads | None = None

    def looks_at(self, x: Tensor) -> bool:
        """Note the value that code sees of a tensor; tell whether it is one of the example."""
        number = self.brought.get(id(x))
        if number is None or x.numel() > MOST_SEEN or self.has_written:
            return False
        self.looks.setdefault(number, to_host(x._value).copy())
        return True
