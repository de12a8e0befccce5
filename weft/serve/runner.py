"""Runs batches of any size up to a limit, with few programs, and finds out what a model gives.

Where the compiler needs numbers for sizes (convolutions), a batch is filled up to the next of a few
sizes with copies of its last item, whose results are dropped: six programs for batches up to 32.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence

import numpy as np

from ..core.dtype import Array, is_float
from ..core.errors import ArgumentError, WeftError
from ..graph.node import Value, type_text
from .programs import ServedProgram, batch_size

_TRIED = (1, 2, 3)  # a number of its own, the first size, and the one that shows that it changes
WARM_SECONDS = 3.0  # at most so long every size is run once before the first request


class Runner:
    """A program that takes batches of 1 to `max_batch` items.

    sizes     the sizes that are run; None if all are
    outputs   (name, dtype, shape of an item) of each; none if it cannot be tried
    """

    def __init__(self, program: ServedProgram, max_batch: int) -> None:
        self._program = program
        self.inputs = list(program.inputs)
        self.outputs: list[tuple[str, str, list[int]]] = []
        only = batch_size(self.inputs)
        self.sizes: tuple[int, ...] | None = None if only is None else (only,)
        self.max_batch = max_batch if only is None else min(max_batch, only)
        self._shapes = program.item_shapes
        if self._shapes is not None:
            self._try()
        elif self.sizes is None:  # nothing tells what the compiler needs numbers for
            self.sizes = _few_sizes(max_batch)

    def __call__(self, columns: Sequence[Array]) -> list[Array]:
        """Return the outputs of items."""
        count = len(columns[0])
        size = self._size_for(count)
        filled = columns if size == count else [_filled(column, size) for column in columns]
        outputs = self._program(filled)
        for name, output in zip(self._program.outputs, outputs, strict=True):
            if output.shape[:1] != (size,):
                raise ArgumentError(
                    f"serve: {name} has shape {output.shape} for {size} items; each output must "
                    "have the items along its first axis"
                )
        return outputs if size == count else [output[:count] for output in outputs]

    def warm(self, seconds: float = WARM_SECONDS) -> None:
        """Run sizes that requests will come in, so that none of them waits for the compiler."""
        if self._shapes is None:
            return
        until = time.monotonic() + seconds
        if self.sizes is not None:
            sizes: Sequence[int] = self.sizes  # each is a program of its own: make all of them
        else:
            sizes = [self.max_batch, *range(2, self.max_batch)]
        for size in sizes:
            if self.sizes is None and time.monotonic() > until:
                break  # what is left is told to a program that exists, in milliseconds
            self(self._zeros(size))

    def _size_for(self, count: int) -> int:
        if self.sizes is None:
            return count
        return next((size for size in self.sizes if size >= count), count)

    # -- finding out -------------------------------------------------------------------------------

    def _try(self) -> None:
        """Run a few sizes: the types of outputs, whether items are independent, the programs."""
        sizes = self.sizes or [size for size in _TRIED if size <= self.max_batch]
        try:
            outputs = [self(self._zeros(size)) for size in sizes][-1]
        except WeftError as error:
            shown = ", ".join(f"{value.name} {type_text(value.type)}" for value in self.inputs)
            raise ArgumentError(
                f"serve: {self._program.name} cannot run on zeros for its inputs, {shown}: {error}"
            ) from error
        self.outputs = [
            (name, output.dtype.name, list(output.shape[1:]))
            for name, output in zip(self._program.outputs, outputs, strict=True)
        ]
        if self.max_batch > 1 and not self._independent():
            self._run_alone()
        fixed = self._program.fixed_because() is not None
        if self.sizes is None and fixed:
            self.sizes = _few_sizes(self.max_batch)

    def _run_alone(self) -> None:
        warnings.warn(
            f"serve: what {self._program.name} gives for an item depends on the other items of a "
            "batch, or on random numbers; each item is run by itself (max_batch=1)",
            stacklevel=2,
        )
        self.max_batch = 1

    def _independent(self) -> bool:
        """Tell whether two items give the same together and alone."""
        columns = [_drawn(value, (2, *shape)) for value, shape in self._items()]
        try:
            together = self(columns)
            alone = [self([column[i : i + 1] for column in columns]) for i in range(2)]
        except Exception:  # numbers that mean something, such as tokens, cannot be drawn
            return True
        return all(
            _close(both[i], one[0])
            for i in range(2)
            for both, one in zip(together, alone[i], strict=True)
        )

    def _zeros(self, size: int) -> list[Array]:
        return [np.zeros((size, *shape), value.dtype) for value, shape in self._items()]

    def _items(self) -> Iterable[tuple[Value, tuple[int, ...]]]:
        assert self._shapes is not None
        return zip(self.inputs, self._shapes, strict=True)


def _few_sizes(most: int) -> tuple[int, ...]:
    """Return powers of two below the most, and the most."""
    return (*(2**i for i in range(most.bit_length()) if 2**i < most), most)


def _filled(column: Array, size: int) -> Array:
    """Return a column with its last item repeated: numbers that the model can take."""
    last = np.broadcast_to(column[-1:], (size - len(column), *column.shape[1:]))
    return np.concatenate([column, last])


def _drawn(value: Value, shape: tuple[int, ...]) -> Array:
    generator = np.random.default_rng(0)
    if is_float(value.dtype):
        return generator.standard_normal(shape).astype(value.dtype)
    return generator.integers(0, 2, shape).astype(value.dtype)


def _close(a: Array, b: Array) -> bool:
    """Tell whether outputs are equal but for roundings, which differ with the size of a batch."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    scale = float(np.abs(x[np.isfinite(x)]).max(initial=0.0))
    return bool(np.allclose(x, y, rtol=1e-2, atol=1e-3 * scale, equal_nan=True))
