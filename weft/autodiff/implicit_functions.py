"""Implicit differentiation: the derivative of a solution, whatever found it.

If F(x, a) = 0 defines x as a function of a, then A dx = -B da with A = dF/dx and B = dF/da at the
solution. So a derivative takes one linear solve, and nothing of the iterations is kept. The solve
is itself the root of a linear equation and differentiated in the same way, to any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np

from ..core.errors import ArgumentTypeError
from ..core.op import F
from ..core.shape import size_of
from ..core.tensor import Tensor, constant
from ..core.tree import flatten
from ..graph.control.loop import while_loop
from .arguments import as_value, check_callable, name_of
from .forward import jvp
from .function import Function
from .krylov import Limits, LinearSolver, as_linear_solver
from .matching import require_type
from .pullback import differentiable, or_zeros, pull_back_of

Leaves = Sequence[Any]
Residual = Callable[[Leaves, Leaves], list[Any]]


def implicit(
    fn: Callable[..., Any],
    solver: Callable[..., Any] | None = None,
    *,
    root: bool = False,
    solve: Any = "gmres",
    tol: float = 1e-10,
    maxiter: int = 1000,
) -> Callable[..., Any]:
    """Return the function solution(init, *args), differentiable in args without the iterations.

    fn        fn(x, *args), of which the solution is the fixed point x = fn(x, *args); with `root`,
              the root fn(x, *args) = 0. x is any tree of floats
    solver    solver(init, *args) -> x, any program that finds it; by default fixed-point iteration,
              or Newton's method for a root
    solve     how to solve the linear equation of the derivative: "gmres", "cg" for a symmetric
              positive definite derivative, "neumann" for a contraction, or a function
              solve(matvec, b, limits) of vectors
    tol, maxiter   when iterations stop, relative to the size of the right-hand side (of the
              solution, for the default solvers)

    The solution does not depend on init, and tensors that fn uses from outside are constants: pass
    as args what is to be differentiated.

    >>> import weft as wf
    >>> sqrt = wf.autodiff.implicit(lambda x, a: 0.5 * (x + a / x))
    >>> a = wf.tensor(4.0)
    >>> sqrt(wf.tensor(1.0), a), wf.grad(lambda a: sqrt(wf.tensor(1.0), a))(a)
    (tensor(2.), tensor(0.25))
    """
    check_callable(fn, "implicit")
    linear = as_linear_solver(solve)
    limits = Limits(tol, maxiter)
    if solver is None:
        solver = _newton(fn, linear, limits) if root else _iteration(fn, limits)
    check_callable(solver, "implicit: solver")

    def solution(init: Any, *args: Any) -> Any:
        return _ImplicitCall(fn, solver, root, linear, limits).run(init, args)

    return update_wrapper(solution, fn, updated=())


class _ImplicitCall:
    """One call of an implicit function, with its trees."""

    def __init__(
        self, fn: Any, solver: Any, root: bool, linear: LinearSolver, limits: Limits
    ) -> None:
        self.fn, self.solver, self.root = fn, solver, root
        self.linear, self.limits = linear, limits
        self.name = f"implicit {name_of(fn)}"

    def run(self, init: Any, args: tuple[Any, ...]) -> Any:
        """Return the solution."""
        leaves, self.structure = flatten(args)
        starts, self.unknown = flatten(init)
        self.starts = [as_value(x, f"{self.name}: init") for x in starts]
        values = [as_value(x, f"{self.name}: an argument") for x in leaves]
        equation = Equation(self.residual, self.solved, self.linear, self.limits)
        return self.unknown.unflatten(_Root.apply(equation, *values))

    def solved(self, parameters: Leaves) -> list[Any]:
        """Run the solver."""
        init = self.unknown.unflatten(x.detach() for x in self.starts)
        found = self.solver(init, *self.structure.unflatten(parameters))
        return self._leaves(found, "the solver's result")

    def residual(self, xs: Leaves, parameters: Leaves) -> list[Any]:
        """Return what is zero at the solution."""
        args = self.structure.unflatten(parameters)
        values = self._leaves(self.fn(self.unknown.unflatten(xs), *args), "fn's result")
        return values if self.root else [x - y for y, x in zip(values, xs, strict=True)]

    def _leaves(self, tree: Any, what: str) -> list[Any]:
        leaves = self.unknown.flatten_like(tree, f"{self.name}: {what}")
        for leaf, start in zip(leaves, self.starts, strict=True):
            if not isinstance(leaf, Tensor):
                raise ArgumentTypeError(
                    f"{self.name}: {what} must hold tensors. Received: {type(leaf).__name__}"
                )
            require_type(leaf, start, f"{self.name}: {what}", "init")
        return leaves


class Equation:
    """An equation residual(xs, parameters) = 0 and a way to solve it."""

    def __init__(
        self,
        residual: Residual,
        solved: Callable[[Leaves], list[Any]],
        linear: LinearSolver,
        limits: Limits,
    ) -> None:
        self.residual, self.solved = residual, solved
        self.linear, self.limits = linear, limits

    def tangent(self, xs: list[Any], parameters: list[Any], tangents: Leaves) -> list[Any]:
        """Return how the solution changes with the parameters: A dx = -B da."""
        moved = jvp(lambda *ps: self.residual(xs, ps), parameters, tangents)[1]
        return self._linear(xs, parameters, [-t for t in moved], transposed=False)

    def gradients(self, xs: list[Any], parameters: list[Any], gs: Leaves) -> list[Any]:
        """Return the gradients of the parameters: -B^T u with A^T u = g."""
        us = self._linear(xs, parameters, gs, transposed=True)
        _, pull, _ = pull_back_of(lambda ps: self.residual(xs, ps), parameters)
        return pull([-u for u in us])

    def _linear(
        self, xs: list[Any], parameters: list[Any], b: Leaves, *, transposed: bool
    ) -> list[Any]:
        """Solve the equation of the derivative, as an equation that has derivatives too."""
        n, m = len(xs), len(parameters)

        def product(vs: Leaves, given: Leaves) -> list[Any]:
            points, ps = list(given[:n]), given[n : n + m]
            if not transposed:
                return list(jvp(lambda *x: self.residual(x, ps), points, list(vs))[1])
            _, pull, _ = pull_back_of(lambda x: self.residual(x, ps), points)
            return list(map(or_zeros, pull(vs), points))

        def residual(vs: Leaves, given: Leaves) -> list[Any]:
            return [y - z for y, z in zip(product(vs, given), given[n + m :], strict=True)]

        def solved(given: Leaves) -> list[Any]:
            pack = _Packing(given[n + m :])
            found = self.linear(
                lambda v: pack.joined(product(pack.parts(v), given)),
                pack.joined(given[n + m :]),
                self.limits,
            )
            return pack.parts(found)

        equation = Equation(residual, solved, self.linear, self.limits)
        return list(_Root.apply(equation, *xs, *parameters, *b))


class _Packing:
    """Several tensors as one vector, and back."""

    def __init__(self, like: Leaves) -> None:
        self.shapes = [x.shape for x in like]

    def joined(self, leaves: Leaves) -> Tensor:
        """Return all elements in one vector."""
        vector: Tensor = F.concat([x.reshape((-1,)) for x in leaves])
        return vector

    def parts(self, vector: Tensor) -> list[Any]:
        """Return the tensors that a vector holds."""
        pieces = F.split(vector, tuple(map(size_of, self.shapes)))
        return [part.reshape(shape) for part, shape in zip(pieces, self.shapes, strict=True)]


class _Root(Function):
    """The solution of an equation as a function of its parameters."""

    @staticmethod
    def forward(ctx: Any, equation: Equation, *parameters: Any) -> tuple[Any, ...]:
        """Solve the equation; keep parameters and solution."""
        xs = equation.solved(parameters)
        ctx.equation, ctx.count = equation, len(parameters)
        ctx.save_for_backward(*parameters, *xs)
        return tuple(xs)

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> tuple[Any, ...]:
        """Solve the transposed equation of the derivative."""
        parameters, xs = _saved(ctx)
        grads = ctx.equation.gradients(xs, parameters, gs)
        return (None, *grads)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> tuple[Any, ...]:
        """Solve the equation of the derivative."""
        parameters, xs = _saved(ctx)
        given = [
            t if differentiable(x) else None for x, t in zip(parameters, tangents, strict=True)
        ]
        return tuple(ctx.equation.tangent(xs, parameters, given))


def _saved(ctx: Any) -> tuple[list[Any], list[Any]]:
    saved = list(ctx.saved_tensors)
    return saved[: ctx.count], saved[ctx.count :]


# -- solvers for those who bring none --------------------------------------------------------------


def _iteration(fn: Callable[..., Any], limits: Limits) -> Callable[..., Any]:
    """Return the solver that repeats x = fn(x, *args) until x stays where it is."""

    def solver(init: Any, *args: Any) -> Any:
        return _until_still(lambda x: fn(x, *args), init, limits)

    return solver


def _newton(fn: Callable[..., Any], linear: LinearSolver, limits: Limits) -> Callable[..., Any]:
    """Return Newton's method for fn(x, *args) = 0, by products with the Jacobian only."""

    def solver(init: Any, *args: Any) -> Any:
        leaves, structure = flatten(init)
        pack = _Packing(leaves)

        def flat(v: Tensor) -> Tensor:
            value = fn(structure.unflatten(pack.parts(v)), *args)
            return pack.joined(structure.flatten_like(value, "fn's result"))

        def step(v: Tensor) -> Tensor:
            return v - linear(lambda t: jvp(flat, (v,), (t,))[1], flat(v), limits)

        return structure.unflatten(pack.parts(_until_still(step, pack.joined(leaves), limits)))

    return solver


def _until_still(step: Callable[[Any], Any], init: Any, limits: Limits) -> Any:
    def going(state: tuple[Any, ...]) -> Any:
        _, moved, size, count = state
        return (moved > size * limits.tol**2) & (count < limits.maxiter)

    def advance(state: tuple[Any, ...]) -> tuple[Any, ...]:
        x, _, _, count = state
        after = step(x)
        before, structure = flatten(x)
        leaves = structure.flatten_like(after, "fn's result")
        moved = sum(F.sum((a - b) ** 2) for a, b in zip(leaves, before, strict=True))
        return after, moved, sum(F.sum(a * a) for a in leaves), count + 1

    dtype = flatten(init)[0][0].dtype
    start = (init, constant(np.array(np.inf, dtype)), constant(np.array(1, dtype)))
    return while_loop(going, advance, (*start, constant(np.array(0))))[0]
