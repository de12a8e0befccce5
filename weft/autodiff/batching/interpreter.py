"""The interpreter of vmap: each operation runs once, on all examples.

Interpreters nest. Each knows the batches of its own level; those of other levels are the same for
all its examples and are handled by the interpreter below, so nested batches never mix.
"""

from __future__ import annotations

from typing import Any

from ...core.batching import BatchedCall, rule_of
from ...core.dispatch import run
from ...core.errors import ArgumentError
from ...core.imports import deferred_imports
from ...core.modes import interpret_with, modes, run_below
from ...core.op import elementwise, random
from .batched import Batched, BatchLevel, make_batched
from .draws import DRAWS, RANDOMNESS
from .fallback import one_by_one


class BatchInterpreter:
    """Runs operations on batches of one level by means of the interpreter below."""

    def __init__(self, size: Any, below: Any, randomness: str) -> None:
        self.below = below
        self.level = BatchLevel(size, below)
        self.randomness = randomness

    @property
    def draws(self) -> Any:
        """Return how many numbers stand for one that the program draws."""
        return self.level.size if self.randomness == "different" else 1

    def apply(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Run one operation on all examples."""
        level = self.level
        if op.kind == elementwise and op.batch_rule is None:
            return self._elementwise(op, inputs, attrs)
        flags = tuple([isinstance(x, Batched) and x.level is level for x in inputs])
        if op.kind == random:
            return self._draw(op, inputs, flags, attrs)
        if True not in flags:
            return run_below(self.below, run, op, inputs, attrs)
        if op.kind == "function":  # one of the user's, with a derivative of its own
            with deferred_imports:
                from .functions import run_function  # noqa: PLC0415  (it knows interpreters)
            return run_function(self, attrs[0], inputs, flags)
        return self._run(op, inputs, flags, attrs)

    def _elementwise(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Run an elementwise operation: most operations are, and this is `aligned` made short."""
        level, operands = self.level, []
        rank, shared, even = 0, 0, True  # dimensions of batches, and of what examples share
        for x in inputs:
            if isinstance(x, Batched) and x.level is level:
                value = x.value
                ndim = value.ndim
                if ndim != rank:
                    even, rank = rank == 0, ndim
                operands.append(value)
            else:
                if x is not None and x.ndim > shared:
                    shared = x.ndim
                operands.append(x)
        if rank and (not even or shared >= rank):
            flags = tuple([isinstance(x, Batched) and x.level is level for x in inputs])
            return self._run(op, inputs, flags, attrs)
        below = self.below or modes.base  # which is there since a tensor came to be on a device
        if below is None:
            out = op.specialized.execute(tuple(operands), attrs)
        else:
            out = run_below(below, below.apply, op, tuple(operands), attrs)
        return make_batched(out, level) if rank else out

    def _run(
        self, op: Any, inputs: tuple[Any, ...], flags: tuple[bool, ...], attrs: tuple[Any, ...]
    ) -> Any:
        operands = tuple([x.value if flag else x for x, flag in zip(inputs, flags, strict=True)])
        call = BatchedCall(op, operands, flags, attrs, self.level.size)
        rule = rule_of(op)
        if rule is None:
            return self.wrapped(run_below(self.below, one_by_one, call))
        return self.wrapped(run_below(self.below, call.apply, rule))

    def _draw(
        self, op: Any, inputs: tuple[Any, ...], flags: tuple[bool, ...], attrs: tuple[Any, ...]
    ) -> Any:
        """Draw for all examples, as `randomness` says."""
        if self.randomness == "error":
            raise ArgumentError(
                f"{op.name}: random numbers are drawn inside vmap; choose randomness="
                f"{' or '.join(map(repr, RANDOMNESS[1:]))} in the call of vmap"
            )
        operands = tuple(x.value if flag else x for x, flag in zip(inputs, flags, strict=True))
        call = BatchedCall(op, operands, flags, attrs, self.level.size)
        with interpret_with(self.below):
            if self.randomness == "same" and not any(flags):
                return run(op, inputs, attrs)
            return self.wrapped(DRAWS[self.randomness](call))

    def wrapped(self, found: Any) -> Any:
        """Return batches as examples of this level."""
        if isinstance(found, (tuple, list)):
            return tuple(make_batched(y, self.level) for y in found)
        return make_batched(found, self.level)
