"""References for linear algebra: NumPy's and SciPy's functions, or the defining formula."""

from __future__ import annotations

from functools import reduce

import numpy as np
import scipy.linalg

from weft.core.samples import ErrorSample, Sample
from weft.ops.linalg._samples import definite, regular


def contract(subscripts, *operands):
    """Return an einsum computed by plain summation, in at least int64."""
    operands = operands[0] if isinstance(operands[0], list) else operands
    return np.einsum(subscripts, *operands, optimize=False)


def matmul(x, y):
    x1, y1 = np.atleast_2d(x), y[:, None] if y.ndim == 1 else y
    product = np.einsum("...ik,...kj->...ij", x1, y1)
    product = product[..., 0] if y.ndim == 1 else product
    return (product[..., 0] if y.ndim == 1 else product[..., 0, :]) if x.ndim == 1 else product


def linear(x, weight, bias=None):
    product = np.einsum("...i,oi->...o", x, weight)
    return product if bias is None else product + bias


def vecdot(x, y, axis=-1, dim=None):
    axis = axis if dim is None else dim
    return np.sum(np.moveaxis(x, axis, -1) * np.moveaxis(y, axis, -1), axis=-1)


def addmm(x, a, b, beta=1, alpha=1):
    return (0 if beta == 0 else beta * x) + alpha * np.einsum("...ik,...kj->...ij", a, b)


def addmv(x, a, vec, beta=1, alpha=1):
    return beta * x + alpha * np.einsum("ik,k->i", a, vec)


def as_float(x):
    return x if x.dtype.kind == "f" else x.astype(np.float32)


def each(fn, core=2):
    """Return a function of stacks of matrices from one of single matrices."""

    def run(x, *rest, **kwargs):
        x = as_float(x)
        batch = x.shape[:-core]
        results = [fn(x[i], *rest, **kwargs) for i in np.ndindex(*batch)]
        if not results:
            probe = fn(np.eye(*x.shape[-2:], dtype=x.dtype), *rest, **kwargs)
            return np.zeros((*batch, *np.shape(probe)), np.asarray(probe).dtype)
        return np.stack(results).reshape((*batch, *np.shape(results[0])))

    return run


def solve(a, b):
    inverse = np.linalg.inv(as_float(a))
    return matmul(inverse, as_float(b))


def triangular_solve(a, b, upper=False, transpose=False, unit_diagonal=False):
    triangle = np.triu(a) if upper else np.tril(a)
    if unit_diagonal:
        np.einsum("...ii->...i", triangle)[...] = 1.0
    return solve(np.swapaxes(triangle, -1, -2) if transpose else triangle, b)


def cholesky_solve(b, factor, upper=False):
    turned = np.swapaxes(factor, -1, -2)
    return solve(turned @ factor if upper else factor @ turned, b)


def cholesky(x, upper=False):
    factor = np.linalg.cholesky(as_float(x))
    return np.swapaxes(factor, -1, -2) if upper else factor


def eigh(x, UPLO=None):
    x = as_float(x)
    turned = np.swapaxes(x, -1, -2)
    if UPLO is None:
        return tuple(np.linalg.eigh((x + turned) / 2))
    return tuple(np.linalg.eigh(x if UPLO == "L" else turned))


def cofactor_matrix(x):
    n = len(x)
    result = np.zeros_like(x)
    for i, j in np.ndindex(n, n):
        minor = np.delete(np.delete(x, i, 0), j, 1)
        result[i, j] = (-1) ** (i + j) * scipy.linalg.det(minor) if n > 1 else 1.0
    return result


def lstsq_solution(a, b, rtol=None):
    return matmul(np.linalg.pinv(a, rtol=rtol), b)


def lstsq(a, b, rtol=None):
    x = lstsq_solution(a, b, rtol)
    columns = b[:, None] if b.ndim == 1 else b
    error = matmul(a, x[..., None] if b.ndim == 1 else x) - columns
    squares = np.sum(error**2, axis=-2)
    residuals = squares[..., 0] if b.ndim == 1 else squares
    rank = np.linalg.matrix_rank(a, rtol=rtol)
    return x, residuals, rank, np.linalg.svd(a, compute_uv=False)


def pinv(x, rtol=None, atol=None, hermitian=False):
    x = as_float(x)
    if hermitian:
        x = (x + np.swapaxes(x, -1, -2)) / 2
    if atol is None:
        return np.linalg.pinv(x, rtol=rtol)
    return np.linalg.pinv(x, rcond=atol / np.linalg.svd(x, compute_uv=False)[..., 0])


def matrix_rank(x, tol=None, rtol=None, hermitian=False):
    if x.size == 0:
        return np.zeros(x.shape[:-2], np.int64)
    return np.linalg.matrix_rank(x, tol) if rtol is None else np.linalg.matrix_rank(x, rtol=rtol)


def logdet(x):
    with np.errstate(all="ignore"):
        return np.log(np.linalg.det(x))


def vander(x, n=None, increasing=False):
    flat = x.reshape(-1, x.shape[-1])
    rows = [np.vander(row, n, increasing) for row in flat]
    return np.stack(rows).reshape(*x.shape, -1)


REFERENCES = {
    "matmul": matmul,
    "linear": linear,
    "dot": np.dot,
    "vdot": np.vdot,
    "vecdot": vecdot,
    "inner": np.inner,
    "outer": np.outer,
    "cross": lambda x, y, axis=-1: np.cross(x, y, axis=axis),
    "mv": matmul,
    "bmm": matmul,
    "addmm": addmm,
    "addmv": addmv,
    "baddbmm": addmm,
    "addbmm": lambda x, a, b, beta=1, alpha=1: beta * x + alpha * np.matmul(a, b).sum(0),
    "addr": lambda x, u, v, beta=1, alpha=1: beta * x + alpha * np.outer(u, v),
    "matrix_power": np.linalg.matrix_power,
    "multi_dot": lambda tensors: reduce(np.matmul, tensors),
    "trace": lambda x, offset=0, axis1=-2, axis2=-1: np.trace(x, offset, axis1, axis2),
    "tensordot": lambda x, y, axes=2, dims=None: np.tensordot(x, y, axes if dims is None else dims),
    "kron": np.kron,
    "vander": vander,
    "matrix_diagonal": lambda x, offset=0, axis1=-2, axis2=-1: np.diagonal(x, offset, axis1, axis2),
    "powers_matrix": lambda x, n=None: vander(x, n, increasing=True),
    "einsum": contract,
    "solve": solve,
    "triangular_solve": triangular_solve,
    "cholesky_solve": cholesky_solve,
    "inv": each(scipy.linalg.inv),
    "det": each(scipy.linalg.det),
    "cofactor": each(cofactor_matrix),
    "slogdet": lambda x: tuple(np.linalg.slogdet(as_float(x))),
    "logdet": logdet,
    "cholesky": cholesky,
    "qr": lambda x, mode="reduced": tuple(np.linalg.qr(as_float(x), mode)),
    "eigh": eigh,
    "eigvalsh": lambda x, UPLO=None: eigh(x, UPLO)[0],
    "svd": lambda x, full_matrices=True: tuple(np.linalg.svd(as_float(x), full_matrices)),
    "svdvals": lambda x: np.linalg.svd(x, compute_uv=False),
    "matrix_rank": matrix_rank,
    "cond": np.linalg.cond,
    "pinv": pinv,
    "lstsq_solution": lstsq_solution,
    "lstsq": lstsq,
    "expm": each(scipy.linalg.expm),
}


# -- samples of composites ------------------------------------------------------------------------


def pairs(*shapes):
    def rule(s):
        for x, y in shapes:
            yield Sample(s.real(*x), s.real(*y))

    return rule


def dot_samples(s):
    yield from pairs(((3,), (3,)), ((2, 3), (3,)), ((), (2,)), ((2, 3), (2, 3, 2)))(s)
    yield Sample(s.strided(2, 3), s.strided(3, 2), label="non-contiguous")
    yield Sample(s.integers(3), s.integers(3), label="integers")


def vecdot_samples(s):
    yield from pairs(((3,), (3,)), ((2, 3), (3,)), ((2, 1, 3), (2, 3)), ((0,), (0,)))(s)
    yield Sample(s.real(3, 2), s.real(3, 2), axis=0)
    yield Sample(s.real(3, 2), s.real(3, 2), axis=0)


def addmm_samples(s):
    for shape in ((2, 2), (2,), (), (2, 1)):
        yield Sample(s.real(*shape), s.real(2, 3), s.real(3, 2))
    yield Sample(s.real(2, 2), s.real(2, 3), s.real(3, 2), beta=0.5, alpha=2.0)
    yield Sample(np.full((2, 2), np.nan), s.real(2, 3), s.real(3, 2), beta=0, grad=0)


def addmv_samples(s):
    yield Sample(s.real(2), s.real(2, 3), s.real(3))
    yield Sample(s.real(), s.real(2, 3), s.real(3), beta=0.5, alpha=2.0)


def baddbmm_samples_of(shape):
    def samples(s):
        yield Sample(s.real(*shape), s.real(2, 2, 3), s.real(2, 3, 2))
        yield Sample(s.real(2), s.real(2, 2, 3), s.real(2, 3, 2), beta=0.5, alpha=2.0)

    return samples


def addr_samples(s):
    yield Sample(s.real(2, 3), s.real(2), s.real(3))
    yield Sample(s.real(3), s.real(2), s.real(3), beta=0.5, alpha=2.0)
    yield Sample(s.integers(2, 2), s.integers(2), s.integers(2), label="integers")


def matrix_power_samples(s):
    for n in (0, 1, 2, 3, 5, -1, -2):
        yield Sample(regular(s, 2, 2), n)
    yield Sample(regular(s, 2, 2, 2), 3)
    yield Sample(regular(s, 0, 0), 2)


def multi_dot_samples(s):
    yield Sample([s.real(2, 3), s.real(3, 2)])
    yield Sample([s.real(2, 3), s.real(3, 1), s.real(1, 4)])
    yield Sample([s.real(3), s.real(3, 2), s.real(2, 2), s.real(2)])


def trace_samples(s):
    for shape in ((3, 3), (2, 3), (2, 2, 2), (0, 0)):
        yield Sample(s.real(*shape))
    yield Sample(s.real(3, 4), offset=1)
    yield Sample(s.real(3, 3), offset=-1)
    yield Sample(s.real(2, 3, 2), axis1=0, axis2=2)
    yield Sample(s.integers(3, 3), label="integers")


def tensordot_samples(s):
    yield Sample(s.real(2, 2, 3), s.real(2, 3, 2))
    yield Sample(s.real(2, 3), s.real(3, 2), axes=1)
    yield Sample(s.real(2), s.real(3), axes=0)
    yield Sample(s.real(2, 3, 2), s.real(2, 2, 3), axes=([1, 0], [2, 1]))
    yield Sample(s.real(2, 3), s.real(2, 3), axes=(-1, 1))
    yield Sample(s.real(2, 3), s.real(3, 2), dims=1)
    yield Sample(s.real(0, 3), s.real(3, 2), axes=1)


def vander_samples(s):
    yield Sample(s.positive(3))
    yield Sample(s.positive(2), 4)
    yield Sample(s.positive(2, 3), 2, increasing=True)


def powers_matrix_samples(s):
    yield Sample(s.positive(3))
    yield Sample(s.positive(2, 3), 2)


def cholesky_solve_samples(s):
    for upper in (False, True):
        factor = np.linalg.cholesky(definite(s, 3, 3))
        factor = factor.T.copy() if upper else factor
        yield Sample(s.real(3, 2), factor, upper=upper)
        yield Sample(s.real(3), factor, upper=upper)


def logdet_samples(s):
    for shape in ((3, 3), (2, 2, 2), (1, 1), (0, 0)):
        yield Sample(definite(s, *shape))
    yield Sample(np.diag([1.0, -1.0]), grad=0, label="negative")
    yield Sample(np.zeros((2, 2)), grad=0, label="zero")


def cond_samples(s):
    for p in (None, 2, -2):
        yield Sample(regular(s, 3, 3), p)
        yield Sample(regular(s, 2, 3, 2), p)
    for p in (1, -1, np.inf, -np.inf, "fro"):
        yield Sample(regular(s, 2, 2), p)


def lstsq_samples(s):
    for a, b in (((4, 2), (4,)), ((4, 2), (4, 2)), ((2, 3), (2, 1)), ((2, 3, 2), (2, 3, 1))):
        yield Sample(regular(s, *a), s.real(*b))


EINSUMS = (
    ("ij,jk->ik", (2, 3), (3, 2)),
    ("ij,jk", (2, 3), (3, 2)),
    ("ij,kj->ki", (2, 3), (2, 3)),
    ("i,i->", (3,), (3,)),
    ("i,i->i", (3,), (3,)),
    ("i,j->ij", (2,), (3,)),
    ("i,j->ji", (2,), (3,)),
    ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)),
    ("bij,bkj->bki", (2, 2, 3), (2, 2, 3)),
    ("bhqd,bhkd->bhqk", (1, 2, 2, 2), (1, 2, 3, 2)),
    ("ijk,jil->kl", (2, 2, 3), (2, 2, 2)),
    ("ijk,l->lj", (2, 2, 3), (2,)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("iij->j", (2, 2, 3)),
    ("iji->ij", (2, 3, 2)),
    ("ii,ij->j", (2, 2), (2, 3)),
    ("ji->ij", (2, 3)),
    ("ba", (2, 3)),
    ("ij->", (2, 3)),
    ("ij->j", (2, 3)),
    ("->", ()),
    (",->", (), ()),
    (",i->i", (), (3,)),
    ("...ij,...jk->...ik", (2, 2, 2), (2, 2)),
    ("...ij,...jk", (1, 2, 2), (3, 2, 1)),
    ("...,...->...", (2, 3), (3,)),
    ("i...->...i", (2, 3)),
    ("...ii->...", (2, 3, 3)),
    (" i j , j k -> i k ", (2, 2), (2, 2)),
    ("ij,j->ij", (2, 1), (3,)),
    ("ij,ij->i", (2, 3), (2, 1)),
    ("ij,jk,kl->il", (2, 3), (3, 2), (2, 2)),
    ("ij,ik,il->jkl", (2, 2), (2, 2), (2, 1)),
    ("a,b,c->cab", (2,), (2,), (2,)),
    ("ij,jk->ik", (2, 0), (0, 3)),
    ("ij,jk->ik", (0, 2), (2, 3)),
    ("Ab,bA->A", (2, 3), (3, 2)),
)


def einsum_samples(s):
    for subscripts, *shapes in EINSUMS:
        yield Sample(subscripts, *(s.real(*shape) for shape in shapes), label=subscripts)
    yield Sample("ij,jk->ik", [s.real(2, 3), s.real(3, 2)], label="list")
    yield Sample("ij,jk->ik", s.strided(2, 3), s.strided(3, 2), label="non-contiguous")
    yield Sample("ij,jk->ik", s.integers(2, 3), s.integers(3, 2), label="integers")


COMPOSITE_SAMPLES = {
    "dot": dot_samples,
    "vdot": pairs(((3,), (3,)), ((2, 3), (3, 2)), ((), ()), ((0,), (0,))),
    "vecdot": vecdot_samples,
    "inner": pairs(((3,), (3,)), ((2, 3), (2, 3)), ((), (2,)), ((2, 2, 3), (3,))),
    "outer": pairs(((2,), (3,)), ((2, 2), (3,)), ((), (2,)), ((0,), (3,))),
    "mv": pairs(((2, 3), (3,)), ((0, 3), (3,))),
    "bmm": pairs(((2, 2, 3), (2, 3, 2)), ((0, 2, 3), (0, 3, 2))),
    "addmm": addmm_samples,
    "addmv": addmv_samples,
    "baddbmm": baddbmm_samples_of((2, 2, 2)),
    "addbmm": baddbmm_samples_of((2, 2)),
    "addr": addr_samples,
    "matrix_power": matrix_power_samples,
    "multi_dot": multi_dot_samples,
    "trace": trace_samples,
    "tensordot": tensordot_samples,
    "kron": pairs(((2, 2), (2, 3)), ((2,), (3,)), ((2,), (2, 2)), ((), (3,)), ((0, 2), (2, 2))),
    "vander": vander_samples,
    "matrix_diagonal": trace_samples,
    "powers_matrix": powers_matrix_samples,
    "einsum": einsum_samples,
    "cholesky_solve": cholesky_solve_samples,
    "logdet": logdet_samples,
    "cond": cond_samples,
    "lstsq": lstsq_samples,
}


# -- bad inputs of composites ---------------------------------------------------------------------


def vdot_errors(s):
    yield ErrorSample(s.real(2), s.real(3), error=ValueError, match=r"\(2,\) and \(3,\)")


def vecdot_errors(s):
    yield ErrorSample(s.real(2), s.real(3), error=ValueError, match=r"\(2,\) and \(3,\)")
    yield ErrorSample(s.real(2), s.real(2), axis=1, error=IndexError, match="axis 1")


def bmm_errors(s):
    yield ErrorSample(
        s.real(2, 3), s.real(3, 2), error=ValueError, match=r"x must have 3.*\(2, 3\)"
    )
    yield ErrorSample(s.real(2, 2, 3), s.real(1, 3, 2), error=ValueError, match="same batch size")


def mv_errors(s):
    yield ErrorSample(s.real(2, 3), s.real(3, 1), error=ValueError, match=r"vec.*\(3, 1\)")


def addr_errors(s):
    yield ErrorSample(
        s.real(2, 3), s.real(2, 1), s.real(3), error=ValueError, match="u must have 1"
    )
    yield ErrorSample(s.real(4), s.real(2), s.real(3), error=ValueError, match=r"\(2, 3\)")


def addmm_errors(s):
    a, b = s.real(2, 3), s.real(3, 2)
    yield ErrorSample(s.real(3, 2, 2), a, b, error=ValueError, match=r"\(2, 2\).*\(3, 2, 2\)")
    yield ErrorSample(s.real(2, 2), s.real(3), b, error=ValueError, match=r"a must have 2")


def matrix_power_errors(s):
    yield ErrorSample(s.real(2, 3), 2, error=ValueError, match=r"square.*\(2, 3\)")
    yield ErrorSample(s.real(2, 2), 0.5, error=TypeError, match="n must be an integer.*0.5")


def multi_dot_errors(s):
    yield ErrorSample([s.real(2, 2)], error=ValueError, match="at least two.*1")
    stack = [s.real(2, 2), s.real(2, 2, 2), s.real(2, 2)]
    yield ErrorSample(stack, error=ValueError, match=r"tensors\[1\].*\(2, 2, 2\)")


def trace_errors(s):
    yield ErrorSample(s.real(3), error=ValueError, match=r"matrix.*\(3,\)")


def tensordot_errors(s):
    x = s.real(2, 3)
    yield ErrorSample(x, s.real(2, 3), axes=1, error=ValueError, match=r"3 and 2.*\(2, 3\)")
    yield ErrorSample(x, x, axes=3, error=ValueError, match="axes must be 0..2.*3")
    yield ErrorSample(x, x, axes="ab", error=TypeError, match="axes must be.*'ab'")
    yield ErrorSample(x, x, axes=([0, 0], [0, 1]), error=ValueError, match="twice")
    yield ErrorSample(x, x, axes=([0, 1], [0]), error=ValueError, match="equally many")


def einsum_errors(s):
    x = s.real(2, 3)
    yield ErrorSample("ij,jk", x, error=ValueError, match=r"name 2 operand\(s\).*1")
    yield ErrorSample("ij,jk", x, x, error=ValueError, match="index 'j' has sizes 3 and 2")
    yield ErrorSample("ijk", x, error=ValueError, match="'ijk' do not fit operand 0")
    yield ErrorSample("i", x, error=ValueError, match="'i' do not fit operand 0")
    yield ErrorSample("ij->ik", x, error=ValueError, match="'k' occurs in no operand")
    yield ErrorSample("ij->ii", x, error=ValueError, match="'ii' repeat an index")
    yield ErrorSample("i1", x, error=ValueError, match="letters.*'i1'")
    yield ErrorSample("...j->j", x, error=ValueError, match=r"must hold '\.\.\.'")
    yield ErrorSample("ii", x, error=ValueError, match=r"'i' of one operand has sizes \[2, 3\]")
    yield ErrorSample(3, x, error=TypeError, match="must be a string")


def cond_errors(s):
    yield ErrorSample(s.real(3), error=ValueError, match=r"matrix.*\(3,\)")
    yield ErrorSample(s.real(2, 3), "fro", error=ValueError, match=r"square.*\(2, 3\)")
    yield ErrorSample(s.real(0, 0), error=ValueError, match=r"empty.*\(0, 0\)")


def vander_errors(s):
    yield ErrorSample(s.real(), error=ValueError, match="0-d")
    yield ErrorSample(s.real(3), -1, error=ValueError, match="negative.*-1")


COMPOSITE_ERROR_SAMPLES = {
    "vdot": vdot_errors,
    "vecdot": vecdot_errors,
    "bmm": bmm_errors,
    "mv": mv_errors,
    "addr": addr_errors,
    "addmm": addmm_errors,
    "matrix_power": matrix_power_errors,
    "multi_dot": multi_dot_errors,
    "trace": trace_errors,
    "tensordot": tensordot_errors,
    "einsum": einsum_errors,
    "cond": cond_errors,
    "vander": vander_errors,
}


# -- derivatives of what is unique ----------------------------------------------------------------


def eigh_up_to_sign(fn, *args, **kwargs):
    """Return eigenvectors times their first element, which the choice of sign does not change."""
    values, vectors = fn(*args, **kwargs)
    return values, vectors * vectors[..., :1, :]


def svd_up_to_sign(fn, *args, **kwargs):
    u, s, vh = fn(*args, **kwargs)
    k = s.shape[-1]
    thin, rest, first = u[..., :k], u[..., k:], u[..., :1, :k]
    thin_vh, rest_vh = vh[..., :k, :], vh[..., k:, :]
    # Of the vectors beyond, only the space they span is determined.
    return thin * first, s, thin_vh * first.mT, rest @ rest.mT, rest_vh.mT @ rest_vh


def qr_up_to_sign(fn, *args, **kwargs):
    q, r = fn(*args, **kwargs)
    first = q[..., :1, :]
    return q * first, r * first.mT


GRAD_CALLS = {"eigh": eigh_up_to_sign, "svd": svd_up_to_sign, "qr": qr_up_to_sign}
