"""`wf.batched`: a function of one example, run for many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import update_wrapper
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.modes import current_interpreter, interpret_with
from ..core.tree import flatten
from .deferring import Deferring
from .results import ERRORS, REDUCTIONS, ExampleError, checked, note_example, reduced, settled
from .signatures import SignatureTable


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


class ExampleFunction:
    """A function of one example, to be called with many."""

    def __init__(self, fn: Callable[..., Any], reduce: str | None, errors: str) -> None:
        self.fn = fn
        self.reduce = reduce
        self.errors = errors
        self.table = SignatureTable()
        update_wrapper(self, fn, updated=())

    def __call__(self, examples: Iterable[Any], *shared: Any, start: int = 0) -> Any:
        """Return the results of all examples.

        start   the number of the first one, which tells it its random numbers
        """
        given = list(examples)
        if self.table.is_full:
            self.table = SignatureTable()
        run = Deferring(self.table, current_interpreter())
        for i, leaf in enumerate(flatten(shared)[0]):
            run.arguments[id(leaf)] = i
        results: list[Any] = []
        with interpret_with(run):
            for i, example in enumerate(given):
                run.example = start + i
                results.append(self._result(example, shared, i, len(given)))
        run.close()
        return reduced(self.reduce, settled(run, results))

    def _result(self, example: Any, shared: tuple[Any, ...], i: int, count: int) -> Any:
        try:
            return checked(self.fn(example, *shared), i)
        except Exception as error:
            if self.errors == "raise":
                note_example(error, i, count)
                raise
            return ExampleError(i, error)
