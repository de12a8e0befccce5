"""Linear algebra: products, systems of equations, factorisations.

Every operator takes stacks of matrices, (..., m, n), and works over the leading dimensions. 16-bit
floats are computed in float32. Imports core only.
"""

from . import (
    cholesky,
    determinant,
    eigh,
    einsum,
    expm,
    matmul,
    pinv,
    products,
    qr,
    solve,
    svd,
    tensors,
)

__all__ = [
    "cholesky",
    "determinant",
    "eigh",
    "einsum",
    "expm",
    "matmul",
    "pinv",
    "products",
    "qr",
    "solve",
    "svd",
    "tensors",
]
