"""What a batched function returns, and what it says when an example fails."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError, ShapeError, WeftError, user_line
from ..core.op import F
from ..core.tensor import Tensor
from ..core.tree import flatten
from .deferred import DeferredTensor
from .deferring import Deferring
from .structure import is_cyclic

ERRORS = ("raise", "collect")
UNFINISHED = (GeneratorType, CoroutineType, AsyncGeneratorType)


class Reduction(Enum):
    """What may be returned in place of the list of results."""

    STACK = "stack"
    MEAN = "mean"
    SUM = "sum"


REDUCTIONS = (None, *[reduction.value for reduction in Reduction])


class ExampleError(WeftError):
    """Stands in the place of the result of an example that failed.

    index   which example it was
    error   what it raised
    line    the user's line that raised it
    """

    def __init__(self, index: int, error: BaseException) -> None:
        self.index = index
        self.error = error
        self.line = user_line(error)
        where = f" at {self.line}" if self.line else ""
        super().__init__(f"example {index}{where}: {type(error).__name__}: {error}")


def note_example(error: BaseException, index: int, count: int) -> None:
    """Let an error name the example that raised it."""
    line = user_line(error)
    error.add_note(f"in example {index} of {count}{f', at {line}' if line else ''}")


def explain_depth(error: BaseException, example: Any) -> None:
    """Let the error of a function that calls itself without end say so."""
    if isinstance(error, RecursionError):
        found = is_cyclic(example)
        error.add_note(
            "the structure of the example is cyclic: it leads back to itself"
            if found
            else "the example is deeper than Python's recursion limit (sys.setrecursionlimit)"
        )


def checked(result: Any, index: int) -> Any:
    """Return the result of an example; raise if there can be no tensor in it."""
    if result is None or isinstance(result, UNFINISHED):
        shown = "None" if result is None else f"a {type(result).__name__}, which has not run"
        raise ArgumentTypeError(
            f"batched: the function must return tensors, or a nest with tensors in it. "
            f"Received from example {index}: {shown}"
        )
    return result


def settled(run: Deferring, results: list[Any]) -> list[Any]:
    """Return results with tensors in the places of what stood for them."""
    kinds: dict[int, dict[int, DeferredTensor]] = {}
    for leaf in flatten(results)[0]:
        if leaf.__class__ is DeferredTensor and leaf.run is run:
            kinds.setdefault(leaf.kind, {})[id(leaf)] = leaf
    for kind, found in kinds.items():
        run.settle_all(list(found.values()), kind)
    return results


def reduced(how: str | None, run: Deferring, results: list[Any]) -> Any:
    """Return results as they are, or stacked and reduced."""
    if how is None:
        return settled(run, results)
    failed = [x for x in results if isinstance(x, ExampleError)]
    if failed:
        raise failed[0] from failed[0].error
    if not results:
        raise ArgumentError(f"batched: there is no {how} of zero examples")
    columns, nest = _columns(how, results)
    made = [_stacked(run, column) for column in columns]
    if how != Reduction.STACK.value:
        made = [getattr(F, how)(y, 0) for y in made]
    return nest.unflatten(made)


def _stacked(run: Deferring, column: list[Any]) -> Tensor:
    """Return results of one place as one tensor: from where they lie, if they lie together."""
    if all(x.__class__ is DeferredTensor and x.run is run for x in column):
        block = run.block(column, column[0].kind)
        if block is not None:
            return block
    settled(run, column)
    found: Tensor = F.stack(column)
    return found


def _columns(how: str, results: Sequence[Any]) -> tuple[list[list[Tensor]], Any]:
    """Return results as one list for each leaf; raise if they are not alike."""
    first, nest = flatten(results[0])
    if nest.kind is None and all(x.__class__ is DeferredTensor for x in results):
        return [[_leaf(how, x, first[0], i) for i, x in enumerate(results)]], nest
    columns: list[list[Tensor]] = [[] for _ in first]
    for i, result in enumerate(results):
        leaves, structure = flatten(result)
        if structure != nest:
            raise ArgumentError(
                f"batched: reduce={how!r} needs results of one structure. Received: {nest} from "
                f"example 0 and {structure} from example {i}"
            )
        for column, leaf, like in zip(columns, leaves, first, strict=True):
            column.append(_leaf(how, leaf, like, i))
    return columns, nest


def _leaf(how: str, leaf: Any, like: Any, index: int) -> Tensor:
    if not isinstance(leaf, Tensor):
        raise ArgumentTypeError(
            f"batched: reduce={how!r} needs tensors. Received from example {index}: "
            f"{type(leaf).__name__} {leaf!r:.60}"
        )
    if leaf.shape != like.shape:
        raise ShapeError(
            f"batched: reduce={how!r} needs results of one shape. Received: {tuple(like.shape)} "
            f"from example 0 and {tuple(leaf.shape)} from example {index}"
        )
    return leaf
