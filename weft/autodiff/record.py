"""Reverse mode at a level of its own: record operations on any values, then pull back.

The tape lies below all interpreters and serves plain eager code. Inside other transforms reverse
mode must come first: of `vmap(grad(f))` it is the gradient that is batched. So a recording is an
interpreter itself. It runs operations by means of the one below and keeps of each what its vjp
rules ask for; the rules then run below too, on dual numbers, batches or symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

from ..core.dispatch import run
from ..core.dtype import is_float
from ..core.modes import enable_grad, interpret_with, is_grad_enabled, no_grad, run_below
from ..core.op import F
from ..core.tensor import Tensor
from .layered import Layered, TransformLevel, make_layer
from .rules import Operation, Pullback, has_rule
from .where_mask import WhereMasks

Numbers = tuple[int | None, ...]


class Recorded(Layered):
    """A value whose origin a recording knows, by its number there."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"recorded({self.primal!r})"


class RecordedOp(NamedTuple):
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
        self.level = TransformLevel("grad or vjp")
        self.entries: list[RecordedOp] = []
        self.count = 0
        self._outside = is_grad_enabled()
        self._run: Callable[..., Any] = run if below is None else below.apply

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
        level, recording = self.level, is_grad_enabled()
        values: list[Any] = []
        wanted: list[int | None] = []
        watched = False
        for i, x in enumerate(inputs):
            number = None
            if x.__class__ is Recorded and x.level is level:
                number = x.extra if recording and has_rule(op, i) else None
                watched = watched or number is not None
                x = x.primal  # noqa: PLW2901  (the value of the level below)
            values.append(x)
            wanted.append(number)
        with nullcontext() if self._outside or not recording else no_grad():
            if not watched:
                return run_below(self.below, self._run, op, tuple(values), attrs)
            return run_below(self.below, self._apply, op, tuple(values), attrs, tuple(wanted))

    def _apply(
        self, op: Any, values: tuple[Any, ...], attrs: tuple[Any, ...], wanted: Numbers
    ) -> Any:
        if hasattr(op, "record"):
            out, pull_back = op.record(values, attrs)
        else:
            out = self._run(op, values, attrs)
            pull_back = Operation(op, values, attrs, out).pullback(wanted)
        return self._results(op, pull_back, wanted, out)

    def _results(self, op: Any, pull_back: Pullback, wanted: Numbers, out: Any) -> Any:
        if not isinstance(out, tuple):
            if not is_float(out.dtype):
                return out
            self.entries.append(RecordedOp(op, pull_back, wanted, (self.count,), None))
            return self.watch(out)
        several = tuple(self.watch(y) if is_float(y.dtype) else y for y in out)
        self.entries.append(
            RecordedOp(op, pull_back, wanted, tuple(map(self.number, several)), out)
        )
        return several

    # -- the way back ------------------------------------------------------------------------------

    def pull_back(self, seeds: dict[int, Any]) -> dict[int, Any]:
        """Return the gradients of values by number, given those to start with."""
        gradients = dict(seeds)
        where_masks = WhereMasks(F, F.sum_to)
        for entry in reversed(self.entries):
            g = _gradients_of(entry, gradients)
            if g is None:
                continue
            grads, masks = where_masks.pull_back_by(entry.outputs[0], entry.op, entry.pull_back, g)
            for n, part, mask in zip(entry.inputs, grads, masks, strict=True):
                if n is not None and part is not None:
                    where_masks.arrive(n, mask, gradients)
                    gradients[n] = gradients[n] + part if n in gradients else part
        return gradients


def _gradients_of(entry: RecordedOp, gradients: dict[int, Any]) -> Any:
    """Take the gradients of an entry's outputs, in the form that rules take; None if all are zero.

    Of several outputs, those that nothing depends on get zeros.
    """
    if entry.values is None:
        return gradients.pop(entry.outputs[0], None)  # type: ignore[arg-type]  # None is no key
    parts = [gradients.pop(n, None) for n in entry.outputs]  # type: ignore[arg-type]  # as above
    if all(g is None for g in parts):
        return None
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
