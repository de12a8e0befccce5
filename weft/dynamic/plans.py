"""What running a function for one example put off, kept for examples of the same structure.

Then the function's Python code is not run again: a batch puts the columns of its members' plans
together. A plan holds for an example if all that the function could read is the same (structure.py,
outside.py); values of tensors, and random numbers, are data and read anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.device import current_device
from ..core.dtype import DType, default_float
from ..core.modes import is_grad_enabled
from ..core.rng import Generator
from ..core.tree import Structure, flatten
from .agenda import Ints, PutOffOperations
from .deferred import DeferredTensor
from .outside import FunctionSurroundings, instance_of
from .records import NUMBERS, Chunk
from .structure import ATOMS, OpaqueError, StructureWalk

MOST_PLANS = 1 << 16  # examples that are remembered
MOST_ROWS = 1 << 23  # rows of all plans


class Draw(NamedTuple):
    """Data of an example that is the state of a random draw."""

    generator: Generator
    blocks: int


class Brought(NamedTuple):
    """Data of an example that is a tensor in it, by its number."""

    number: int


class ExamplePlan:
    """The rows of one example: values are numbered from 0 on.

    data     for each type what it brings: arrays, or Draws and Brought for single values
    slots    the shared operands of its signatures
    leaves   of the result: (number, type) of a value, or what it is
    """

    def __init__(self, chunk: Chunk, count: int, leaves: Any, nest: Structure) -> None:
        self.signatures: Ints = np.asarray(chunk.signatures, np.int64)
        self.levels: Ints = np.asarray(chunk.levels, np.int64)
        self.refs: Ints = np.asarray(chunk.refs, np.int64) - chunk.first
        self.firsts: Ints | None = None  # of results; None if they follow each other
        self.count = count
        self.data: dict[int, list[Any]] = {}
        self.used = np.unique(self.signatures).tolist()
        self.leaves = leaves
        self.nest = nest
        self.is_single = nest.kind is None

    def take(self, operations: PutOffOperations, low: int, high: int, first: int) -> None:
        """Have rows of operations in the place of those that they came of."""
        self.signatures, self.levels = operations.signature[low:high], operations.level[low:high]
        ends = np.cumsum(operations.arity)
        begin = int(ends[low] - operations.arity[low]) if high > low else 0
        self.refs = (
            operations.refs[begin : int(ends[high - 1])] - first if high > low else self.refs
        )
        self.firsts = operations.firsts[low:high] - first
        self.used = np.unique(self.signatures).tolist()

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


class Known(NamedTuple):
    """An example that was seen, with the plan that it has."""

    walk: StructureWalk
    plan: ExamplePlan


class Plans:
    """The plans of a function, and the examples that were seen."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn
        self.outside = FunctionSurroundings(fn)
        self.hits = 0
        self._by_key: dict[Any, Any] = {}
        self._by_id: dict[tuple[int, Any], Known] = {}
        self._rows = 0
        self._new: list[tuple[Any, tuple[int, Any], Known]] = []

    @property
    def reason(self) -> str | None:
        """Why nothing is kept, if so."""
        return self.outside.reason

    def begin(self, shared: Sequence[Any]) -> Any:
        """Return what plans depend on besides examples, in this call; None if none can be kept."""
        if self.outside.reason is not None:
            return None
        if not self.outside.is_same():
            self.__init__(self.fn)  # type: ignore[misc]  # everything is as it was at first
            return self.begin(shared)
        try:
            walk = StructureWalk(tuple(shared))
        except OpaqueError as error:
            self.outside.reason = f"an argument is {error}"
            return None
        return walk.key, is_grad_enabled(), default_float(), current_device()

    def find(self, example: Any, context: Any) -> tuple[StructureWalk | None, ExamplePlan | None]:
        """Return the walk through an example, and the plan that it has, if any."""
        known = self._by_id.get((id(example), context))
        if known is not None and known.walk.root is example and known.walk.is_same():
            self.hits += 1
            return known.walk, known.plan
        try:
            walk = StructureWalk(example)
        except OpaqueError:
            return None, None
        plan = self._by_key.get((walk.key, context))
        if plan is not None:
            self.hits += 1
            self._by_id[id(example), context] = Known(walk, plan[0])
        return walk, None if plan is None else plan[0]

    def keep(self, walk: StructureWalk, context: Any, plan: ExamplePlan) -> None:
        """Remember a plan, once the call has ended well."""
        self._new.append(((walk.key, context), (id(walk.root), context), Known(walk, plan)))

    def end(self) -> None:
        """Keep what is new, if nothing outside and none of these examples was changed by it."""
        new, self._new = self._new, []
        if not new:
            return
        kinds = dict.fromkeys([kind for _, _, known in new for kind in known.walk.classes])
        self.outside.include(*map(instance_of, kinds))
        self.outside.include(*[x for _, _, known in new for x in known.walk.others])
        if self.outside.reason is not None or not self.outside.is_same():
            return
        for key, place, known in new:
            if known.walk.is_same():
                self._by_key[key] = known.plan, known.walk.others
                self._by_id[place] = known
                self._rows += len(known.plan.signatures)
        while len(self._by_id) > MOST_PLANS or self._rows > MOST_ROWS:
            self._forget()

    def _forget(self) -> None:
        """Forget the older half of everything."""
        for table in (self._by_key, self._by_id):
            for key in list(table)[: len(table) // 2 + 1]:
                del table[key]
        self._rows = sum(len(plan.signatures) for plan, _ in self._by_key.values())


def plan_of(chunk: Chunk, count: int, result: Any, state: Any, run: Any) -> ExamplePlan | None:
    """Return what an example put off as a plan; None if there is more to it."""
    leaves, nest = flatten(result)
    found: list[Any] = []
    for leaf in leaves:
        if leaf.__class__ is DeferredTensor and leaf.run is run and leaf.index >= chunk.first:
            found.append(ValueLeaf((leaf.index - chunk.first, leaf.kind)))
        elif leaf.__class__ in ATOMS or leaf.__class__ is float:
            found.append(leaf)
        else:
            return None
    if nest.kind is None and not isinstance(found[0], ValueLeaf):
        return None
    plan = ExamplePlan(chunk, count, found, nest)
    if len(plan.refs) and int(plan.refs.min()) < 0:  # it reads a value of another example
        return None
    for kind, payload in chunk.data.items():
        plan.data[kind] = _kept(payload, state, run.table.types[kind].dtype)
    return plan


def _kept(payload: list[Any], state: Any, dtype: DType) -> list[Any]:
    """Return data as a plan keeps it: neighbouring constants as one array."""
    found: list[Any] = []
    constants: list[Any] = []
    for x in payload:
        draw = state.draws.get(id(x))
        if x.__class__ in NUMBERS or (draw is None and id(x) not in state.brought):
            constants.append(x if x.__class__ in NUMBERS else x._value)
            continue
        if constants:
            found.append(np.array(constants, dtype))
            constants = []
        found.append(Draw(*draw) if draw is not None else Brought(state.brought[id(x)]))
    return [*found, np.array(constants, dtype)] if constants else found
