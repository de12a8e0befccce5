"""What batches of cells need to run in lists of launches: memory, sizes, and what they leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from .written_launches import (
    BackwardForm,
    ForwardForm,
    GivenGradient,
    written_backward,
    written_forward,
)

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
    write           the function that writes batches down (written_launches.py), and `write_back`
                    the one that writes their adjoints down
    """

    def __init__(
        self, code: CellCode, signature: BatchSignature, kernel: CellKernel, width: int
    ) -> None:
        self.width = width
        self.call: NativeCall | None = None
        self.adjoint: NativeCall | None = None
        self.write_back: Any = None
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
            form = _forward_form(code, kernel, self.results, self.call)
            self.write = _writer(code, form, written_forward)

    def adjoint_of(self, code: CellCode) -> NativeCall | None:
        """Return the program of the adjoint."""
        if self.adjoint is None:
            self.adjoint = code.adjoint.native(self.width)
        return self.adjoint

    def writes_back(self, code: CellCode, form: TotalForm) -> Any:
        """Return the function that writes adjoints down."""
        if self.write_back is None:
            call = self.adjoint_of(code)
            assert call is not None, "it was asked for"
            self.write_back = _writer(code, form.backward(code, call), written_backward)
        return self.write_back


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


def _writer(code: CellCode, form: Any, write: Callable[[Any], Any]) -> Any:
    """Return the function for a form: as a rule all widths of a code have one each way."""
    found = code.writers.get(form)
    if found is None:
        found = code.writers[form] = write(form)
    return found


class TotalForm:
    """What is known of the adjoint of a cell, and of the gradients of what members share.

    made     the bytes of a row of what the adjoint makes
    taken    of what the program of totals takes: where among operands, kept arrays, gradients of
             results and what the adjoint makes, and the bytes of a row; 0 for what has no rows
    direct   which of these the adjoint makes: by their numbers there
    apart    the operands with gradients from the last one on: which one it is of those that differ
             between members, its type, and which of what the adjoint makes is its gradient
    seeds    of each result that has gradients which one it is, and its type
    """

    def __init__(self, code: CellCode, signature: BatchSignature) -> None:
        specs = signature.specs
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
        floats = [is_float(code.left[i].dtype) for i in code.results]
        self.seeds = [(i, kind) for i, kind in enumerate(signature.outs) if floats[i]]

    def backward(self, code: CellCode, call: NativeCall) -> BackwardForm:
        """Return what functions that write adjoints down are written for."""
        operands = len(code.flags)
        count = len(code.given) - len(code.seeds)
        apart = [x for x, flag in zip(code.operands, code.flags, strict=True) if flag]
        taken = enumerate(self.taken)
        return BackwardForm(
            (operands, count - operands),
            tuple([_row(seed)[0] for seed in code.seeds]),
            len(code.made),
            tuple([(j, k, self.taken[k][1]) for j, k in self.direct.items()]),
            tuple([(i, k, n) for k, (i, n) in taken if n and i < len(code.given)]),
            tuple([_given_gradient(at, k, apart[at]) for at, _, k in self.apart]),
            tuple(call.feeds),
            tuple(call.made),
        )


def _given_gradient(at: int, k: int, operand: Any) -> GivenGradient:
    return GivenGradient(at, k, operand.dtype.char, *_row(operand))


def _row(value: Any) -> tuple[int, int]:
    """Return the bytes and the elements of a row."""
    elements = size_of(value.shape[1:])
    return elements * value.dtype.itemsize, elements


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


def alone(saved: Any) -> Any:
    """Return what a batch left as one that runs by itself takes it."""
    return saved.as_arrays() if isinstance(saved, LaunchedCell) else saved
