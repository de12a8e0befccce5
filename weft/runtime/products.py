"""Matrix products of any sizes by machine code that is made once (see codegen/gemm_any.py).

    multiply(x, y, out)     # float32 or float64: (b, m, k), (b, k, n) -> (b, m, n)

Results do not depend on the number of threads.
"""

from __future__ import annotations

import math
import threading
from functools import cache, lru_cache
from typing import Any

import numpy as np

from ..codegen.gemm_any import RECORD, UNROLL, Shape, product_text, shape_for
from ..codegen.target import host
from ..core.threads import get_num_threads
from .arena import aligned_empty
from .calls import Entry, make_entry
from .native import link
from .objects import object_code
from .threads import pool_symbols

Array = np.ndarray[Any, Any]
Strides = tuple[int, ...]

PART_WORK = 1 << 19  # multiplications that are worth a part of their own
PARTS_OF_THREAD = 2  # so that a thread that is held up does not hold up the others


def multiply(x: Array, y: Array, out: Array) -> None:
    """Put the products of two stacks of matrices, of one dtype, into `out`."""
    shape, entry = _code(out.dtype)
    x, y = (_readable(a, out.itemsize) for a in (x, y))
    threads = get_num_threads()
    record = _record(x.shape, y.shape[-1], x.strides, y.strides, out.strides, shape, threads)
    entry(x, y, out, record, _scratch(threads * shape.area_bytes))


@cache
def _code(dtype: np.dtype[Any]) -> tuple[Shape, Entry]:
    target, symbols = host(), pool_symbols()
    shape = shape_for(target, dtype)
    library = link([object_code(product_text(target, shape), target)], ["product"], symbols)
    return shape, make_entry(library.address("product"), 5, keep=library)


def _readable(x: Array, itemsize: int) -> Array:
    """Return an array, or a copy where its elements do not lie at multiples of their size."""
    if type(x) is np.ndarray and x.flags.aligned and not any(s % itemsize for s in x.strides):
        return x
    return np.array(x, order="C")


@lru_cache(maxsize=1024)
def _record(
    size: tuple[int, int, int],
    n: int,
    x: Strides,
    y: Strides,
    out: Strides,
    shape: Shape,
    threads: int,
) -> Array:
    """Return the sizes and strides of a product, and how it is divided."""
    batch, m, k = size
    down, across = _division(m, n, _parts_wanted(batch, m * n * k, threads), shape)
    words = {
        "m": m,
        "n": n,
        "k": k,
        "depth": _block_depth(k, shape.block_depth),
        "row_part": down,
        "column_part": across,
        "column_parts": -(-n // across),
        "parts": -(-n // across) * -(-m // down),
        "chunks": batch * -(-n // across) * -(-m // down),
        "areas": threads,
    }
    for name, strides in (("x", x), ("y", y), ("out", out)):
        for axis, stride in zip(("matrix", "row", "column"), strides, strict=True):
            words[f"{name}_{axis}"] = stride // shape.itemsize
    return np.array([words[name] for name in RECORD], np.int64)


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
