"""Gauss's elimination with partial pivoting, and Bunch and Kaufman's for symmetric matrices.

NumPy has neither. Stacks of small matrices are eliminated together, column by column; large ones
one by one by LAPACK, where NumPy's library can be had without threads. Pivots count from 1, as
LAPACK's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.dtype import Array
from . import _lapack

_GROWTH = (1 + math.sqrt(17)) / 8  # bounds the growth of elements best (Bunch and Kaufman 1977)


def lu(x: Array, pivot: bool) -> tuple[Array, Array]:
    """Return L below and U on and above the diagonal, and which row came to each place."""
    factored = _lapack.lu(x) if pivot else None
    if factored is not None:
        return factored
    a, k = np.array(x, order="C"), min(x.shape[-2:])
    pivots = np.empty((*a.shape[:-2], k), np.int32)
    count = math.prod(a.shape[:-2])  # not -1, which matrices without elements do not tell
    flat, rows = a.reshape(count, *a.shape[-2:]), pivots.reshape(count, k)
    every = np.arange(len(flat))
    for j in range(k):
        chosen = np.abs(flat[:, j:, j]).argmax(axis=1) + j if pivot else np.full(len(flat), j)
        rows[:, j] = chosen + 1
        flat[every, j], flat[every, chosen] = flat[every, chosen], flat[every, j].copy()
        _eliminate(flat, j)
    return a, pivots


def _eliminate(a: Array, j: int) -> None:
    top = a[:, j, j, None]
    below = a[:, j + 1 :, j]
    below /= np.where(top == 0, 1, top)
    a[:, j + 1 :, j + 1 :] -= below[:, :, None] * a[:, j, None, j + 1 :]


def permutation(pivots: Array, rows: int) -> Array:
    """Return the order of rows that pivots, exchanges one after the other, bring about."""
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    order = np.tile(np.arange(rows, dtype=np.int64), (len(flat), 1))
    every = np.arange(len(flat))
    for j in range(flat.shape[1]):
        other = flat[:, j] - 1
        order[every, j], order[every, other] = order[every, other], order[every, j].copy()
    return order.reshape(*pivots.shape[:-1], rows)


# -- symmetric matrices ---------------------------------------------------------------------------


def ldl(x: Array) -> tuple[Array, Array]:
    """Return L and D of symmetric matrices, in the lower triangle, and the pivots.

    A pivot below 0 is that of a block of two rows, of which both have it.
    """
    a, pivots = np.tril(x), np.zeros(x.shape[:-1], np.int32)
    for index in np.ndindex(x.shape[:-2]):
        _ldl(a[index], pivots[index])
    return a, pivots


def _ldl(a: Array, pivots: Array) -> None:
    k, n = 0, len(a)
    while k < n:
        row, size = _choice(a, k)
        if row != k + size - 1:
            _exchange(a, k, k + size - 1, row)
        if size == 1:
            _reduce_by_one(a, k)
            pivots[k] = row + 1
        else:
            _reduce_by_two(a, k)
            pivots[k : k + 2] = -(row + 1)
        k += size


def _choice(a: Array, k: int) -> tuple[int, int]:
    """Return the row to bring up, and whether a block of one or of two is eliminated."""
    own = abs(a[k, k])
    below = np.abs(a[k + 1 :, k])
    largest = below.max(initial=0.0)
    if own >= _GROWTH * largest:
        return k, 1
    row = k + 1 + int(below.argmax())
    beside = max(np.abs(a[row, k:row]).max(), np.abs(a[row + 1 :, row]).max(initial=0.0))
    if own * beside >= _GROWTH * largest**2:
        return k, 1
    return (row, 1) if abs(a[row, row]) >= _GROWTH * beside else (row, 2)


def _exchange(a: Array, k: int, first: int, second: int) -> None:
    """Exchange two rows and columns of a symmetric matrix by its lower triangle, from k on."""
    down = slice(second + 1, None)
    a[down, first], a[down, second] = a[down, second].copy(), a[down, first].copy()
    between = slice(first + 1, second)
    a[between, first], a[second, between] = a[second, between].copy(), a[between, first].copy()
    a[first, first], a[second, second] = a[second, second], a[first, first]
    if first > k:
        a[first, k], a[second, k] = a[second, k], a[first, k]


def _reduce_by_one(a: Array, k: int) -> None:
    if a[k, k] == 0:
        return
    column = a[k + 1 :, k] / a[k, k]
    a[k + 1 :, k + 1 :] -= np.tril(np.outer(column, a[k + 1 :, k]))
    a[k + 1 :, k] = column


def _reduce_by_two(a: Array, k: int) -> None:
    block = np.array([[a[k, k], a[k + 1, k]], [a[k + 1, k], a[k + 1, k + 1]]])
    columns = a[k + 2 :, k : k + 2]
    solved = np.linalg.solve(block, columns.T).T
    a[k + 2 :, k + 2 :] -= np.tril(solved @ columns.T)
    a[k + 2 :, k : k + 2] = solved


def ldl_solve(ld: Array, pivots: Array, b: Array) -> Array:
    """Return x with a @ x = b from what `ldl` gave for a; the columns of b are right-hand sides."""
    batch = np.broadcast_shapes(ld.shape[:-2], b.shape[:-2])
    ld = np.broadcast_to(ld, (*batch, *ld.shape[-2:]))
    pivots = np.broadcast_to(pivots, (*batch, pivots.shape[-1]))
    out = np.array(np.broadcast_to(b, (*batch, *b.shape[-2:])), order="C")
    for index in np.ndindex(batch):
        _ldl_solve(ld[index], pivots[index], out[index])
    return out


def _ldl_solve(a: Array, pivots: Array, x: Array) -> None:
    blocks = _blocks(pivots)
    for k, size in blocks:  # L y = P b, and D
        _swap(x, k + size - 1, abs(int(pivots[k])) - 1)
        x[k + size :] -= a[k + size :, k : k + size] @ x[k : k + size]
        block = np.tril(a[k : k + size, k : k + size])
        block = block + np.tril(block, -1).T
        x[k : k + size] = np.linalg.solve(block, x[k : k + size])
    for k, size in reversed(blocks):  # L^T
        x[k : k + size] -= a[k + size :, k : k + size].T @ x[k + size :]
        _swap(x, k + size - 1, abs(int(pivots[k])) - 1)


def _blocks(pivots: Array) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    k = 0
    while k < len(pivots):
        size = 1 if pivots[k] > 0 else 2
        found.append((k, size))
        k += size
    return found


def _swap(x: Array, i: Any, j: Any) -> None:
    if i != j:
        x[[i, j]] = x[[j, i]]
