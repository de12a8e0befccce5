"""What running a function for one example put off, kept for examples of the same structure.

Then the function's Python code is not run again: a batch puts the columns of its members' plans
together. A plan holds for an example if all that the function could read is the same (structure.py,
outside.py); values of tensors, and random numbers, are data and read anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.device import current_device
from ..core.device_array import to_host
from ..core.dtype import Array, DType, default_float
from ..core.modes import is_grad_enabled
from ..core.rng import Generator
from ..core.tensor import Constant, Tensor
from ..core.tree import Structure, flatten
from .agenda import Ints
from .choices import PathChoices
from .deferred import DeferredTensor
from .example_state import ExampleState
from .outside import FunctionSurroundings, instance_of
from .path_trust import PathTrust
from .records import NUMBERS, Chunk
from .signatures import BatchSignature, Slot, interning
from .structure import ATOMS, OpaqueError, StructureWalk, are_same

MOST_PLANS = 1 << 16  # examples that are remembered
MOST_ROWS = 1 << 23  # rows of all plans
MOST_CONTEXTS = 1 << 8  # a number that examples share may be another one in each call
MADE = "the code computes a tensor without operations, or by a Function"


class Draw(NamedTuple):
    """Data of an example that is the state of a random draw."""

    generator: Generator
    blocks: int


class Brought(NamedTuple):
    """Data of an example that is a tensor in it, by its number."""

    number: int


class SharedRow(NamedTuple):
    """Data of an example that is a shared tensor, by its slot."""

    slot: Slot


class ExamplePlan:
    """The rows of one example: values are numbered from 0 on.

    columns   lines of numbers of signatures, of levels and of first results: one of each for a row
    refs      the values that rows read, one after another
    count     how many values are numbered
    data      for each type what it brings: arrays, or Draws and the like for single values
    is_open   whether there are any of the latter
    depth     how many levels it has
    leaves    of the result
    looks     what the code saw of the tensors in the example, by their numbers
    choices   what the code found of the values that it read, if it read some: the plan holds only
              if a batch comes out the same
    places    in how many places numbers were data when the code ran
    """

    __slots__ = (
        *("_chunk", "choices", "columns", "count", "data", "depth", "is_open", "is_single"),
        *("leaves", "looks", "nest", "places", "refs"),
    )

    columns: Ints
    refs: Ints
    depth: int

    def __init__(self, chunk: Chunk | None, count: int, leaves: ResultLeaves) -> None:
        self._chunk = chunk  # until the columns are needed, or are told
        self.count = count
        self.data: dict[int, list[Any]] = {}
        self.is_open = False
        self.leaves, self.nest = leaves
        self.is_single = self.nest.kind is None and self.leaves[0].__class__ is ValueLeaf
        self.looks: dict[int, Array] = {}
        self.choices: PathChoices | None = None
        self.places = 0

    def __len__(self) -> int:
        """Return how many rows it has."""
        return len(self.columns[0])

    def settle(self) -> None:
        """Have columns of its own, if it was told none."""
        chunk = self._chunk
        if chunk is not None:
            columns = np.array([chunk.signatures, chunk.levels, chunk.firsts], np.int64)
            columns[2] -= chunk.first
            refs = np.asarray(chunk.refs, np.int64) - chunk.first
            self.take(columns, refs, int(columns[1].max(initial=0)))

    def take(self, columns: Ints, refs: Ints, depth: int) -> None:
        """Have these rows in the place of those that they came of."""
        self.columns, self.refs, self.depth = columns, refs, depth
        self._chunk = None

    def fits(self, tensors: Sequence[Tensor]) -> bool:
        """Tell whether an example holds tensors of which the code sees the same."""
        return all(
            to_host(tensors[number]._value).tobytes() == array.tobytes()
            for number, array in self.looks.items()
        )

    def add_data(self, kind: int, data: list[Any]) -> None:
        """Have data of a type, in the order of rows."""
        self.data[kind] = data
        self.is_open |= any(x.__class__ is not np.ndarray for x in data)

    def result(self, run: Any, first: int) -> Any:
        """Return the result of an example whose values are numbered from `first` on."""
        if self.is_single:
            index, kind = self.leaves[0].place
            return run.stand_in(first + index, kind, 0)
        leaves = [
            run.stand_in(first + x.place[0], x.place[1], 0) if isinstance(x, ValueLeaf) else x
            for x in self.leaves
        ]
        return self.nest.unflatten(leaves)


class ValueLeaf(NamedTuple):
    """A leaf of a result that is a value: its number, and that of its type."""

    place: tuple[int, int]


class ResultLeaves(NamedTuple):
    """The leaves of a result, values among them, and their nest."""

    found: list[Any]
    nest: Structure

    def numbers(self) -> list[int]:
        """Return the numbers of the values among them."""
        return [x.place[0] for x in self.found if x.__class__ is ValueLeaf]

    def renumbered(self, own: Callable[[int], int]) -> ResultLeaves:
        """Return them with other numbers of values."""
        found = [
            ValueLeaf((own(x.place[0]), x.place[1])) if x.__class__ is ValueLeaf else x
            for x in self.found
        ]
        return ResultLeaves(found, self.nest)


def leaves_of(result: Any, run: Any) -> ResultLeaves | None:
    """Return the leaves of a result by the numbers of the run; None if others are among them."""
    leaves, nest = flatten(result)
    found: list[Any] = []
    for leaf in leaves:
        if leaf.__class__ is DeferredTensor and leaf.run is run:
            found.append(ValueLeaf((leaf.index, leaf.kind)))
        elif leaf.__class__ in ATOMS or leaf.__class__ is float:
            found.append(leaf)
        else:
            return None
    return ResultLeaves(found, nest)


class Known(NamedTuple):
    """An example that was seen, with the plan that it has, if any."""

    walk: StructureWalk
    plan: ExamplePlan | None

    def fitting(self) -> Known:
        """Return it without its plan where the code would see other tensors."""
        plan = self.plan
        if plan is None or not plan.looks or plan.fits(self.walk.tensors):
            return self
        return Known(self.walk, None)

    @classmethod
    def of(cls, walk: StructureWalk | None, plan: ExamplePlan | None) -> Known | None:
        """Return an example that could be looked into."""
        return None if walk is None else cls(walk, plan)


class NewPlan(NamedTuple):
    """A plan that is to be kept, with what it depends on besides its example."""

    context: int
    known: Known


class Plans:
    """The plans of a function, and the examples that were seen, while nothing outside changes."""

    def __init__(self, fn: Any) -> None:
        self.outside = FunctionSurroundings(fn)
        self._contexts: dict[Any, int] = {}
        self._by_key: dict[Any, Any] = {}
        self._by_id: dict[int, dict[int, Known]] = {}  # by context, and by the example's identity
        self.trust = PathTrust()
        self.gives_numbers = True  # that know what they were read of, where floats are read
        self._told: set[int] = set()  # signatures of which a later call knows all
        self._rows = 0

    @property
    def reason(self) -> str | None:
        """Why nothing is kept, if so."""
        return self.outside.reason

    @property
    def is_full(self) -> bool:
        """Whether it knows so many shared arguments that it is better to begin anew."""
        return len(self._contexts) > MOST_CONTEXTS

    @property
    def is_current(self) -> bool:
        """Whether all that the function reads besides examples is as it was."""
        return self.outside.reason is not None or self.outside.is_same()

    def walk(self, shared: Sequence[Any]) -> StructureWalk | None:
        """Return the walk through the arguments that examples share; None if none can be kept."""
        if self.outside.reason is not None:
            return None
        try:
            return StructureWalk(tuple(shared))
        except OpaqueError as error:
            self.outside.reason = f"an argument is {error}"
            return None

    def context(self, shared: StructureWalk | None) -> int | None:
        """Return what plans depend on besides examples, in one call; None if none can be kept."""
        if shared is None:
            return None
        key = shared.key, is_grad_enabled(), default_float(), current_device()
        with interning:
            known = self._contexts.get(key)
            if known is None:
                self._include([shared])
                known = self._contexts[key] = len(self._contexts)
            return known

    def known(self, examples: Sequence[Any], context: int) -> list[Known | None]:
        """Return what is known of examples, as they are; None of what cannot be looked into.

        Those that are new have no plan, nor have some that read values: their code runs.
        """
        table = self._by_id.get(context, {})
        found = list(map(table.get, map(id, examples)))
        seen = [x for x in found if x is not None]
        if all(map(_is_of, found, examples)) and are_same([x.walk for x in seen]):
            return [x.fitting() for x in seen]
        return [Known.of(*self.find(example, context)) for example in examples]

    def find(self, example: Any, context: int) -> tuple[StructureWalk | None, ExamplePlan | None]:
        """Return the walk through an example, and the plan that it has, if any."""
        known = self._by_id.get(context, {}).get(id(example))
        if known is not None and known.walk.root is example and known.walk.is_same():
            return known.fitting()
        try:
            walk = StructureWalk(example)
        except OpaqueError:
            return None, None
        plan, _ = self._by_key.get((walk.key, context), (None, None))
        if plan is not None and plan.fits(walk.tensors):
            with interning:
                self._by_id.setdefault(context, {})[id(example)] = Known(walk, plan)
        return Known(walk, plan).fitting()

    def has_met(self, walk: StructureWalk, context: int) -> bool:
        """Tell whether an example of such a structure was there before."""
        return (walk.key, context) in self._by_key

    def keep(self, new: Sequence[NewPlan], signatures: Sequence[BatchSignature]) -> None:
        """Keep the plans of a call, if nothing outside and none of these examples was changed.

        signatures   by number, those that plans speak of
        """
        if not new:
            return
        with interning:
            self._include([x.known.walk for x in new])
            if self.outside.reason is None and self.outside.is_same():
                unchanged = are_same([x.known.walk for x in new])
                for context, known in new:
                    if unchanged or known.walk.is_same():
                        self._keep(context, known, signatures)
                while self._size() > MOST_PLANS or self._rows > MOST_ROWS:
                    self._forget()

    def _include(self, walks: Sequence[StructureWalk]) -> None:
        """Watch what the objects of structures can do: code may call it."""
        kinds = dict.fromkeys([kind for walk in walks for kind in walk.classes])
        self.outside.include(*map(instance_of, kinds))
        self.outside.include(*[other for walk in walks for other in walk.others])

    def _keep(self, context: int, known: Known, signatures: Sequence[BatchSignature]) -> None:
        walk = known.walk
        if known.plan is not None:
            known.plan.settle()
            used = np.flatnonzero(np.bincount(known.plan.columns[0])).tolist()
            if not all(self._is_told(signatures[i]) for i in used):
                known = known._replace(plan=None)
        else:  # a call in which nobody noted what was read leaves the path of before
            known = known._replace(plan=self._by_key.get((walk.key, context), (None,))[0])
        self._by_id.setdefault(context, {})[id(walk.root)] = known
        if known.plan is not None:
            self._rows += len(known.plan)
        self._by_key[walk.key, context] = known.plan, walk.others

    def _is_told(self, signature: BatchSignature) -> bool:
        """Tell whether a later call knows all that a signature's operations share.

        It does not of a tensor that the code made in a way of its own, by a Function, say.
        """
        if signature.index not in self._told:
            slots = [spec for spec in signature.specs if spec.__class__ is Slot]
            if not all(map(self._is_found, slots)):
                self.outside.reason = MADE
                return False
            self._told.add(signature.index)
        return True

    def _is_found(self, slot: Slot | None) -> bool:
        """Tell whether a later call finds in a slot what belongs there then."""
        if slot is None:
            return True
        if slot.made is not None:
            return all(map(self._is_found, slot.made.slots))
        x = slot.tensor
        return x is None or x.__class__ is Constant or self.outside.holds(x)

    def _size(self) -> int:
        return sum(map(len, self._by_id.values()))

    def _forget(self) -> None:
        """Forget the older half of everything."""
        for table in (self._by_key, *self._by_id.values()):
            for key in list(table)[: len(table) // 2 + 1]:
                del table[key]
        plans = [plan for plan, _ in self._by_key.values()]
        self._rows = sum(len(plan) for plan in plans if plan is not None)


def _is_of(known: Known | None, example: Any) -> bool:
    return known is not None and known.walk.root is example


def plan_of(chunk: Chunk, count: int, result: Any, state: Any, run: Any) -> ExamplePlan | None:
    """Return what an example put off as a plan; None if there is more to it."""
    leaves, first = leaves_of(result, run), chunk.first
    if leaves is None:
        return None
    if min(first, *chunk.refs, *leaves.numbers()) < first:  # it has a value of another one
        return None
    plan = ExamplePlan(chunk, count, leaves.renumbered(lambda i: i - first))
    plan.looks = state.looks
    for kind, payload in chunk.data.items():
        plan.add_data(kind, kept_data(payload, state, run.table.types[kind].dtype))
    return plan


def kept_data(payload: list[Any], state: Any, dtype: DType) -> list[Any]:
    """Return data as a plan keeps it: neighbouring constants as one array."""
    if not (state.draws or state.brought or state.slots):  # as in most examples
        return [np.array([x if x.__class__ in NUMBERS else x._value for x in payload], dtype)]
    found: list[Any] = []
    constants: list[Any] = []
    for x in payload:
        open_data = None if x.__class__ in NUMBERS else _open_data(x, state)
        if open_data is None:
            constants.append(x if x.__class__ in NUMBERS else x._value)
            continue
        if constants:
            found.append(np.array(constants, dtype))
            constants = []
        found.append(open_data)
    return [*found, np.array(constants, dtype)] if constants else found


def _open_data(x: Any, state: ExampleState) -> Any:
    """Return where a tensor comes from that is another in each call; None for a constant."""
    if id(x) in state.draws:
        return Draw(*state.draws[id(x)])
    if id(x) in state.brought:
        return Brought(state.brought[id(x)])
    return SharedRow(state.slots[id(x)]) if id(x) in state.slots else None
