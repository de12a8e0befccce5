"""Check derivatives against finite differences, in forward and reverse mode, to any order.

Differences are central and extrapolated once (Richardson), so their error is O(eps**4) and a
generous step of 1e-3 leaves about ten correct digits in float64. The same five values tell a kink
from a smooth point. The one-sided slopes disagree by D(h) = (f(h) - 2 f(0) + f(-h)) / h, which is
J + h f'' + O(h**3) where the slope jumps by J, so the jump is 2 D(h) - D(2h) = J + O(h**3).

A function of many outputs is projected on random weights u, so that one backward pass is compared
with the differences of <u, f>. Inputs with few elements are compared element by element, others
(and all at higher orders) along a random direction; after a disagreement the element is searched.
Outputs that are infinite or NaN have no derivative and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.dtype import Array, is_float
from ..core.errors import ArgumentError, ArgumentTypeError, GradientError
from ..core.modes import enable_grad, no_grad
from ..core.tensor import Tensor, make_leaf, wrap
from ..core.tree import flatten
from .forward import jvp
from .pullback import pull_back_of

FlatFunction = Callable[[list[Tensor]], list[Tensor]]

EXHAUSTIVE_SIZE = 64  # inputs up to this size are compared element by element at first order
JUMP_TOLERANCE = 1e-3  # relative jump of the slope above which a point is called a kink


def numeric_gradient(fn: Callable[..., Any], args: Sequence[Any], eps: float = 1e-3) -> list[Array]:
    """Return the gradients of the sum of fn's outputs by central differences.

    There is one for each floating-point tensor or array in `args`, in order.

    >>> import numpy as np
    >>> numeric_gradient(lambda x: x * x, [np.array([1.0, 3.0])])[0].round(6)
    array([2., 6.])
    """
    flat, primals = flat_function(fn, args)
    weights = [np.ones(y.shape) for y in _run(flat, primals)]
    differences = Differences(flat, primals, weights, eps)
    return [differences.of_elements(i)[0] for i in range(len(primals))]


numeric = numeric_gradient


def check_grads(
    fn: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"),
    *,
    rtol: float = 1e-5,
    atol: float = 1e-5,
    eps: float = 1e-3,
    seed: int = 0,
) -> None:
    """Raise GradientError unless the derivatives of `fn` at `args` agree with differences.

    `args` is the sequence of fn's arguments: floating-point tensors and arrays in it (also inside
    lists, tuples and dicts) are differentiated, in float64; all else is passed as it is.
    `modes` selects forward ("fwd") and reverse ("rev") mode; with both, <u, J v> = <J^T u, v> is
    checked too. Orders above one differentiate the gradient function again.

    >>> import numpy as np
    >>> check_grads(lambda x, y: x * y, [np.ones(3), np.ones(())], order=2, modes=("rev",))
    """
    _check_options(args, order, modes)
    flat, primals = flat_function(fn, args)
    checker = Checker(tuple(modes), rtol, atol, eps, np.random.default_rng(seed))
    checker.check(flat, primals, order, 1)


def _check_options(args: Any, order: int, modes: Sequence[str]) -> None:
    if not isinstance(args, (list, tuple)):
        raise ArgumentTypeError(
            "check_grads: args must be a list or tuple of arguments. "
            f"Received: {type(args).__name__}"
        )
    if order < 1:
        raise ArgumentError(f"check_grads: order must be at least 1. Received: {order!r}")
    unknown = [mode for mode in modes if mode not in ("fwd", "rev")]
    if unknown or isinstance(modes, str):
        raise ArgumentError(f'check_grads: modes must be among "fwd", "rev". Received: {modes!r}')


# -- functions of flat lists ---------------------------------------------------------------------


def flat_function(fn: Callable[..., Any], args: Sequence[Any]) -> tuple[FlatFunction, list[Array]]:
    """Return fn as a function of its differentiable leaves alone, and their values in float64."""
    leaves, structure = flatten(list(args))
    places = [i for i, leaf in enumerate(leaves) if _is_differentiable(leaf)]

    def flat(tensors: list[Tensor]) -> list[Tensor]:
        filled = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        outputs = flatten(fn(*structure.unflatten(filled)))[0]
        return [y for y in outputs if isinstance(y, Tensor) and is_float(y.dtype)]

    return flat, [np.array(leaves[i], np.float64) for i in places]


def _is_differentiable(leaf: Any) -> bool:
    return isinstance(leaf, (Tensor, np.ndarray)) and is_float(leaf.dtype)


def gradient_function(flat: FlatFunction, weights: list[Array]) -> FlatFunction:
    """Return the function from inputs to the gradients of <weights, flat>."""

    def gradient(tensors: list[Tensor]) -> list[Tensor]:
        with enable_grad():
            return _gradients(flat, tensors, weights)

    return gradient


def tangent_function(flat: FlatFunction, directions: list[Array]) -> FlatFunction:
    """Return the function from inputs to the derivative of flat along fixed directions."""

    def tangent(tensors: list[Tensor]) -> list[Tensor]:
        with enable_grad():
            return list(_push(flat, tensors, directions))

    return tangent


def _push(flat: FlatFunction, tensors: list[Tensor], directions: list[Array]) -> Sequence[Tensor]:
    _, found = jvp(lambda *xs: flat(list(xs)), tensors, [wrap(v) for v in directions])
    result: Sequence[Tensor] = found
    return result


def _gradients(flat: FlatFunction, xs: list[Tensor], weights: list[Array]) -> list[Tensor]:
    ys, pull, _ = pull_back_of(flat, xs)
    found = pull([wrap(np.asarray(u, y.dtype)) for u, y in zip(weights, ys, strict=True)])
    return [wrap(np.zeros(x.shape)) if g is None else g for g, x in zip(found, xs, strict=True)]


def _leaves(primals: Sequence[Array]) -> list[Tensor]:
    return [make_leaf(np.asarray(x), True, None) for x in primals]


def _run(flat: FlatFunction, primals: Sequence[Array]) -> list[Array]:
    """Return the outputs' values; a gradient function records what it needs by itself."""
    with no_grad(), np.errstate(all="ignore"):
        return [np.asarray(y.detach().numpy(), np.float64) for y in flat(_leaves(primals))]


# -- differences ---------------------------------------------------------------------------------


class Differences:
    """Extrapolated central differences of the outputs around the primals, and of <weights, f>."""

    def __init__(
        self, flat: FlatFunction, primals: list[Array], weights: list[Array], eps: float
    ) -> None:
        self.flat = flat
        self.primals = primals
        self.weights = weights
        self.eps = eps
        self.center = self._values({}, 0)

    def _values(self, directions: Mapping[int, Array], step: int) -> list[Array]:
        """Return the outputs some steps away."""
        primals = list(self.primals)
        for i, direction in directions.items():
            primals[i] = primals[i] + step * self.eps * direction
        return [_finite(y) for y in _run(self.flat, primals)]

    def of_outputs(self, directions: Mapping[int, Array]) -> list[tuple[Array, Array]]:
        """Return the slope of each output along directions of inputs, and its jump there."""
        h = self.eps
        steps = (self._values(directions, step) for step in (-2, -1, 1, 2))
        return [
            (
                (8 * (c - b) - (d - a)) / (12 * h),
                2 * (c - 2 * y + b) / h - (d - 2 * y + a) / (2 * h),
            )
            for y, a, b, c, d in zip(self.center, *steps, strict=True)
        ]

    def along(self, position: int, direction: Array) -> tuple[float, float]:
        """Return the slope of <weights, f> in one input along a direction, and its jump there."""
        found = self.of_outputs({position: direction})
        slopes, jumps = (slope for slope, _ in found), (jump for _, jump in found)
        return _dot(self.weights, slopes), _dot(self.weights, jumps)

    def of_elements(self, position: int) -> tuple[Array, Array]:
        """Return the slope and its jump for every element of one input."""
        x = self.primals[position]
        slopes, jumps = np.zeros(x.shape), np.zeros(x.shape)
        for index in np.ndindex(x.shape):
            direction = np.zeros(x.shape)
            direction[index] = 1.0
            slopes[index], jumps[index] = self.along(position, direction)
        return slopes, jumps


# -- comparison ----------------------------------------------------------------------------------


class Checker:
    """Compares derivatives with differences, order by order."""

    def __init__(
        self,
        modes: tuple[str, ...],
        rtol: float,
        atol: float,
        eps: float,
        rng: np.random.Generator,
    ) -> None:
        self.modes = modes
        self.rtol = rtol
        self.atol = atol
        self.eps = eps
        self.rng = rng

    def check(self, flat: FlatFunction, primals: list[Array], order: int, level: int) -> None:
        """Check first derivatives, then those of the derivative functions."""
        weights = self._output_weights(_run(flat, primals))
        directions = [self._weights(x.shape) for x in primals]
        if not weights or not primals:
            return
        pulled = pushed = None
        differences = Differences(flat, primals, weights, self.eps)
        if "rev" in self.modes:
            pulled = self._reverse(flat, primals, weights)
            for i, gradient in enumerate(pulled):
                self._compare_input(differences, i, gradient, level)
        if "fwd" in self.modes:
            pushed = self._forward(differences, directions, level)
        if pulled is not None and pushed is not None:
            self._compare_modes(_dot(weights, pushed), _dot(pulled, directions), level)
        if order > 1:
            for derivative in self._derivatives(flat, weights, directions):
                self.check(derivative, primals, order - 1, level + 1)

    def _derivatives(
        self, flat: FlatFunction, weights: list[Array], directions: list[Array]
    ) -> list[FlatFunction]:
        made = {
            "rev": gradient_function(flat, weights),
            "fwd": tangent_function(flat, directions),
        }
        return [made[mode] for mode in self.modes]

    def _output_weights(self, ys: list[Array]) -> list[Array]:
        """Return the weights of the outputs: one for a single number, so that errors show it."""
        if sum(y.size for y in ys) == 1:
            return [np.isfinite(y).astype(np.float64) for y in ys]
        return [np.asarray(self._weights(y.shape) * np.isfinite(y)) for y in ys]

    def _weights(self, shape: tuple[int, ...]) -> Array:
        """Return random weights that are never small: no output may hide behind its weight."""
        signs = np.where(self.rng.random(shape) < 0.5, -1.0, 1.0)
        return np.asarray(signs * self.rng.uniform(0.5, 1.5, shape))

    def _reverse(
        self, flat: FlatFunction, primals: list[Array], weights: list[Array]
    ) -> list[Array]:
        with enable_grad(), np.errstate(all="ignore"):
            found = _gradients(flat, _leaves(primals), weights)
        for i, (g, x) in enumerate(zip(found, primals, strict=True)):
            if g.shape != x.shape:
                raise GradientError(
                    f"check_grads: the gradient of input {i} has shape {g.shape}, "
                    f"the input {x.shape}"
                )
        return [np.asarray(g.detach().numpy(), np.float64) for g in found]

    def _forward(
        self, differences: Differences, directions: list[Array], level: int
    ) -> list[Array]:
        flat, primals = differences.flat, differences.primals
        with enable_grad(), np.errstate(all="ignore"):
            tangents = _push(flat, _leaves(primals), directions)
        found = [
            np.where(np.isfinite(y), t.numpy(), 0.0)
            for y, t in zip(_run(flat, primals), tangents, strict=True)
        ]
        expected = differences.of_outputs(dict(enumerate(directions)))
        for i, (t, (slope, _)) in enumerate(zip(found, expected, strict=True)):
            self._compare_tangent(i, t, slope, level)
        return found

    def _compare_tangent(self, position: int, found: Array, slope: Array, level: int) -> None:
        if found.shape != slope.shape:
            raise GradientError(
                f"check_grads: the tangent of output {position} (forward mode, order {level}) has "
                f"shape {found.shape}, the output {slope.shape}"
            )
        scale = float(np.abs(slope).max(initial=0.0))
        for index in np.ndindex(found.shape):
            if not self._close(float(found[index]), float(slope[index]), scale):
                raise GradientError(
                    f"check_grads: the tangent of output {position} at element {index} (forward "
                    f"mode, order {level}) is {found[index]:.9g}, but differences give "
                    f"{slope[index]:.9g}"
                )

    def _compare_modes(self, forward: float, reverse: float, level: int) -> None:
        if not self._close(forward, reverse, abs(forward) + abs(reverse)):
            raise GradientError(
                f"check_grads: forward and reverse mode disagree (order {level}): <u, J v> is "
                f"{forward:.9g}, <J^T u, v> is {reverse:.9g}"
            )

    def _compare_input(
        self, differences: Differences, position: int, gradient: Array, level: int
    ) -> None:
        if level == 1 and gradient.size <= EXHAUSTIVE_SIZE:
            self._compare_elements(differences, position, gradient, level)
            return
        direction = self._weights(gradient.shape)
        slope, jump = differences.along(position, direction)
        found = float(np.vdot(gradient, direction))
        # Along a direction all elements' errors add up, and so do their tolerances.
        scale = float(np.abs(gradient).sum()) + abs(slope)
        if self._is_kink(jump, slope) or not self._close(found, slope, scale):
            self._compare_elements(differences, position, gradient, level)
            raise GradientError(
                f"check_grads: the derivative of order {level} of input {position} along a random "
                f"direction is {found:.9g}, but differences give {slope:.9g}"
            )

    def _compare_elements(
        self, differences: Differences, position: int, gradient: Array, level: int
    ) -> None:
        slopes, jumps = differences.of_elements(position)
        for index in np.ndindex(gradient.shape):
            found, slope, jump = float(gradient[index]), float(slopes[index]), float(jumps[index])
            where = f"input {position} at element {index} (order {level}{self._note(differences)})"
            if self._is_kink(jump, slope):
                raise GradientError(
                    f"check_grads: the function is not differentiable in {where}: the slope jumps "
                    f"by {jump:.6g} around {slope:.6g}; move the input away from the kink"
                )
            if not self._close(found, slope, abs(slope)):
                raise GradientError(
                    f"check_grads: the gradient of {where} is {found:.9g}, but differences give "
                    f"{slope:.9g}"
                )

    def _note(self, differences: Differences) -> str:
        single = sum(u.size for u in differences.weights) == 1
        return "" if single else ", outputs summed with random weights"

    def _is_kink(self, jump: float, slope: float) -> bool:
        return not abs(jump) <= JUMP_TOLERANCE * max(1.0, abs(slope))

    def _close(self, found: float, expected: float, scale: float) -> bool:
        return abs(found - expected) <= self.atol + self.rtol * scale


def _finite(y: Array) -> Array:
    """Return the outputs that have a derivative, and zero for those that are infinite or NaN."""
    return np.where(np.isfinite(y), y, 0.0)


def _dot(a: Iterable[Array], b: Iterable[Array]) -> float:
    return sum(float(np.vdot(x, y)) for x, y in zip(a, b, strict=True))
