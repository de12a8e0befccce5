"""Run one-dimensional float kernels over arrays of any shape and float dtype.

A kernel maps a 1-D float64 block to a 1-D block of the same length and never writes to its input.
Arrays are cut into blocks so that the temporaries of a kernel stay in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .abstract import AbstractBlock

if TYPE_CHECKING:  # slow to import
    import numpy.typing as npt

Array = np.ndarray[Any, np.dtype[Any]]
Block = np.ndarray[Any, np.dtype[np.float64]]
Kernel = Callable[[Block], Block]

_BLOCK_ELEMENTS = 8192  # 64 KiB a temporary: half a dozen of them fit a second-level cache
_FLOAT_DTYPES = frozenset({"float16", "bfloat16", "float32", "float64"})


def evaluate(
    name: str, x: npt.ArrayLike | AbstractBlock, kernel: Kernel, narrow: Kernel | None = None
) -> Array:
    """Return `kernel` applied to every element of `x`, in the shape and dtype of `x`.

    Dtypes narrower than float64 are computed in float64 and rounded once; `narrow`, when given, is
    a cheaper float64 kernel whose error is far below half an ulp of float32.
    """
    if isinstance(x, AbstractBlock):
        return kernel(_as_block(x))
    array = as_float_array(name, x)
    if narrow is not None and array.dtype.itemsize < 8:
        kernel = narrow
    flat = array.reshape(-1)
    out = np.empty(flat.shape, array.dtype)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, _BLOCK_ELEMENTS):
            part = slice(start, start + _BLOCK_ELEMENTS)
            out[part] = kernel(flat[part].astype(np.float64, copy=False))
    return out.reshape(array.shape)


def evaluate_pair(
    name: str,
    x: npt.ArrayLike | AbstractBlock,
    y: npt.ArrayLike | AbstractBlock,
    kernel: Callable[[Block, Block], Block],
) -> Array:
    """Return `kernel` applied to all pairs of two arrays that broadcast, in their common dtype."""
    if isinstance(x, AbstractBlock) or isinstance(y, AbstractBlock):
        return kernel(_as_block(x), _as_block(y))
    arrays = np.broadcast_arrays(as_float_array(name, x), as_float_array(name, y))
    left, right = (a.reshape(-1) for a in arrays)
    out = np.empty(left.shape, np.result_type(*arrays))
    with np.errstate(all="ignore"):
        for start in range(0, left.size, _BLOCK_ELEMENTS):
            part = slice(start, start + _BLOCK_ELEMENTS)
            blocks = (a[part].astype(np.float64, copy=False) for a in (left, right))
            out[part] = kernel(*blocks)
    return out.reshape(arrays[0].shape)


def _as_block(x: Any) -> Block:
    """Return what stands for a block, as the kernels' types have it."""
    block: Block = x
    return block


def as_float_array(name: str, x: npt.ArrayLike) -> Array:
    """Return `x` as an array, or raise TypeError when its dtype is not a float the kernels know."""
    array: Array = np.asarray(x)
    if array.dtype.name not in _FLOAT_DTYPES:
        raise TypeError(
            f"{name}: expected float16, bfloat16, float32 or float64; received {array.dtype.name}. "
            "Convert the input first, for example with x.astype('float64')."
        )
    return array


def horner(x: Block, coefficients: Sequence[float]) -> Block:
    """Return the polynomial in `x` with the given coefficients, the constant term first."""
    y = np.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        y *= x
        y += c
    return y


def rational(x: Block, numerator: Sequence[float], denominator: Sequence[float]) -> Block:
    """Return the quotient of two polynomials in `x`, constant terms first."""
    y = horner(x, numerator)
    y /= horner(x, denominator)
    return y


def piecewise(
    x: Block, edges: Sequence[float], branches: Sequence[Kernel], key: Block | None = None
) -> Block:
    """Return `branches[i](x)` where `edges[i-1] <= key < edges[i]`, computing only what is used.

    There is one branch more than edges; the last one also receives the elements whose key is NaN.
    """
    if isinstance(x, AbstractBlock):
        return _as_block(_chosen(x, edges, branches, x if key is None else key))
    out = np.empty_like(x)
    for chosen, branch in zip(_pieces(x if key is None else key, edges), branches, strict=True):
        index = np.flatnonzero(chosen)
        if index.size == x.size:
            return branch(x)
        if index.size:
            out[index] = branch(x[index])
    return out


def _chosen(x: Any, edges: Sequence[float], branches: Sequence[Kernel], key: Any) -> Any:
    """Compute all branches, and choose between their results."""
    found: Any = branches[-1](x)
    for edge, branch in zip(reversed(edges), branches[-2::-1], strict=True):
        found = np.where(key < edge, branch(x), found)
    return found


def _pieces(key: Block, edges: Sequence[float]) -> Iterator[np.ndarray[Any, np.dtype[np.bool_]]]:
    """Yield the membership mask of each interval that `edges` cut the axis into."""
    already = np.zeros(key.shape, np.bool_)
    for edge in edges:
        below = key < edge
        yield below & ~already
        already = below
    yield ~already
