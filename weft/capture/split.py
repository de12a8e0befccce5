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

from ..core.dim import LEAST, SizeVar, run_time_size
from ..core.dispatch import group
from ..core.op import F
from ..core.shape import TensorType
from ..graph.call import ProgramCall
from ..graph.graph import Graph
from ..graph.node import Value, resolve_attrs
from ..graph.run import Program
from ..graph.size_patterns import Shapes, sizes_in
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
    """Runs the splits of a trace, one after the other."""

    def __init__(self, graph: Graph, splits: Sequence[Split], fed: Sequence[Value]) -> None:
        """Prepare for what the last program is fed with, which includes results of splits."""
        self._splits = splits
        found = {value for split in splits for value in split.outputs}
        self._given = [value for value in fed if value not in found]
        self._fed = fed
        self._calls = [self._call(graph, i, split) for i, split in enumerate(splits)]

    def _call(self, graph: Graph, number: int, split: Split) -> tuple[ProgramCall, list[Value]]:
        earlier = [value for other in self._splits[:number] for value in other.outputs]
        wanted = [value for value in split.inputs if value is not None]
        needed = set(graph.ancestors(wanted))
        feeds = [
            value
            for value in (*self._given, *earlier)
            if value.node in needed or not all(isinstance(size, int) for size in value.shape)
        ]
        program = Program(graph, wanted, feeds, commits=False)
        return ProgramCall(program, split.op.name), feeds

    def __call__(self, feeds: Sequence[Any], admits: Callable[[Told], bool]) -> list[Any] | None:
        """Return all feeds of the last program; None if sizes are not those that it is for."""
        known: dict[Value, Any] = dict(zip(self._given, feeds, strict=True))
        told = _told(known)
        for split, (call, wanted) in zip(self._splits, self._calls, strict=True):
            arrays = iter(_fetched(call, [known[value] for value in wanted]))
            operands = [None if x is None else next(arrays) for x in split.inputs]
            made = split.run(operands, told)
            found = sizes_in(split.pattern, tuple([array.shape for array in made]))
            if found is None:
                return None
            told |= found
            known |= zip(split.outputs, made, strict=True)
        return [known[value] for value in self._fed] if admits(told) else None


def _told(known: Mapping[Value, Any]) -> Told:
    """Return the sizes that arguments tell."""
    shapes = tuple([tuple(array.shape) for array in known.values()])
    found = sizes_in(tuple([value.shape for value in known]), shapes)
    assert found is not None, "the arguments are of the pattern of the trace"
    return found


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


SAID_BY_OTHERS: dict[str, Callable[[Sequence[Any], tuple[Any, ...]], Any]] = {
    "getitem_arrays": without_masks,
}
