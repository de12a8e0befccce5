"""torch.linalg: linear algebra, with PyTorch's signatures and results."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtype as dt
from ..core import tensor as core
from ..core.modes import no_grad
from ..core.op import F
from . import return_types
from .absent import absent
from .adoption import adopt
from .calls import face_function, write_out
from .deferred import weft_function
from .functions.table import functions_named
from .functions.without_dims import axis_of
from .names import names


class _LinAlgError(RuntimeError):
    """A matrix lacks the property that a function needs."""


LinAlgError = _LinAlgError

_SAME = names("""
    cholesky_ex cross det eigvalsh householder_product inv inv_ex ldl_factor
    ldl_factor_ex ldl_solve lu lu_factor lu_factor_ex lu_solve matmul matrix_exp
    matrix_power matrix_rank pinv solve_ex svdvals tensorinv tensorsolve
    vander vecdot cond solve
""")


def _function(name: str) -> Any:
    found = weft_function(name, "linalg")
    assert found is not None, name
    return found


def _given(found: Any, out: Any) -> Any:
    return found if out is None else write_out(found, out)


def cholesky(A: Any, *, upper: bool = False, out: Any = None) -> Any:
    """Return the Cholesky factor of a positive definite matrix: lower, or upper."""
    lower = _function("cholesky")(A)
    return _given(adopt(F.matrix_transpose(lower) if upper else lower), out)


def eigh(A: Any, UPLO: str = "L", *, out: Any = None) -> Any:
    """Return eigenvalues and eigenvectors of a symmetric matrix, of which one half is read."""
    values, vectors = _function("eigh")(A, UPLO=UPLO)
    return _given(return_types.eigh(adopt(values), adopt(vectors)), out)


def eigvalsh(A: Any, UPLO: str = "L", *, out: Any = None) -> Any:
    """Return the eigenvalues of a symmetric matrix, of which one half is read."""
    return _given(adopt(_function("eigvalsh")(A, UPLO=UPLO)), out)


def svd(
    A: Any,
    full_matrices: bool = True,
    *,
    driver: Any = None,
    out: Any = None,
) -> Any:
    """Return U, the singular values, and V transposed."""
    parts = _function("svd")(A, full_matrices=full_matrices)
    return _given(return_types.svd(*map(adopt, parts)), out)


def qr(A: Any, mode: str = "reduced", *, out: Any = None) -> Any:
    """Return an orthogonal and an upper triangular factor."""
    if mode == "r":
        factor = _function("qr")(A)[1]
        return return_types.qr(adopt(F.zeros((0,), dtype=A.dtype)), adopt(factor))
    parts = _function("qr")(A, mode=mode)
    return _given(return_types.qr(*map(adopt, parts)), out)


def slogdet(A: Any, *, out: Any = None) -> Any:
    """Return the sign of a determinant, and the logarithm of its magnitude."""
    return _given(return_types.slogdet(*map(adopt, _function("slogdet")(A))), out)


def lstsq(A: Any, B: Any, rcond: Any = None, *, driver: Any = None) -> Any:
    """Return the solution of least squares, residuals, rank and singular values."""
    solution, residuals, rank, _ = map(adopt, _function("lstsq")(A, B, rcond))
    rows, columns = A.shape[-2:]
    full = rows > columns and driver != "gelsy"
    empty = adopt(core.wrap(np.zeros(0, A.dtype)))
    none = adopt(core.wrap(np.zeros(0, np.int64)))
    known = rank if driver in (None, "gelsy", "gelsd", "gelss") else none
    values = adopt(F.svdvals(F.stop_gradient(A))) if driver in ("gelsd", "gelss") else empty
    return return_types.lstsq(solution, residuals if full else empty, known, values)


def matrix_power(A: Any, n: int, *, out: Any = None) -> Any:
    """Return a power of square matrices; gradients, of zero, exist for the power 0 too."""
    found = _function("matrix_power")(A, n)
    return _given(adopt(found + A * 0 if n == 0 and A.requires_grad else found), out)


def householder_product(A: Any, tau: Any, *, out: Any = None) -> Any:
    """Return the product of reflectors; gradients, of zero, exist where there is none too."""
    found = _function("householder_product")(A, tau)
    none = A.requires_grad and not tau.shape[-1]
    return _given(adopt(found + A * 0 if none else found), out)


def solve_ex(
    A: Any, B: Any, *, left: bool = True, check_errors: bool = False, out: Any = None
) -> Any:
    """Return the solution of a linear system, and where it has none."""
    if not _are_vectors(A, B):
        return adopt(_function("solve_ex")(A, B, left=left, check_errors=check_errors))
    found = _function("solve_ex")(A, F.unsqueeze(B, -1), check_errors=check_errors)
    return type(found)(adopt(F.squeeze(found[0], -1)), adopt(found[1]))


def _are_vectors(A: Any, B: Any) -> bool:
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(A.shape[:-1]) == tuple(B.shape))


def _symmetric(name: str) -> Any:
    """Return a function of symmetric matrices, which are Hermitian as well."""

    def factor(*args: Any, hermitian: bool = False, **options: Any) -> Any:
        return adopt(_function(name)(*args, **options))

    factor.__name__ = name
    return factor


def _tolerance(x: Any, atol: Any, rtol: Any) -> Any:
    """Return the singular values below which they count as zero, of each matrix."""
    values = F.svdvals(x)
    largest = F.max(values, -1) if values.shape[-1] else F.sum(values, -1)
    if rtol is None:
        given = atol is not None and bool(np.any(np.asarray(atol) > 0))
        rtol = 0.0 if given else max(x.shape[-2:]) * float(dt.float_limits(x.dtype).eps)
    return F.maximum(largest * rtol, F.zeros_like(largest) + (0.0 if atol is None else atol))


def matrix_rank(
    A: Any,
    tol: Any = None,
    *,
    atol: Any = None,
    rtol: Any = None,
    hermitian: bool = False,
    out: Any = None,
) -> Any:
    """Return the number of singular values that count."""
    A = _lower_mirrored(A) if hermitian else A
    with no_grad():
        least = F.unsqueeze(_tolerance(A, tol if atol is None else atol, rtol), -1)
        found = F.sum(F.cast(F.greater(F.svdvals(A), least), dt.int64), -1)
    return _given(adopt(found), out)


def pinv(
    A: Any,
    rcond: Any = None,
    *,
    atol: Any = None,
    rtol: Any = None,
    hermitian: bool = False,
    out: Any = None,
) -> Any:
    """Return the pseudo-inverse: small singular values count as zero."""
    A = _lower_mirrored(A) if hermitian else A
    relative = rcond if rtol is None else rtol
    if isinstance(relative, core.Tensor):
        relative = float(relative.item()) if relative.numel() == 1 else relative
    if atol is None and not isinstance(relative, core.Tensor):
        return _given(adopt(_function("pinv")(A, rtol=relative)), out)
    u, s, vh = _function("svd")(A, full_matrices=False)
    least = F.unsqueeze(_tolerance(A, atol, relative), -1)
    counts = F.greater(s, least)
    inverse = F.where(counts, 1 / F.where(counts, s, F.ones_like(s)), F.zeros_like(s))
    scaled = F.matrix_transpose(vh) * F.unsqueeze(inverse, -2)
    return _given(adopt(F.matmul(scaled, F.matrix_transpose(u))), out)


def _lower_mirrored(A: Any) -> Any:
    """Return symmetric matrices by their lower triangles, which alone are read of such."""
    return F.tril(A) + F.matrix_transpose(F.tril(A, -1))


def vander(x: Any, *, N: int | None = None) -> Any:
    """Return powers of the elements of vectors, as rows; one element is a vector too."""
    rows = x if x.ndim else F.reshape(x, (1,))
    return adopt(_function("vander")(rows, N=N))


def solve(A: Any, B: Any, *, left: bool = True, out: Any = None) -> Any:
    """Return the solution of a linear system, of vectors or of matrices."""
    if _are_vectors(A, B):
        found = F.squeeze(_function("solve")(A, F.unsqueeze(B, -1)), -1)
    elif left:
        found = _function("solve")(A, B)
    else:
        turned = _function("solve")(F.matrix_transpose(A), F.matrix_transpose(B))
        found = F.matrix_transpose(turned)
    return _given(adopt(found), out)


def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Return a view of a diagonal of the last two dimensions."""
    from .view_functions import diagonal as view  # noqa: PLC0415  (which stands above)

    return view(A, offset, dim1, dim2)


def solve_triangular(
    A: Any,
    B: Any,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
    out: Any = None,
) -> Any:
    """Return the solution of a triangular system."""
    solve_one = _function("solve_triangular")
    if left:
        found = solve_one(A, B, upper=upper, unitriangular=unitriangular)
    else:
        turned = [F.matrix_transpose(v) for v in (A, B)]
        found = F.matrix_transpose(solve_one(*turned, upper=not upper, unitriangular=unitriangular))
    return _given(adopt(found), out)


def vector_norm(
    x: Any,
    ord: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
) -> Any:
    """Return the norm of vectors: of all elements, or along dimensions."""
    x = x if dtype is None else F.cast(x, dt.as_dtype(dtype))
    axis = axis_of(x, dim)
    order = ord.item() if isinstance(ord, core.Tensor) else ord
    return _given(adopt(_function("vector_norm")(x, order, axis, keepdim)), out)


def matrix_norm(
    A: Any,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
) -> Any:
    """Return the norm of matrices."""
    return _given(adopt(_function("matrix_norm")(A, ord, tuple(dim), keepdim, dtype=dtype)), out)


def norm(
    input: Any,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    out: Any = None,
    dtype: Any = None,
) -> Any:
    """Return the norm of vectors or of matrices, as `ord` and `dim` say."""
    axes = (dim,) if isinstance(dim, int) else dim
    if ord is None or (axes is not None and len(axes) == 1 and not isinstance(ord, str)):
        return vector_norm(input, 2 if ord is None else ord, dim, keepdim, dtype=dtype, out=out)
    if axes is None and input.ndim == 1 and not isinstance(ord, str):
        return vector_norm(input, ord, None, keepdim, dtype=dtype, out=out)
    return matrix_norm(
        input, ord, (-2, -1) if axes is None else axes, keepdim, dtype=dtype, out=out
    )


OWN = {
    "cholesky": cholesky,
    "eigh": eigh,
    "eigvalsh": eigvalsh,
    "svd": svd,
    "qr": qr,
    "slogdet": slogdet,
    "lstsq": lstsq,
    "diagonal": diagonal,
    "solve_triangular": solve_triangular,
    "vector_norm": vector_norm,
    "matrix_norm": matrix_norm,
    "norm": norm,
    "matrix_rank": matrix_rank,
    "pinv": pinv,
    "solve": solve,
    "vander": vander,
    "solve_ex": solve_ex,
    "matrix_power": matrix_power,
    "householder_product": householder_product,
    **{name: _symmetric(name) for name in names("ldl_factor ldl_factor_ex ldl_solve")},
}
FUNCTIONS: dict[str, Any] = {
    **functions_named(_SAME, "linalg"),
    **functions_named(["multi_dot"], "linalg", make=face_function),  # of a list
    **OWN,
}
globals().update(FUNCTIONS)


def _cholesky_top(input: Any, upper: bool = False, *, out: Any = None) -> Any:
    """Return the Cholesky factor of a positive definite matrix."""
    return cholesky(input, upper=upper, out=out)


def _cholesky_solve(B: Any, L: Any, upper: bool = False, *, out: Any = None) -> Any:
    """Return the solution of a system by the Cholesky factor of its matrix."""
    lower = F.matrix_transpose(L) if upper else L
    return _given(adopt(_function("cholesky_solve")(B, lower)), out)


def _svd_top(input: Any, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """Return U, the singular values, and V (not transposed)."""
    u, s, vh = svd(input, full_matrices=not some)
    return _given(return_types.old_svd(u, s, adopt(F.matrix_transpose(vh))), out)


def _qr_top(input: Any, some: bool = True, *, out: Any = None) -> Any:
    """Return an orthogonal and an upper triangular factor."""
    return qr(input, "reduced" if some else "complete", out=out)


def _triangular_solve(
    b: Any,
    A: Any,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: Any = None,
) -> Any:
    """Return the solution of a triangular system, and a copy of its matrix."""
    matrix = F.matrix_transpose(A) if transpose else A
    found = solve_triangular(matrix, b, upper=upper != transpose, unitriangular=unitriangular)
    return return_types.triangular_solve(found, adopt(F.positive(A)))


def _lu(A: Any, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """Return the factors of a matrix in one, and its pivots."""
    factors, pivots = map(adopt, _function("lu_factor")(A, pivot=pivot))
    if not get_infos:
        return _given((factors, pivots), out)
    infos = adopt(core.wrap(np.zeros(tuple(A.shape[:-2]), np.int32)))
    return _given((factors, pivots, infos), out)


def _lu_solve(b: Any, LU_data: Any, LU_pivots: Any, *, out: Any = None) -> Any:
    """Return the solution of a linear system by its factors."""
    return _given(adopt(_function("lu_solve")(LU_data, LU_pivots, b)), out)


def _pinverse(input: Any, rcond: float = 1e-15) -> Any:
    """Return the pseudo-inverse of a matrix."""
    return adopt(_function("pinv")(input, rtol=rcond))


def _inverse(input: Any, *, out: Any = None) -> Any:
    """Return the inverse of a matrix."""
    return _given(adopt(_function("inv")(input)), out)


def _logdet(input: Any) -> Any:
    """Return the logarithm of the determinant."""
    return adopt(_function("logdet")(input))


# Those that are functions of torch itself, in part with other arguments.
TOP: dict[str, Any] = {
    **functions_named(
        names("cholesky_inverse geqrf ormqr lu lu_solve lu_unpack pca_lowrank svd_lowrank"),
        "linalg",
    ),
    "householder_product": householder_product,
    "lu": _lu,
    "lu_solve": _lu_solve,
    "cholesky": _cholesky_top,
    "cholesky_solve": _cholesky_solve,
    "svd": _svd_top,
    "qr": _qr_top,
    "triangular_solve": _triangular_solve,
    "pinverse": _pinverse,
    "inverse": _inverse,
    "logdet": _logdet,
    "det": FUNCTIONS["det"],
    "slogdet": slogdet,
    "matrix_exp": FUNCTIONS["matrix_exp"],
    "matrix_power": FUNCTIONS["matrix_power"],
    "chain_matmul": face_function(lambda *ms: _function("multi_dot")(ms), "chain_matmul"),
}
_COMPLEX = "complex numbers are not served; of symmetric matrices there is eigh"
__getattr__ = absent(globals(), {"eig": _COMPLEX, "eigvals": _COMPLEX})
