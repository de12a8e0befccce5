"""Factorisations of NumPy's, with the same bits at any number of threads.

LAPACK builds on products, and divides more than them. Matrices of less than SMALL_SIDE rows and
columns are left to np.linalg: OpenBLAS stays on the calling thread then. Larger ones go, one by
one, to LAPACK in a copy of NumPy's own library that has no threads (core/blas.py), by the same
routines as np.linalg takes. Failures are LinAlgErrors, as there.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.blas import one_thread, single_library
from ...core.dtype import Array

Kernel = Callable[..., Any]

# The least side at which threads show is 44 (singular vectors in float64 on AVX2 machines);
# interface/trsm.c divides 1024 elements.
SMALL_SIDE = 32


def _like(numpy_function: Kernel, *, sides: int = 1) -> Callable[[Kernel], Kernel]:
    """Make a kernel for one matrix one for stacks, in the place of a function of NumPy's.

    sides   how many leading operands are matrices (or vectors)
    """

    def decorate(kernel: Kernel) -> Kernel:
        @functools.wraps(kernel)
        def run(*args: Any) -> Any:
            matrices = args[:sides]
            if _are_small(matrices) or not _are_lapacks(matrices):
                return numpy_function(*args)
            if single_library() is None:
                with one_thread():
                    return numpy_function(*args)
            return _each(kernel, matrices, args[sides:])

        run.in_numpy = numpy_function  # type: ignore[attr-defined]  # see autodiff/text/kernels.py
        return run

    return decorate


def _are_small(matrices: tuple[Any, ...]) -> bool:
    return all(max(x.shape[-2:], default=0) < SMALL_SIDE for x in matrices)


def _are_lapacks(matrices: tuple[Any, ...]) -> bool:
    """Tell whether operands are what LAPACK takes; NumPy converts or refuses all others."""
    first = matrices[0]
    same = all(x.dtype == first.dtype and x.dtype.char in "fd" and x.size for x in matrices)
    if len(matrices) == 1:
        return same and first.ndim > 1
    right = matrices[1]
    square = first.ndim > 1 and first.shape[-2] == first.shape[-1]
    return same and square and first.shape[-1] == right.shape[-2 if right.ndim > 1 else 0]


def _each(kernel: Kernel, matrices: tuple[Array, ...], rest: tuple[Any, ...]) -> Any:
    """Return what a kernel gives for each matrix of a stack, stacked."""
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in matrices))
    if not batch:
        return kernel(*matrices, *rest)
    stacks = [x if x.ndim == 1 else np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in matrices]
    results = [
        kernel(*(x if x.ndim == 1 else x[index] for x in stacks), *rest)
        for index in np.ndindex(batch)
    ]
    if isinstance(results[0], tuple):
        return tuple(_stacked(parts, batch) for parts in zip(*results, strict=True))
    return _stacked(results, batch)


def _stacked(parts: Any, batch: tuple[int, ...]) -> Array:
    stack = np.stack(parts)
    return stack.reshape(*batch, *stack.shape[1:])


def _numpy_qr(x: Array, mode: Any) -> tuple[Array, ...]:
    return tuple(np.linalg.qr(x, mode))


def _numpy_svd(x: Array, full: bool) -> tuple[Array, ...]:
    return tuple(np.linalg.svd(x, full))


def _numpy_svdvals(x: Array) -> Any:
    return np.linalg.svd(x, compute_uv=False)


def _numpy_eigh(x: Array) -> tuple[Array, ...]:
    return tuple(np.linalg.eigh(x))


# -- what takes the places of NumPy's functions ---------------------------------------------------


@_like(np.linalg.solve, sides=2)
def solve(a: Array, b: Array) -> Array:
    """Return x with a @ x = b."""
    x = _fortran(b)
    _solve_in_place(_fortran(a), x)
    return np.ascontiguousarray(x)


@_like(np.linalg.inv)
def inv(x: Array) -> Array:
    """Return the inverse of a matrix."""
    _check_square(x)
    out = np.eye(len(x), dtype=x.dtype, order="F")
    _solve_in_place(_fortran(x), out)
    return np.ascontiguousarray(out)


@_like(np.linalg.slogdet)
def slogdet(x: Array) -> tuple[Any, Any]:
    """Return the sign of a determinant, and the logarithm of its absolute value."""
    _check_square(x)
    lu, pivots = _fortran(x), _integers(len(x))
    info = _call("getrf", lu, len(x), len(x), lu, len(x), pivots)
    if info > 0:
        return x.dtype.type(0), x.dtype.type(-np.inf)
    diagonal = np.diagonal(lu)
    swaps = np.count_nonzero(pivots != np.arange(1, len(x) + 1))
    sign = np.sign(diagonal).prod() * (-1 if swaps % 2 else 1)
    return x.dtype.type(sign), np.log(np.abs(diagonal)).sum()


@_like(np.linalg.det)
def det(x: Array) -> Any:
    """Return the determinant of a matrix."""
    sign, logarithm = slogdet(x)
    return sign * np.exp(logarithm)


@_like(np.linalg.cholesky)
def cholesky(x: Array) -> Array:
    """Return the lower triangular factor of a matrix."""
    _check_square(x)
    lower = _fortran(x)
    if _call("potrf", lower, "L", len(x), lower, len(x)):
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    return np.tril(lower)


@_like(_numpy_qr)
def qr(x: Array, mode: str) -> tuple[Array, Array]:
    """Return Q and R, either reduced or complete."""
    (m, n), a = x.shape, _fortran(x)
    k = min(m, n)
    columns = m if mode == "complete" and m > n else k
    tau = np.empty(k, x.dtype)
    _call_with_room("geqrf", a, m, n, a, m, tau)
    q = np.zeros((m, columns), x.dtype, order="F")
    q[:, : min(n, columns)] = a[:, :columns]
    _call_with_room("orgqr", a, m, columns, k, q, m, tau)
    return np.ascontiguousarray(q), np.triu(a[:columns])


@_like(_numpy_svd)
def svd(x: Array, full: bool) -> tuple[Array, Array, Array]:
    """Return U, the singular values and Vh."""
    (m, n), k = x.shape, min(x.shape)
    u = np.empty((m, m if full else k), x.dtype, order="F")
    vh = np.empty((n if full else k, n), x.dtype, order="F")
    values = _singular_values(x, "A" if full else "S", u, vh)
    return np.ascontiguousarray(u), values, np.ascontiguousarray(vh)


@_like(_numpy_svdvals)
def svdvals(x: Array) -> Array:
    """Return the singular values."""
    nothing = np.empty((1, 1), x.dtype, order="F")
    return _singular_values(x, "N", nothing, nothing)


@_like(_numpy_eigh)
def eigh(x: Array) -> tuple[Array, Array]:
    """Return the eigenvalues and eigenvectors of a symmetric matrix."""
    vectors = _fortran(x)
    values = _eigenvalues(vectors, "V")
    return values, np.ascontiguousarray(vectors)


@_like(np.linalg.eigvalsh)
def eigvalsh(x: Array) -> Array:
    """Return the eigenvalues of a symmetric matrix."""
    return _eigenvalues(_fortran(x), "N")


def lu(x: Array) -> tuple[Array, Array] | None:
    """Return the factors of large matrices and their pivots; None where it is not LAPACK's part."""
    if _are_small((x,)) or not _are_lapacks((x,)) or single_library() is None:
        return None
    factors, pivots = _each(_lu, (x,), ())
    return factors, pivots


def _lu(x: Array) -> tuple[Array, Array]:
    (m, n), a, pivots = x.shape, _fortran(x), _integers(min(x.shape))
    _call("getrf", a, m, n, a, m, pivots)
    return np.ascontiguousarray(a), pivots.astype(np.int32)


# -- calls of LAPACK -------------------------------------------------------------------------------


def _solve_in_place(a: Array, x: Array) -> None:
    n, columns = len(a), 1 if x.ndim == 1 else x.shape[1]
    if _call("gesv", a, n, columns, a, n, _integers(n), x, n):
        raise np.linalg.LinAlgError("Singular matrix")


def _singular_values(x: Array, job: str, u: Array, vh: Array) -> Array:
    (m, n), values = x.shape, np.empty(min(x.shape), x.dtype)
    a, room = _fortran(x), _integers(8 * min(x.shape))
    sides = (values, u, len(u), vh, len(vh))
    if _call_with_room("gesdd", a, job, m, n, a, m, *sides, after=(room,)):
        raise np.linalg.LinAlgError("SVD did not converge")
    return values


def _eigenvalues(a: Array, job: str) -> Array:
    _check_square(a)
    n, values = len(a), np.empty(len(a), a.dtype)
    room = _integers(3 + 5 * n)
    if _call_with_room("syevd", a, job, "L", n, a, n, values, after=(room, room.size)):
        raise np.linalg.LinAlgError("Eigenvalues did not converge")
    return values


def _call_with_room(name: str, like: Array, *args: Any, after: tuple[Any, ...] = ()) -> int:
    """Call a routine that takes memory to work in, of the size that it asks for."""
    asked = np.empty(1, like.dtype)
    _call(name, like, *args, asked, -1, *after)
    size = int(np.nextafter(asked[0], np.inf, dtype=like.dtype)) + 1
    return _call(name, like, *args, np.empty(size, like.dtype), size, *after)


def _call(name: str, like: Array, *args: Any) -> int:
    """Call a routine for the dtype of an array; return its `info`, which is its last argument.

    Fortran takes addresses; behind them stand the lengths of texts.
    """
    library = single_library()
    assert library is not None
    info = library.integer(0)
    passed: list[Any] = []
    for arg in args:
        if isinstance(arg, np.ndarray):
            passed.append(ctypes.c_void_p(arg.ctypes.data))
        elif isinstance(arg, str):
            passed.append(ctypes.c_char_p(arg.encode()))
        else:
            passed.append(ctypes.byref(library.integer(arg)))
    lengths = [ctypes.c_size_t(1) for arg in args if isinstance(arg, str)]
    prefix = "s" if like.dtype.char == "f" else "d"
    library.lapack(prefix + name)(*passed, ctypes.byref(info), *lengths)
    return int(info.value)


def _fortran(x: Array) -> Array:
    """Return a copy in Fortran's order, to be overwritten."""
    return np.array(x, order="F")


def _integers(size: int) -> Array:
    library = single_library()
    assert library is not None
    return np.empty(size, np.dtype(library.integer))


def _check_square(x: Array) -> None:
    if x.shape[0] != x.shape[1]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
