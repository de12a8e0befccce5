"""`wf.batched`: a function of one example, run for many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import update_wrapper
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from .many_calls import ManyCalls
from .plans import Plans
from .results import ERRORS, REDUCTIONS
from .signatures import SignatureTable, interning
from .statistics import BatchPlan
from .structure import Remembering


def batched(fn: Callable[..., Any], *, reduce: str | None = None, errors: str = "raise") -> Any:
    """Return a function that runs `fn`, written for one example, for many examples at once.

    `batched(fn)(examples, *shared)` returns the list of what `fn(example, *shared)` would return.
    Operations are put off; those of one kind, of all examples, run as one. Gradients flow through.

    reduce   "stack", "mean" or "sum" of the results in place of their list
    errors   "raise" the first error of an example, with a note that names the example, or
             "collect": an `ExampleError` stands in the place of each result that there is not

    >>> import weft as wf
    >>> def depth(tree):
    ...     if isinstance(tree, tuple):
    ...         return wf.maximum(*map(depth, tree)) + 1.0
    ...     return wf.tensor(0.0)
    >>> wf.batched(depth)([(1, (2, 3)), 4, (5, 6)])
    [tensor(2.), tensor(0.), tensor(1.)]
    """
    if not callable(fn):
        raise ArgumentTypeError(f"batched: a function is needed. Received: {fn!r:.60}")
    if reduce not in REDUCTIONS:
        raise ArgumentError(
            f"batched: reduce must be one of {REDUCTIONS}. Received: {reduce!r:.60}"
        )
    if errors not in ERRORS:
        raise ArgumentError(f"batched: errors must be one of {ERRORS}. Received: {errors!r:.60}")
    return ExampleFunction(fn, reduce, errors)


class ExampleFunction(Remembering):
    """A function of one example, to be called with many."""

    def __init__(self, fn: Callable[..., Any], reduce: str | None, errors: str) -> None:
        self.fn = fn
        self.reduce = reduce
        self.errors = errors
        self.reads = False  # whether it was seen to read values
        self._begin_anew()
        update_wrapper(self, fn, updated=())

    def _begin_anew(self) -> None:
        """Know of no calls."""
        self._table = SignatureTable()
        self._plans: Plans | None = None
        self._last: BatchPlan | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy has: not what calls have left, which is of these objects alone."""
        left = ("_table", "_plans", "_last")
        return {name: x for name, x in self.__dict__.items() if name not in left}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin_anew()

    def __call__(self, examples: Iterable[Any], *shared: Any, start: int = 0) -> Any:
        """Return the results of all examples.

        start   the number of the first one, which tells it its random numbers
        """
        try:
            given = list(examples)
        except TypeError:
            raise ArgumentTypeError(
                f"batched: examples must be a list of them. Received: {type(examples).__name__}"
            ) from None
        calls = ManyCalls(self, given, shared, start)
        try:
            return calls.results()
        finally:
            self._last = calls.run.plan  # of the run that gave them: there may have been another

    def plan(self) -> BatchPlan:
        """Return how the last call was run: its `stats()`, and a picture by `draw(path)`."""
        if self._last is None:
            raise ArgumentError("plan: the function was not called yet")
        return self._last

    def begin(self) -> tuple[SignatureTable, Plans]:
        """Return what calls of the function have in common."""
        with interning:
            if self._plans is None or self._table.is_full or not self._table.is_current:
                self._table, self._plans = SignatureTable(), Plans(self.fn)
            elif self._plans.is_full or not self._plans.is_current:
                self._plans = Plans(self.fn)  # calls that run have the plans of before
            return self._table, self._plans
