"""`tf.linalg`: linear algebra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import linalg as weft_linalg
from ..core.op import F
from ..faces.absent import absent_names
from .array_ops import matrix_transpose as matrix_transpose
from .math_ops import einsum as einsum
from .math_ops import matmul as matmul
from .math_ops import tensordot as tensordot
from .matrices import diag as diag
from .matrices import diag_part as diag_part
from .matrices import eye as eye
from .recording import Tensor, pair, record
from .reductions import norm as norm

transpose, tensor_diag = matrix_transpose, diag


def _one(public: str, type: str, compute: Callable[[Any], Any]) -> Callable[..., Tensor]:
    def called(input: Any, name: str | None = None) -> Tensor:
        made: Tensor = record(type, compute, [input], name=name)
        return made

    called.__name__ = called.__qualname__ = public
    called.__doc__ = f"Return {public} of matrices."
    return called


det = _one("det", "MatrixDeterminant", weft_linalg.det)
cholesky = _one("cholesky", "Cholesky", weft_linalg.cholesky)
trace = _one("trace", "Trace", F.trace)
logdet = _one("logdet", "LogDet", weft_linalg.logdet)
expm = _one("expm", "MatrixExponential", weft_linalg.expm)


def inv(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Return the inverse of matrices."""
    made: Tensor = record(
        "MatrixInverse",
        lambda x: weft_linalg.inv(F.matrix_transpose(x) if adjoint else x),
        [input],
        name=name,
    )
    return made


def solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Return x with matrix x = rhs."""

    def compute(a: Any, b: Any) -> Any:
        return weft_linalg.solve(F.matrix_transpose(a) if adjoint else a, b)

    made: Tensor = record("MatrixSolve", compute, pair("MatrixSolve", matrix, rhs), name=name)
    return made


def triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Return x with matrix x = rhs for a triangular matrix."""

    def compute(a: Any, b: Any) -> Any:
        turned = F.matrix_transpose(a) if adjoint else a
        return weft_linalg.solve_triangular(turned, b, upper=lower == adjoint)

    made: Tensor = record(
        "MatrixTriangularSolve", compute, pair("MatrixTriangularSolve", matrix, rhs), name=name
    )
    return made


def svd(
    tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None
) -> Any:
    """Return the singular values s, u and v with tensor = u diag(s) v^T."""
    if not compute_uv:
        return record("Svd", weft_linalg.svdvals, [tensor], name=name)

    def compute(x: Any) -> Any:
        u, s, vt = weft_linalg.svd(x, full_matrices=full_matrices)
        return s, u, F.matrix_transpose(vt)

    return tuple(record("Svd", compute, [tensor], outputs=3, name=name))


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> Any:
    """Return an orthogonal and a triangular matrix whose product is the input."""
    return tuple(record("Qr", lambda x: tuple(weft_linalg.qr(x)), [input], outputs=2, name=name))


def self_adjoint_eig(tensor: Any, name: str | None = None) -> Any:
    """Return the eigenvalues and eigenvectors of symmetric matrices."""
    return tuple(
        record(
            "SelfAdjointEig", lambda x: tuple(weft_linalg.eigh(x)), [tensor], outputs=2, name=name
        )
    )


eigh = self_adjoint_eig


def lstsq(
    matrix: Any, rhs: Any, l2_regularizer: float = 0.0, fast: bool = True, name: str | None = None
) -> Tensor:
    """Return x that comes nearest to matrix x = rhs."""

    def compute(a: Any, b: Any) -> Any:
        at = F.matrix_transpose(a)
        gram = F.matmul(at, a)
        ridge = F.diag_embed(F.ones_like(gram[..., 0])) * l2_regularizer
        return weft_linalg.solve(gram + ridge, F.matmul(at, b))

    made: Tensor = record("MatrixSolveLs", compute, pair("MatrixSolveLs", matrix, rhs), name=name)
    return made


_REASONS = {
    "LinearOperatorFullMatrix": "use the matrix itself",
    "set_diag": "use tf.where with tf.eye",
}
__getattr__ = absent_names(globals(), _REASONS)
