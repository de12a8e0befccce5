"""What a recording refers to outside of itself, as records: they are called, or written as text.

Each says what one call of the function reads or does, given the leaves of its arguments; `found`
are the tensors and numbers that the run made. written_run.py writes the same as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.generated import ObjectNames
from ..core.row_sparse import RowSparse
from ..graph.node import Node
from .evaluation import Array
from .history import CallHistory, mark_freed
from .watch.recipes import Recipe, RecipeWriter, UnwrittenError

Leaves = Sequence[Any]  # the tensors, arrays and numbers of a call's arguments
Getter = Callable[[Leaves], Any]


@dataclass(frozen=True, slots=True)
class Outside:
    """Something from outside of the function: an argument, by its position, or a thing itself."""

    position: int | None
    thing: Any = None

    @property
    def key(self) -> tuple[int | None, int]:
        """Return what tells it from others: tensors compare by elements."""
        return self.position, id(self.thing)

    def __call__(self, leaves: Leaves) -> Any:
        """Return what it is in one call."""
        return self.thing if self.position is None else leaves[self.position]


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """An argument that is a tensor, as a feed."""

    position: int

    def __call__(self, leaves: Leaves) -> Any:
        """Return the tensor."""
        return leaves[self.position]


@dataclass(frozen=True, slots=True)
class KeptGrad:
    """The gradient that a tensor has before the call, as a feed."""

    owner: Outside

    def __call__(self, leaves: Leaves) -> Any:
        """Return the gradient."""
        return self.owner(leaves)._kept_grad()


@dataclass(frozen=True, slots=True)
class Escaped:
    """The result of a function that returns a value of its recording, or None for -1."""

    number: int

    def __call__(self, found: Sequence[Any], leaves: Leaves, made: dict[int, Any]) -> Any:
        """Return the result of one call."""
        return None if self.number < 0 else found[self.number]


def resolving(
    escapes: Mapping[int, int], positions: Mapping[int, int], found: Sequence[Any], leaves: Leaves
) -> Callable[[Any], Any]:
    """Return what finds, for one run, what stands for values and arguments of the recording.

    escapes     the numbers of values among those that are found, by their ids
    positions   of the arguments
    """

    def resolve(leaf: Any) -> Any:
        number = escapes.get(id(leaf))
        return leaves[positions[id(leaf)]] if number is None else found[number]

    return resolve


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The result of a function that returns a nest of values, which each call makes anew."""

    recipe: Recipe
    escapes: Mapping[int, int]
    positions: Mapping[int, int]

    def __call__(self, found: Sequence[Any], leaves: Leaves, made: dict[int, Any]) -> Any:
        """Return the result of one call."""
        return self.recipe(resolving(self.escapes, self.positions, found, leaves), made)

    def text(
        self, found: Sequence[str], leaf: Callable[[int], str], names: ObjectNames
    ) -> str | None:
        """Return an expression for it, given those for values and leaves; None if there is none."""

        def recorded(value: Any) -> str:
            number = self.escapes.get(id(value))
            return leaf(self.positions[id(value)]) if number is None else found[number]

        try:
            return RecipeWriter(recorded, names).text(self.recipe)
        except UnwrittenError:
            return None


@dataclass(frozen=True, slots=True)
class GradWrite:
    """Sets the `.grad` of a tensor to a value of the recording, or to None for -1."""

    owner: Outside
    number: int

    def __call__(self, found: Sequence[Any], fetched: Sequence[Array], leaves: Leaves) -> None:
        """Set it."""
        self.owner(leaves)._keep_grad(None if self.number < 0 else found[self.number])


@dataclass(frozen=True, slots=True)
class RowGradWrite:
    """Sets the `.grad` of a tensor to a row-sparse one: values of the recording, by their numbers.

    like   the gradient of the recording, which has its shape
    """

    owner: Outside
    rows: int
    values: int
    like: RowSparse

    def made(self, rows: Any, values: Any) -> RowSparse:
        """Return the gradient of one call."""
        once = self.like.is_coalesced
        found = RowSparse(rows, values, self.like.shape, is_coalesced=once)
        return found.trimmed() if once else found

    def __call__(self, found: Sequence[Any], fetched: Sequence[Array], leaves: Leaves) -> None:
        """Set it."""
        self.owner(leaves)._keep_grad(self.made(found[self.rows], found[self.values]))


GradientWrite = GradWrite | RowGradWrite


@dataclass(frozen=True, slots=True)
class ArgumentWrite:
    """Gives an argument another value: a fetch."""

    owner: Outside
    fetch: int

    def __call__(self, found: Sequence[Any], fetched: Sequence[Array], leaves: Leaves) -> None:
        """Write it."""
        self.owner(leaves)._value = fetched[self.fetch]


@dataclass(frozen=True, slots=True)
class ResultLinks:
    """Puts results on the tape: those whose history backward has used up, and those that go on.

    freed     places of the former, and the nodes that made them
    kept      places of the latter, with the history that they have in common
    made      places of leaves that the call made
    parents   tensors that this goes back to
    sources   arrays that it needs: of what the call was given
    saved     and of the fetches
    """

    freed: dict[int, Node]
    kept: list[int]
    made: list[int]
    history: CallHistory | None
    parents: Sequence[Getter]
    sources: Sequence[Getter]
    saved: Sequence[int]

    def __call__(self, found: list[Any], fetched: Sequence[Array], leaves: Leaves) -> None:
        """Do it for the results of one call."""
        for i, node in self.freed.items():
            mark_freed(found[i], node)
        for i in self.made:
            found[i].requires_grad_()
        if self.history is not None:
            nodes = tuple([get(leaves)._node for get in self.parents])
            arrays = [*[get(leaves) for get in self.sources], *[fetched[n] for n in self.saved]]
            self.history.attach([found[i] for i in self.kept], nodes, arrays)
