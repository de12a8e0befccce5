"""Count floating-point operations, operator by operator, while a program runs.

A multiplication and an addition count one each, so a multiply-add counts two. Every other
elementwise function counts one for each element, a reduction one for each element it reads. Moving
data, choosing elements and drawing random numbers count nothing.
"""

from __future__ import annotations

from typing import Any

from ..core.dispatch import run
from ..core.facts import operations
from ..core.modes import current_interpreter, interpret_with


class CountFlops:
    """Run operations as before and count their floating-point operations in `total`.

    >>> import weft as wf
    >>> with CountFlops() as counter:
    ...     product = wf.ones((2, 3)) @ wf.ones((3, 4))
    >>> counter.total
    48
    """

    def __init__(self) -> None:
        self.total = 0
        self._below: Any = None
        self._contexts: list[interpret_with] = []

    def __enter__(self) -> CountFlops:
        """Start counting."""
        self._below = current_interpreter()
        self._contexts.append(interpret_with(self))
        self._contexts[-1].__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop counting, also after an error."""
        self._contexts.pop().__exit__(*exc)

    def apply(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Run one operation and count it."""
        with interpret_with(self._below):
            result = run(op, inputs, attrs)
        self.total += flops_of(op, inputs, attrs, result)
        return result


def flops_of(op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...], result: Any) -> int:
    """Return the floating-point operations of one operation."""
    first = result[0] if isinstance(result, tuple) else result
    return operations(op, list(map(_shape, inputs)), attrs, first.shape)


def _shape(x: Any) -> Any:
    return None if x is None else x.shape
