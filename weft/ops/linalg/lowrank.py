"""Approximate decompositions of low rank by random projections (Halko et al. 2009)."""

from __future__ import annotations

from typing import Any

from ...core.errors import ArgumentError
from ...core.op import F, composite
from ...core.rng import Generator
from ...core.shape import as_int
from .._halves import rounded_once
from .._operands import names_errors
from ..random.draw import randn
from ._matrices import check_matrix, operand, transposed


@composite()
@names_errors
@rounded_once
def svd_lowrank(
    x: Any, q: int = 6, niter: int = 2, M: Any = None, *, generator: Generator | None = None
) -> tuple[Any, Any, Any]:
    """Return U, S and V with x - M close to U @ diag(S) @ V.T, of rank q at most.

    q       how many singular values; a little more than the true rank
    niter   how often the random projection is improved (Halko et al., algorithm 4.4)

    Shapes: (..., m, n) -> (..., m, q), (..., q) and (..., n, q).
    """
    x = operand(x)
    check_matrix(x)
    x = x if M is None else x - operand(M)
    rank, rounds = as_int(q, "q"), as_int(niter, "niter")
    m, n = x.shape[-2:]
    if not 0 <= rank <= min(m, n) or rounds < 0:
        raise ArgumentError(
            f"q must be from 0 to {min(m, n)}, and niter not negative. Received: {rank}, {rounds}"
        )
    if m < n:
        u, s, vh = _projected(transposed(x), rank, rounds, generator)
        return transposed(vh), s, u
    u, s, vh = _projected(x, rank, rounds, generator)
    return u, s, transposed(vh)


@composite()
@names_errors
@rounded_once
def pca_lowrank(
    x: Any,
    q: int | None = None,
    center: bool = True,
    niter: int = 2,
    *,
    generator: Generator | None = None,
) -> tuple[Any, Any, Any]:
    """Return U, S and V of `svd_lowrank` for rows from which their mean is taken (`center`)."""
    x = operand(x)
    check_matrix(x)
    rank = min(6, *x.shape[-2:]) if q is None else q
    mean = F.mean(x, -2, True) if center else None
    return svd_lowrank(x, rank, niter, mean, generator=generator)


def _projected(x: Any, rank: int, rounds: int, generator: Any) -> tuple[Any, Any, Any]:
    start = randn(x.shape[-1], rank, dtype=x.dtype, generator=generator)
    basis = F.qr(F.matmul(x, start))[0]
    for _ in range(rounds):
        basis = F.qr(F.matmul(transposed(x), basis))[0]
        basis = F.qr(F.matmul(x, basis))[0]
    u, s, vh = F.svd(F.matmul(transposed(basis), x), False)
    return F.matmul(basis, u), s, vh
