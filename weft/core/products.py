"""Matrix products of arrays: the same bits at any number of threads, and at any setting of BLAS.

NumPy leaves products to BLAS, which divides large ones among threads of its own, and the division
shows in the last bits. Weft does not touch BLAS's settings, which are the whole process's: they
belong to the user's own calls of NumPy. Instead, sizes decide who computes:

    small    BLAS itself: below SMALL multiplications no OpenBLAS uses a second thread
    thin     BLAS in blocks of that size: of a few rows or columns, where tiles of Weft's own code
             would waste more than blocks cost
    others   Weft's own code for products of any sizes on Weft's threads;
             in blocks too where machine code is not wanted (`config.eager_kernels`)

Integers and truth values never reach BLAS.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .config import config
from .dtype import Array
from .imports import injected

# Multiplications up to which OpenBLAS stays on the calling thread: interface/gemm.c has had
# 4 * 65536 for many versions, interface/gemv.c 4 * 2304 (later more) and the dot product 10000.
SMALL = 1 << 18
SMALL_VECTORS = 1 << 13

THIN = 16  # rows or columns, of which a tile of Weft's own code wastes some
LEAST = 9  # rows that still pay, and columns, where the other factor is small
SMALL_FACTOR = 1 << 17
BLOCK = (16, 64, 256)  # rows, columns and depth of blocks that are not thin
THIN_DEPTH = 1024

_multiply_by_own_code = injected("multiply_matrices")


def product(x: Array, y: Array) -> Array:
    """Return the product of two matrices: np.dot, with the same bits at any number of threads."""
    work = len(x) * y.size
    if work <= SMALL and (work <= SMALL_VECTORS or x.size | y.size < SMALL_VECTORS):
        small: Array = x.dot(y)  # half the call time of np.matmul on small matrices
        return small
    return products(x, y)


def products(x: Array, y: Array, out: Array | None = None) -> Array:
    """Return np.matmul(x, y, out), with the same bits at any number of threads.

    `out` is only for operands that are matrices, or stacks of them.
    """
    rows = x.shape[-2] if x.ndim > 1 else 1
    columns = y.shape[-1] if y.ndim > 1 else 1
    most = SMALL if rows > 1 and columns > 1 else SMALL_VECTORS
    if rows * columns * x.shape[-1] <= most or not _meets_blas(x, y):
        found: Array = np.matmul(x, y, out)
        return found
    return _divided(x, y, out)


# Text that stands alone has NumPy only (autodiff/text/kernels.py), where these mean the same.
product.in_numpy = np.dot  # type: ignore[attr-defined]
products.in_numpy = np.matmul  # type: ignore[attr-defined]


def _meets_blas(x: Array, y: Array) -> bool:
    """Tell whether BLAS would multiply; operands that do not fit are NumPy's to refuse."""
    fits = x.shape[-1] == y.shape[-2 if y.ndim > 1 else 0]
    return fits and x.dtype == y.dtype and x.dtype.char in "fd"


def _divided(x: Array, y: Array, out: Array | None) -> Array:
    """Return a large product: by Weft's own code, or by BLAS in blocks."""
    left, right = x if x.ndim > 1 else x[None], y if y.ndim > 1 else y[:, None]
    m, n = left.shape[-2], right.shape[-1]
    one = left.ndim == right.ndim == 2
    batch = () if one else np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    result = np.empty((*batch, m, n), x.dtype) if out is None else out
    own = config.eager_kernels and _suits_own_code(left, right)
    multiply = _multiply_by_own_code.get() if own else _multiply_in_blocks
    for stacks in _stacks(left, right, result):
        multiply(*stacks)
    return result.reshape((*batch, *(m,) * (x.ndim > 1), *(n,) * (y.ndim > 1)))


def _suits_own_code(x: Array, y: Array) -> bool:
    """Tell whether Weft's own code takes less time than blocks; by sizes alone."""
    m: int = x.shape[-2]
    k: int = x.shape[-1]
    n: int = y.shape[-1]
    if n >= THIN:
        return m >= LEAST
    return m >= THIN and n >= LEAST and m * k <= SMALL_FACTOR


def _stacks(x: Array, y: Array, out: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Yield operands with one batch axis each: the last one; others are counted through."""
    if out.ndim == 2:
        yield x[None], y[None], out[None]
        return
    left = np.broadcast_to(x, (*out.shape[:-2], *x.shape[-2:]))
    right = np.broadcast_to(y, (*out.shape[:-2], *y.shape[-2:]))
    for index in np.ndindex(out.shape[:-3]):
        yield left[index], right[index], out[index]


# -- blocks ------------------------------------------------------------------------------------


def _multiply_in_blocks(x: Array, y: Array, out: Array) -> None:
    for a, b, c in zip(x, y, out, strict=True):
        if a.shape[0] == 1 and b.shape[1] == 1:
            c[0, 0] = _dot(a[0], b[:, 0])
        elif a.shape[0] == 1:  # y.T @ x.T
            _multiply_blocks(b.T, a.T, c.T)
        else:
            _multiply_blocks(a, b, c)


def _dot(x: Array, y: Array) -> Any:
    """Return the inner product of two vectors: those of pieces, added in pairs."""
    size = SMALL_VECTORS
    whole = x.size // size * size
    pieces = _windows(x[:whole], size), _windows(y[:whole], size)
    parts = np.matmul(pieces[0][:, None, :], pieces[1][:, :, None]).ravel()
    return np.append(parts, x[whole:].dot(y[whole:])).sum()


def _windows(x: Array, size: int) -> Array:
    (step,) = x.strides
    return as_strided(x, (x.size // size, size), (size * step, step), writeable=False)


def _multiply_blocks(x: Array, y: Array, out: Array) -> None:
    rows, columns, depth = _block(x, y)
    k = x.shape[1]
    for begin in range(0, k, depth):
        part = x[:, begin : begin + depth], y[begin : begin + depth]
        into = out if begin == 0 else np.empty_like(out)
        for down in _whole_and_rest(x.shape[0], rows):
            for across in _whole_and_rest(y.shape[1], columns):
                _multiply_grid(part[0][down], part[1][:, across], into[down, across], rows, columns)
        if begin:
            out += into


def _block(x: Array, y: Array) -> tuple[int, int, int]:
    """Return rows, columns and depth of blocks that are small."""
    (m, k), n = x.shape, y.shape[1]
    if n == 1:
        along = x.strides[1] <= x.strides[0]  # rows lie in sequence, rather than columns
        depth = min(k, SMALL_VECTORS if along else 64)
        return min(m, SMALL_VECTORS // depth), 1, depth
    if min(m, n) >= THIN:
        return BLOCK
    depth = min(k, THIN_DEPTH)
    if m < n:
        return m, min(n, max(2, SMALL // (depth * m))), depth
    return min(m, max(2, SMALL // (depth * n))), n, depth


def _whole_and_rest(size: int, block: int) -> Iterator[slice]:
    """Yield the part of an axis that blocks fill, and what is left of it, unless empty."""
    whole = size // block * block
    if whole:
        yield slice(0, whole)
    if whole < size:
        yield slice(whole, size)


def _multiply_grid(x: Array, y: Array, out: Array, rows: int, columns: int) -> None:
    """Multiply blocks of rows with blocks of columns, each pair a product of its own for BLAS."""
    rows, columns = min(rows, x.shape[0]), min(columns, y.shape[1])
    down, across = x.shape[0] // rows, y.shape[1] // columns
    (xd, xa), (yd, ya), (od, oa) = x.strides, y.strides, out.strides
    left = as_strided(x, (down, 1, rows, x.shape[1]), (rows * xd, 0, xd, xa), writeable=False)
    right = as_strided(y, (across, y.shape[0], columns), (columns * ya, yd, ya), writeable=False)
    grid = as_strided(out, (down, across, rows, columns), (rows * od, columns * oa, od, oa))
    np.matmul(left, right, out=grid)
