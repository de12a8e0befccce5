"""Forward mode: run a function on dual numbers, each operation on a value and its derivative.

A dual number is a value p with a tangent t, standing for p + eps t with eps**2 = 0. Interpreters
nest. Each tags its duals with its level; the duals of other levels are constants to it and are
handled by the interpreter below, so perturbations never mix. Nothing is kept of an operation once
it is done: memory does not grow with the length of the computation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.dispatch import run
from ..core.dtype import is_float
from ..core.errors import ArgumentTypeError, DTypeError
from ..core.imports import deferred_imports
from ..core.modes import current_interpreter, current_tracer, run_below
from ..core.operands import tensor_from
from ..core.tensor import Tensor, constant
from ..core.tree import flatten
from .arguments import check_callable, name_of
from .constants import check_constants, reads_of_level
from .layered import Layered, Running, TransformLevel, make_layer
from .matching import array_of, require_type
from .pullback import or_zeros
from .pushforward import Pushforward


def jvp(fn: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Return fn(*primals) and its derivative along the tangents.

    `tangents` has the structure of `primals`; None stands for a zero tangent. The derivative has
    the structure of fn's result, with zeros where nothing depends on the primals and None at
    integer and boolean outputs.

    >>> import weft as wf
    >>> wf.jvp(lambda x: x * x, (wf.tensor(3.0),), (wf.tensor(1.0),))
    (tensor(9.), tensor(6.))
    """
    check_callable(fn, "jvp")
    values, structure = flatten(list(_as_sequence(primals, "primals")))
    directions = structure.flatten_like(list(_as_sequence(tangents, "tangents")), "tangents")
    if current_tracer() is not None:
        checked = [
            check_direction(*pair, i) for i, pair in enumerate(zip(values, directions, strict=True))
        ]
        with deferred_imports:
            from .static.forward import jvp_of_symbols  # noqa: PLC0415  (for graphs only)
        traced: tuple[Any, Any] = jvp_of_symbols(fn, checked, structure)
        return traced
    interpreter = DualInterpreter(current_interpreter())
    pairs = zip(values, directions, strict=True)
    duals = [interpreter.lift(x, t, i) for i, (x, t) in enumerate(pairs)]
    with Running(interpreter):
        with reads_of_level(interpreter.level) as reads:
            outputs, result = flatten(fn(*structure.unflatten(duals)))
        check_constants(outputs, reads, name_of(fn))
        split = [interpreter.split(y) for y in outputs]
        ties = [or_zeros(t, y) for y, t in split]
    return result.unflatten(y for y, _ in split), result.unflatten(ties)


def _as_sequence(value: Any, what: str) -> Sequence[Any]:
    if not isinstance(value, (list, tuple)):
        raise ArgumentTypeError(
            f"jvp: {what} must be a list or tuple with one entry per argument. "
            f"Received: {type(value).__name__}"
        )
    return value


class Dual(Layered):
    """A value with its derivative along a direction, at one level of forward mode."""

    __slots__ = ()

    @property
    def tangent(self) -> Tensor | None:
        """Return the derivative; None is zero."""
        tangent: Tensor | None = self.extra
        return tangent

    def __repr__(self) -> str:
        return f"dual({self.primal!r}, tangent={self.tangent!r})"


def make_dual(primal: Tensor, tangent: Tensor | None, level: TransformLevel) -> Tensor:
    """Return a dual number, or the value itself if its tangent is zero."""
    return primal if tangent is None else make_layer(Dual, primal, tangent, level)


class DualInterpreter:
    """Runs operations on dual numbers of one level by means of the interpreter below."""

    def __init__(self, below: Any) -> None:
        self.below = below
        self.level = TransformLevel()

    def lift(self, x: Any, tangent: Any, position: int) -> Any:
        """Return an argument with its tangent as a dual number."""
        primal, direction = check_direction(x, tangent, position)
        return primal if direction is None else make_dual(primal, direction, self.level)

    def split(self, x: Any) -> tuple[Any, Any]:
        """Return value and tangent at this level; the tangent of a constant is None."""
        if isinstance(x, Dual) and x.level is self.level:
            return x.primal, x.tangent
        return x, None

    def apply(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Run one operation on values and tangents."""
        level = self.level
        primals: list[Any] = []
        tangents: list[Any] = []
        moves = False
        for x in inputs:
            own = isinstance(x, Dual) and x.level is level
            moves = moves or own
            primals.append(x.primal if own else x)
            tangents.append(x.extra if own else None)
        if not moves:
            return run_below(self.below, run, op, inputs, attrs)
        return run_below(self.below, self._apply, op, tuple(primals), attrs, tuple(tangents))

    def _apply(
        self, op: Any, primals: tuple[Any, ...], attrs: tuple[Any, ...], tangents: tuple[Any, ...]
    ) -> Any:
        out = run(op, primals, attrs)
        found = Pushforward(op, primals, attrs, out).tangents(tangents)
        if not isinstance(out, tuple):
            return make_dual(out, found[0], self.level)
        return tuple(make_dual(y, t, self.level) for y, t in zip(out, found, strict=True))


def check_direction(x: Any, tangent: Any, position: int) -> tuple[Any, Any]:
    """Return an argument and its tangent as tensors of one type; a tangent of None stays."""
    if tangent is None:
        return x, None
    primal = x if isinstance(x, Tensor) else tensor_from(x, f"jvp: primal {position}")
    direction = tangent
    if not isinstance(tangent, Tensor):
        direction = constant(array_of(tangent, primal, f"jvp: tangent {position}"))
    if not is_float(primal.dtype):
        raise DTypeError(
            f"jvp: primal {position} is {primal.dtype} and has no derivative; pass None as its "
            "tangent, or cast it to a floating dtype"
        )
    require_type(direction, primal, f"jvp: tangent {position}", "its primal")
    return primal, direction
