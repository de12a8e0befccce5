"""Matrix products of any sizes by machine code that is made once (codegen/gemm/any_size.py).

    multiply(x, y, out)     # float32 or float64: (b, m, k), (b, k, n) -> (b, m, n)

Results do not depend on the number of threads.
"""

from __future__ import annotations

import math
import threading
from functools import cache
from typing import Any

import numpy as np

from ....core.dtype import Array
from ....core.threads import get_num_threads
from ..codegen.gemm.any_size import RECORD, product_text
from ..codegen.gemm.any_size_shape import UNROLL, Shape, shape_for
from ..codegen.target import host
from .arena import aligned_empty
from .calls import Entry, make_entry
from .linking import link
from .objects import object_code
from .threads import pool_symbols

Strides = tuple[int, ...]

PART_WORK = 1 << 19  # multiplications that are worth a part of their own
MOST_RECORDS = 1024
MOST_TURNED_ROWS = 48
MOST_IDLE_LANES = 4
PARTS_OF_THREAD = 2  # so that a thread that is held up does not hold up the others


def multiply(x: Array, y: Array, out: Array) -> None:
    """Put the products of two stacks of matrices, of one dtype, into `out`."""
    code = _code(out.dtype.char)
    x, y = x if _is_plain(x) else np.array(x), y if _is_plain(y) else np.array(y)
    threads = get_num_threads()
    key = (x.shape, y.shape[-1], x.strides, y.strides, out.strides, threads)
    known = code.records.get(key)
    if known is None:
        x, y = (_even(a, code.shape.itemsize) for a in (x, y))
        known = code.record(x.shape, y.shape[-1], x.strides, y.strides, out.strides, threads)
    record, turned = known
    scratch = _scratch(threads * code.shape.area_bytes)
    if turned:
        code.entry(y, x, out, record, scratch)
    else:
        code.entry(x, y, out, record, scratch)


def _is_plain(x: Array) -> bool:
    return type(x) is np.ndarray and x.flags.aligned


def _even(x: Array, itemsize: int) -> Array:
    """Return an array, or a copy where its elements do not lie at multiples of their size."""
    return np.array(x, order="C") if any(s % itemsize for s in x.strides) else x


class _Code:
    """The code for a dtype, and the records of products it was called for."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        target = host()
        self.shape = shape_for(target, dtype)
        text = product_text(target, self.shape)
        library = link([object_code(text, target)], ["product"], pool_symbols())
        self.entry: Entry = make_entry(library.address("product"), 5, keep=library)
        self.records: dict[Any, tuple[Array, bool]] = {}

    def record(self, *key: Any) -> tuple[Array, bool]:
        """Return the record of a product, and whether it is turned; remember it."""
        if len(self.records) >= MOST_RECORDS:
            self.records.clear()
        made = self.records[key] = _record(self.shape, *key)
        return made


@cache
def _code(char: str) -> _Code:
    return _Code(np.dtype(char))


def _record(
    shape: Shape,
    size: tuple[int, int, int],
    n: int,
    x: Strides,
    y: Strides,
    out: Strides,
    threads: int,
) -> tuple[Array, bool]:
    """Return the sizes and strides of a product, and how it is divided; whether it is turned."""
    batch, m, k = size
    turned = _is_better_turned(m, n, y, shape)
    if turned:  # x @ y = (y.T @ x.T).T
        m, n, (x, y) = n, m, (_transposed(y), _transposed(x))
        out = _transposed(out)
    down, across = _division(m, n, _parts_wanted(batch, m * n * k, threads), shape)
    depth = _block_depth(k, shape.block_depth)
    words = {
        "m": m,
        "n": n,
        "k": k,
        "depth": depth,
        "span": depth
        * (shape.area_bytes // (depth * shape.columns * shape.itemsize) if turned else 1),
        "row_part": down,
        "column_part": across,
        "column_parts": -(-n // across),
        "parts": -(-n // across) * -(-m // down),
        "chunks": batch * -(-n // across) * -(-m // down),
        "areas": threads,
        "turned": int(turned),
    }
    for name, strides in (("x", x), ("y", y), ("out", out)):
        for axis, stride in zip(("matrix", "row", "column"), strides, strict=True):
            words[f"{name}_{axis}"] = stride // shape.itemsize
    if turned:
        words["out_row"] = words["out_column"]
    return np.array([words[name] for name in RECORD], np.int64), turned


def _is_better_turned(m: int, n: int, y: Strides, shape: Shape) -> bool:
    """Tell whether to pack the fewer rows of x as columns, rather than y, costs less time.

    To pack y takes as long as to multiply it with some rows; what is saved must not be lost again
    to lanes without a row, nor to the turning of the result.
    """
    along = y[-2] == shape.itemsize != y[-1]
    return along and m <= min(n, MOST_TURNED_ROWS) and -m % shape.lanes <= MOST_IDLE_LANES


def _blocks_in_scratch(depth: int, shape: Shape) -> int:
    """Return how many blocks of a panel the scratch memory of a thread has room for."""
    return shape.area_bytes // (depth * shape.columns * shape.itemsize)


def _transposed(strides: Strides) -> Strides:
    return (*strides[:-2], strides[-1], strides[-2])


def _block_depth(k: int, most: int) -> int:
    """Return the depth of blocks of about equal size: by this, sizes alone decide about bits."""
    return -(-k // -(-k // most) // UNROLL) * UNROLL


def _parts_wanted(batch: int, work: int, threads: int) -> int:
    """Return into how many parts each of some matrices is worth dividing."""
    most = -(-threads * PARTS_OF_THREAD // batch)
    return max(1, min(most, work // PART_WORK))


def _division(m: int, n: int, parts: int, shape: Shape) -> tuple[int, int]:
    """Return rows and columns of a part: the longer side is divided, at whole tiles."""
    size, tile = (m, shape.rows) if m > n else (n, shape.columns)
    if parts == 1:
        return m, n
    part = math.ceil(size / parts / tile) * tile
    return (part, n) if m > n else (m, part)


class _Local(threading.local):
    scratch: Array | None = None


_local = _Local()


def _scratch(nbytes: int) -> Array:
    """Return memory of the calling thread for what is packed."""
    if _local.scratch is None or _local.scratch.size < nbytes:
        _local.scratch = aligned_empty(nbytes)
    return _local.scratch
