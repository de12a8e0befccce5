"""Operations whose shapes depend on values, inside of recordings: the graph is split there.

What such an operation is given (the mask of `x[mask]`, say) is computed by a program of its own,
which writes nothing. Then the operation runs as it does eagerly, and what it found is fed to the
programs behind it: its size is one that the run is told. States are written by the last program
alone, so that all of a call happens or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.dim import LEAST, SizeVar, is_known, run_time_size
from ..core.dispatch import group
from ..core.op import F, find_op
from ..core.shape import TensorType
from ..core.tensor import Tensor
from ..graph.call import ProgramCall
from ..graph.draws import Draws
from ..graph.graph import Graph
from ..graph.node import Node, Value, resolve_attrs
from ..graph.run import Program
from ..graph.size_patterns import Shapes, sizes_in
from ..graph.special import SOURCES
from .evaluation import Array

Told = dict[SizeVar, int]


class Split(NamedTuple):
    """An operation that runs between two programs.

    outputs   what stands for its results
    """

    op: Any
    attrs: tuple[Any, ...]
    inputs: list[Value | None]
    outputs: list[Value]

    def moved(self, find: Callable[[Value], Value]) -> Split:
        """Return the same in a graph that was made from this one."""
        inputs = [None if x is None else find(x) for x in self.inputs]
        return Split(self.op, self.attrs, inputs, [find(x) for x in self.outputs])

    def run(self, operands: Sequence[Array | None], sizes: Mapping[SizeVar, int]) -> list[Array]:
        """Return what it finds."""
        attrs = resolve_attrs(self.attrs, sizes)
        with np.errstate(all="ignore"):
            made = self.op.kernel(*group(self.op, operands), *attrs)
        return [np.asarray(array) for array in ((made,) if self.op.outputs == 1 else made)]

    @property
    def pattern(self) -> Shapes:
        """Return the shapes of its results, with sizes in them."""
        return tuple([value.shape for value in self.outputs])


def split_types(
    types: Sequence[TensorType], arrays: Sequence[Array], number: int
) -> tuple[list[TensorType], Told]:
    """Return the types of results whose sizes depend on values, and what these sizes are now.

    The sizes that one operation leaves open are one and the same; 0 and 1 are numbers.
    """
    size, told = run_time_size(f"v{number}"), Told()
    made = []
    for type, array in zip(types, arrays, strict=True):
        shape = list(type.shape)
        for axis, known in enumerate(shape):
            if known is None and array.shape[axis] >= LEAST:
                shape[axis] = size
                told.update(dict.fromkeys(size.variables(), array.shape[axis]))
            elif known is None:
                shape[axis] = array.shape[axis]
        made.append(TensorType(tuple(shape), type.dtype))
    return made, told


class SplitRun:
    """Runs what comes before the last program of a trace, and finds what that is fed with.

    fed   values of the graph that the last program is fed with: arguments, what splits found, and
          what the programs before it have computed already
    """

    def __init__(
        self,
        graph: Graph,
        splits: Sequence[Split],
        given: Sequence[Value],
        wanted: Sequence[Value],
    ) -> None:
        """Prepare for a graph whose `wanted` values are computed in the end from those given."""
        self._splits, self._given = splits, given
        inputs = [x for split in splits for x in split.inputs if x is not None]
        needed = set(graph.ancestors([*wanted, *inputs]))
        passed = _Passed(graph, needed, set(wanted), Draws(graph).states)
        self.fed: list[Value] = list(given)
        self._calls: list[tuple[ProgramCall, list[Value]]] = []
        for split in splits:
            operands = [x for x in split.inputs if x is not None]
            feeds = _needed(graph, operands, self.fed)
            later = [v for v in passed.after(operands, feeds) if v not in operands]
            program = Program(graph, [*operands, *later], feeds, commits=False)
            self._calls.append((ProgramCall(program, split.op.name), feeds))
            known = set(self.fed)
            computed = [v for v in (*operands, *later) if passed.can_be_fed(v) and v not in known]
            self.fed += [*dict.fromkeys(computed), *split.outputs]

    def __call__(self, feeds: Sequence[Any], admits: Callable[[Told], bool]) -> list[Any] | None:
        """Return all feeds of the last program; None if sizes are not those that it is for."""
        known: dict[Value, Any] = dict(zip(self._given, feeds, strict=True))
        told = _told(known)
        for split, (call, wanted) in zip(self._splits, self._calls, strict=True):
            fetched = _fetched(call, [known[value] for value in wanted])
            known |= zip(call.program.fetches, fetched, strict=True)
            operands = [None if x is None else known[x] for x in split.inputs]
            made = split.run([_array(x) for x in operands], told)
            found = sizes_in(split.pattern, tuple([array.shape for array in made]))
            if found is None:
                return None
            told |= found
            known |= zip(split.outputs, made, strict=True)
        return [known[value] for value in self.fed] if admits(told) else None

    @property
    def calls(self) -> list[ProgramCall]:
        """Return the programs."""
        return [call for call, _ in self._calls]


class _Passed(NamedTuple):
    """Which values are passed on from one program to those behind it.

    needed   the nodes that all of them run
    wanted   what the last one computes
    draws    states of generators, which every program follows from the start
    """

    graph: Graph
    needed: set[Node]
    wanted: set[Value]
    draws: set[Value]

    def after(self, operands: Sequence[Value], feeds: Sequence[Value]) -> list[Value]:
        """Return what a program computes besides its operands that others need, too."""
        inside = set(self.graph.ancestors(operands, set(feeds)))
        users = self.graph.users()
        return [
            value
            for node in self.graph.nodes
            if node in inside and all(map(self.can_be_fed, node.outputs))
            for value in node.outputs
            if value in self.wanted
            or any(user in self.needed and user not in inside for user in users[value])
        ]

    def can_be_fed(self, value: Value) -> bool:
        """Tell whether a program can be fed with a value: its sizes must be those it is told."""
        if value.node.op in SOURCES or value in self.draws:
            return False
        return all(isinstance(size, int) or size.variable() for size in value.shape)


def _needed(graph: Graph, wanted: Sequence[Value], known: Sequence[Value]) -> list[Value]:
    """Return which known values a program needs: all that tell sizes among them."""
    nodes = {*graph.ancestors(wanted, set(known)), *(value.node for value in wanted)}
    used = {x for node in nodes for x in node.inputs} | set(wanted)
    return [value for value in known if value in used or not is_known(value.shape)]


def _told(known: Mapping[Value, Any]) -> Told:
    """Return the sizes that arguments tell."""
    shapes = tuple([tuple(array.shape) for array in known.values()])
    found = sizes_in(tuple([value.shape for value in known]), shapes)
    assert found is not None, "the arguments are of the pattern of the trace"
    return found


def _array(x: Any) -> Any:
    return x._value if isinstance(x, Tensor) else x


def _fetched(call: ProgramCall, feeds: list[Any]) -> list[Array]:
    fetched = call.run_unchecked(feeds)
    return call.run(call.arrays(feeds)) if fetched is None else fetched


# -- operations that are said by others ------------------------------------------------------------


def without_masks(inputs: Sequence[Any], attrs: tuple[Any, ...]) -> Any:
    """Return x[mask] as a selection by the places where the mask holds, which has gradients."""
    x, *arrays = inputs
    (spec,) = attrs
    places = [F.nonzero(a) if a.dtype.kind == "b" else (a,) for a in arrays]
    rest = iter(places)
    spread = tuple([part for item in spec for part in _spread(item, rest)])
    return F.getitem_arrays(x, [a for some in places for a in some], spec=spread)


def _spread(item: Any, places: Iterator[Sequence[Any]]) -> list[Any]:
    return [item] * len(next(places)) if item == "array" else [item]


SAID_BY_OTHERS: dict[Any, Callable[[Sequence[Any], tuple[Any, ...]], Any]] = {
    find_op("getitem_arrays"): without_masks,
}
