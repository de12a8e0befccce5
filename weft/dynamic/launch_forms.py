"""What batches of cells need to run in lists of launches: memory, sizes, and what they leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..backends.cpu.runtime.arena import ALIGNMENT
from ..backends.cpu.runtime.buffers import pooled_empty
from ..backends.cpu.runtime.launches import NativeCall, address_of, array_at, launches_work
from ..core.config import config
from ..core.dtype import Array, is_float
from ..core.shape import size_of
from .cell_kernels import CellCode, CellKernel, SavedCell
from .signatures import BatchSignature
from .written_launches import ForwardForm, written_forward

BLOCK = 1 << 22  # bytes of memory that is taken at once
BYTE = np.dtype(np.uint8)


def can_launch() -> bool:
    """Tell whether batches may run in lists: nobody looks at what each of them does."""
    return launches_work() and not config.nan_trap and not config.debug_interpret


class LaunchRoom:
    """Memory that is taken piece by piece, and given back as a whole."""

    def __init__(self) -> None:
        self.held: list[Array] = []
        self._next = self._end = 0

    def take(self, nbytes: int) -> int:
        """Return the address of so many bytes."""
        found = self._next
        if found + nbytes > self._end:
            block = pooled_empty((max(nbytes + ALIGNMENT, BLOCK),), BYTE)
            self.held.append(block)
            found = _aligned(address_of(block))
            self._end = address_of(block) + len(block)
        self._next = found + _aligned(nbytes)
        return found


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def _row_bytes(values: Sequence[Any], width: Any) -> list[int] | None:
    """Return the bytes of a row of values of a graph, 0 for such as have none; None if unknown."""
    found: list[int] = []
    for value in values:
        shape = value.shape
        has_rows = bool(shape) and shape[0] is width
        inner = shape[1:] if has_rows else shape
        if not all(isinstance(n, int) for n in inner):
            return None
        found.append(size_of(inner) * value.dtype.itemsize if has_rows else 0)
    return found


class CellForm:
    """What is known of a cell's code, at a width, before it runs in lists.

    call, adjoint   the programs; None if they cannot run in lists
    results         the bytes of a row of each result
    kept            where what else the first program makes lies in a block of `kept_bytes`
    write           the function that writes batches down (written_launches.py)
    """

    def __init__(
        self, code: CellCode, signature: BatchSignature, kernel: CellKernel, width: int
    ) -> None:
        self.width = width
        self.call: NativeCall | None = None
        count = len(signature.outs)
        rows = _row_bytes(code.left, code.width)
        if rows is None or code.results != [*range(count)] or not all(rows[:count]):
            return
        self.results = rows[:count]
        self.kept: list[int] = []
        self.kept_bytes = 0
        for value, nbytes in zip(code.left[count:], rows[count:], strict=True):
            self.kept.append(self.kept_bytes)
            whole = nbytes * width if nbytes else size_of(value.shape) * value.dtype.itemsize
            self.kept_bytes += _aligned(whole)
        self.call = code.forward.native(width)
        if self.call is not None:
            self.write = _writer(code, _forward_form(code, kernel, self.results, self.call))

    def adjoint_of(self, code: CellCode) -> NativeCall | None:
        """Return the program of the adjoint."""
        found: NativeCall | None = code.adjoint.native(self.width)
        return found


def _forward_form(
    code: CellCode, kernel: CellKernel, results: Sequence[int], call: NativeCall
) -> ForwardForm:
    operands = [
        (nbytes, is_float(t.dtype)) if flag else None
        for flag, nbytes, t in zip(kernel.flags, kernel.row_bytes, kernel.types, strict=True)
    ]
    return ForwardForm(
        tuple(operands),
        tuple(results),
        len(code.left) - len(results),
        tuple(code.kept),
        tuple(call.feeds),
        tuple(call.made),
    )


def _writer(code: CellCode, form: ForwardForm) -> Any:
    """Return the function for a form: as a rule all widths of a code have one."""
    found = code.writers.get(form)
    if found is None:
        found = code.writers[form] = written_forward(form)
    return found


class TotalForm:
    """What is known of the adjoint of a cell, and of the gradients of what members share.

    made     the bytes of a row of what the adjoint makes
    taken    of what the program of totals takes: where among operands, kept arrays, gradients of
             results and what the adjoint makes, and the bytes of a row; 0 for what has no rows
    direct   which of these the adjoint makes: by their numbers there
    apart    the operands with gradients from the last one on: which one it is of those that differ
             between members, its type, and which of what the adjoint makes is its gradient
    """

    def __init__(self, code: CellCode, specs: Sequence[Any]) -> None:
        given, made = (_row_bytes(values, code.width) for values in (code.given, code.made))
        self.works = given is not None and made is not None and all(made)
        if given is None or made is None:
            return
        self.made = made
        sizes, first = [*given, *made], len(given)
        taken = code.taken if code.shared else []
        self.works &= all(sizes[i] > 0 for i, has_rows in taken if has_rows)
        self.taken = [(i, sizes[i] if has_rows else 0) for i, has_rows in taken]
        self.direct = {i - first: k for k, (i, _) in enumerate(self.taken) if i >= first}
        differ = [i for i, spec in enumerate(specs) if spec.__class__ is int]
        pairs = zip(code.apart, code.found, strict=True)
        self.apart = sorted([(differ.index(i), specs[i], k) for i, k in pairs], reverse=True)


class LaunchedCell(NamedTuple):
    """What a batch of a list left for its gradient: addresses of as many rows as its width.

    held   whatever must live as long as the addresses are used
    """

    code: CellCode
    form: CellForm
    operands: list[int]
    kept: list[int]
    size: int
    held: Any

    def as_arrays(self) -> LaunchedArrays:
        """Return the same as a batch leaves it that did not run in a list."""
        arrays = [self.array(i) for i in range(len(self.operands) + len(self.kept))]
        count = len(self.operands)
        return LaunchedArrays(self.code, arrays[:count], arrays[count:], self.size, self.held)

    def array(self, i: int) -> Array:
        """Return one of the operands, or of what was kept, by its number among both."""
        value, width = self.code.given[i], self.code.width
        shape = tuple([self.form.width if n is width else n for n in value.shape])
        return array_at([*self.operands, *self.kept][i], shape, value.dtype)


class LaunchedArrays(SavedCell):
    """What a batch of a list left, as arrays in memory that it holds."""

    def __init__(self, code: CellCode, operands: Any, kept: Any, size: int, held: Any) -> None:
        super().__init__(code, operands, kept, size)
        self.held = held


def arguments_of(call: NativeCall, feeds: Sequence[int], made: Sequence[int]) -> list[int]:
    """Return the addresses that a program takes: of feeds, and of what it makes."""
    return [*[feeds[i] for i in call.feeds], *[made[i] for i in call.made]]


def alone(saved: Any) -> Any:
    """Return what a batch left as one that runs by itself takes it."""
    return saved.as_arrays() if isinstance(saved, LaunchedCell) else saved
