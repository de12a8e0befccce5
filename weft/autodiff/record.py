"""Reverse mode at a level of its own: record operations on any values, then pull back.

The tape lies below all interpreters and serves plain eager code. Inside other transforms reverse
mode must come first: of `vmap(grad(f))` it is the gradient that is batched. So a recording is an
interpreter itself. It runs operations by means of the one below and keeps of each what its vjp
rules ask for; the rules then run below too, on dual numbers, batches or symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.dispatch import run
from ..core.dtype import is_float
from ..core.modes import GradMode, enable_grad, interpret_with, is_grad_enabled
from ..core.op import F
from ..core.tensor import Tensor
from .layered import Layered, Level, make_layer
from .rules import Operation, Pullback, has_rule


class Recorded(Layered):
    """A value whose origin a recording knows, by its number there."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"recorded({self.primal!r})"


class Entry(NamedTuple):
    """An operation that was recorded.

    pull_back   from the gradients of its outputs to those of its inputs
    inputs      the number of each input, None where no gradient is wanted
    outputs     the number of each output, None where there is no derivative
    values      the outputs, where some may be left without a gradient; else nothing
    """

    op: Any
    pull_back: Pullback
    inputs: tuple[int | None, ...]
    outputs: tuple[int | None, ...]
    values: tuple[Any, ...] | None


class Recording:
    """Runs operations by the interpreter below and remembers how to differentiate them."""

    def __init__(self, below: Any) -> None:
        self.below = below
        self.level = Level("grad or vjp")
        self.entries: list[Entry] = []
        self.count = 0
        self._outside = is_grad_enabled()

    # -- values ------------------------------------------------------------------------------------

    def watch(self, x: Tensor) -> Tensor:
        """Return a value that the recording can be differentiated with respect to."""
        self.count += 1
        return make_layer(Recorded, x, self.count - 1, self.level)

    def number(self, x: Any) -> int | None:
        """Return the number of a value; None for a constant."""
        if isinstance(x, Recorded) and x.level is self.level:
            number: int | None = x.extra
            return number
        return None

    def inside(self, x: Any) -> Any:
        """Return the value of the level below."""
        return x.primal if isinstance(x, Recorded) and x.level is self.level else x

    def run(self, fn: Callable[..., Any], *args: Any) -> Any:
        """Call a function on watched values; what it does is recorded."""
        try:
            with interpret_with(self), enable_grad():
                return fn(*args)
        finally:
            self.level.running = False

    # -- operations --------------------------------------------------------------------------------

    def apply(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Run one operation, and record it if a result depends on what is watched."""
        numbers = tuple(self.number(x) for x in inputs)
        values = tuple(self.inside(x) for x in inputs)
        wanted = numbers if is_grad_enabled() else (None,) * len(numbers)
        wanted = tuple(n if has_rule(op, i) else None for i, n in enumerate(wanted))
        with interpret_with(self.below), GradMode(self._outside and is_grad_enabled()):
            if all(n is None for n in wanted):
                return run(op, values, attrs)
            if hasattr(op, "record"):
                out, pull_back = op.record(values, attrs)
            else:
                out = run(op, values, attrs)
                pull_back = Operation(op, values, attrs, out).pullback(wanted)
        return self._results(op, pull_back, wanted, out)

    def _results(
        self, op: Any, pull_back: Pullback, wanted: tuple[int | None, ...], out: Any
    ) -> Any:
        many = isinstance(out, tuple)
        outputs = out if many else (out,)
        watched = tuple(self.watch(y) if is_float(y.dtype) else y for y in outputs)
        numbers = tuple(map(self.number, watched))
        self.entries.append(Entry(op, pull_back, wanted, numbers, outputs if many else None))
        return watched if many else watched[0]

    # -- the way back ------------------------------------------------------------------------------

    def pull_back(self, seeds: dict[int, Any]) -> dict[int, Any]:
        """Return the gradients of values by number, given those to start with."""
        gradients = dict(seeds)
        for entry in reversed(self.entries):
            if any(n in gradients for n in entry.outputs):
                g = _complete(entry, [gradients.pop(n, None) for n in entry.outputs])
                for n, part in zip(entry.inputs, entry.pull_back(g), strict=True):
                    if n is not None and part is not None:
                        gradients[n] = gradients[n] + part if n in gradients else part
        return gradients


def _complete(entry: Entry, parts: list[Any]) -> Any:
    """Return the gradients of all outputs in the form that rules take."""
    if entry.values is None:
        return parts[0]
    return [F.zeros_like(y) if g is None else g for g, y in zip(parts, entry.values, strict=True)]


def recorded_pull_back(
    recording: Recording, outputs: Sequence[Any], count: int
) -> Callable[[Sequence[Any]], list[Any]]:
    """Return the function from the outputs' gradients to those of the first watched values."""
    numbers = [recording.number(y) for y in outputs]

    def pull_back(gs: Sequence[Any]) -> list[Any]:
        seeds: dict[int, Any] = {}
        for n, g in zip(numbers, gs, strict=True):
            if n is not None and g is not None:
                seeds[n] = seeds[n] + g if n in seeds else g
        found = recording.pull_back(seeds)
        return [found.get(n) for n in range(count)]

    return pull_back
