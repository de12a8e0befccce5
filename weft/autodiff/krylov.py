"""Linear equations A x = b where only products with A are known: CG, GMRES, Neumann series.

Vectors are trees flattened into one tensor. The loops are `while_loop`s, so that the solvers run
eagerly, in graphs and on batches alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..core.dtype import float_limits
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.op import F
from ..core.tensor import Tensor, constant
from ..graph.control.loop import while_loop

MatVec = Callable[[Tensor], Tensor]
LinearSolver = Callable[..., Tensor]


class Limits(NamedTuple):
    """When to stop: at a residual of tol * |b|, or after so many products with A."""

    tol: float = 1e-10
    maxiter: int = 1000


def conjugate_gradients(matvec: MatVec, b: Tensor, limits: Limits) -> Tensor:
    """Solve A x = b for a symmetric positive definite A (Hestenes and Stiefel, 1952)."""
    target = _target(b, limits)

    def going(state: tuple[Any, ...]) -> Any:
        _, _, _, squared, count = state
        return (squared > target) & (count < limits.maxiter)

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        x, r, p, squared, count = state
        product = matvec(p)
        alpha = squared / F.sum(p * product)
        r = r - alpha * product
        after = F.sum(r * r)
        return x + alpha * p, r, r + (after / squared) * p, after, count + 1

    start = (F.zeros_like(b), b, b, F.sum(b * b), constant(np.array(0)))
    found: Tensor = while_loop(going, step, start)[0]
    return found


def neumann(matvec: MatVec, b: Tensor, limits: Limits) -> Tensor:
    """Solve A x = b by the series of (I - A)^k b, for an A close to the identity."""
    target = _target(b, limits)

    def going(state: tuple[Any, ...]) -> Any:
        _, term, count = state
        return (F.sum(term * term) > target) & (count < limits.maxiter)

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        x, term, count = state
        return x + term, term - matvec(term), count + 1

    found: Tensor = while_loop(going, step, (F.zeros_like(b), b, constant(np.array(0))))[0]
    return found


RESTART = 30  # the dimension of the Krylov space at which GMRES starts again


def gmres(matvec: MatVec, b: Tensor, limits: Limits) -> Tensor:
    """Solve A x = b for any invertible A by minimal residuals (Saad and Schultz, 1986)."""
    target = _target(b, limits)
    size = min(RESTART, b.shape[0]) if isinstance(b.shape[0], int) else RESTART

    def going(state: tuple[Any, ...]) -> Any:
        _, r, count = state
        return (F.sum(r * r) > target) & (count < limits.maxiter)

    def cycle(state: tuple[Any, ...]) -> tuple[Any, ...]:
        x, r, count = state
        x = x + _best_in_krylov_space(matvec, r, size)
        return x, b - matvec(x), count + size

    found: Tensor = while_loop(going, cycle, (F.zeros_like(b), b, constant(np.array(0))))[0]
    return found


def _best_in_krylov_space(matvec: MatVec, r: Tensor, size: int) -> Tensor:
    """Return the x in span(r, A r, ...) of least |r - A x|, by Arnoldi's process."""
    length = F.sqrt(F.sum(r * r))
    first = _unit(0, size + 1, r)
    rows = F.outer(first, r / length)
    tiny = float(float_limits(r.dtype).eps) ** 2

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        rows, hessenberg, k = state
        here = (constant(np.arange(size + 1)) == k).to(r.dtype)
        w = matvec(here @ rows)
        h = rows @ w
        w = w - h @ rows
        again = rows @ w  # what rounding left of the known directions
        w = w - again @ rows
        squared = F.sum(w * w)
        ended = squared <= tiny * F.sum((h + again) ** 2)
        norm = F.where(ended, 0.0, F.sqrt(squared))
        after = (constant(np.arange(size + 1)) == k + 1).to(r.dtype)
        rows = rows + F.outer(after, F.where(ended, 0.0, w / F.where(ended, 1.0, norm)))
        column = h + again + norm * after
        return rows, hessenberg + F.outer(column, here[:size]), k + 1

    start = (rows, F.outer(first, first[:size]) * 0.0, constant(np.array(0)))
    rows, hessenberg, _ = while_loop(lambda state: state[2] < size, step, start)
    best: Tensor = (F.pinv(hessenberg) @ (first * length)) @ rows[:size]
    return best


def _unit(i: int, size: int, like: Tensor) -> Tensor:
    return constant((np.arange(size) == i).astype(like.dtype))


def _target(b: Tensor, limits: Limits) -> Tensor:
    target: Tensor = F.sum(b * b) * limits.tol**2
    return target


_SOLVERS: dict[str, LinearSolver] = {
    "cg": conjugate_gradients,
    "gmres": gmres,
    "neumann": neumann,
}


def as_linear_solver(given: Any) -> LinearSolver:
    """Return a solver given by name, or as a function solve(matvec, b, limits)."""
    if isinstance(given, str):
        if given not in _SOLVERS:
            raise ArgumentError(
                f"implicit: solve must be one of {', '.join(_SOLVERS)}. Received: {given!r:.60}"
            )
        return _SOLVERS[given]
    if not callable(given):
        raise ArgumentTypeError(
            f"implicit: solve must be a name or a function. Received: {given!r:.60}"
        )
    solver: LinearSolver = given
    return solver
