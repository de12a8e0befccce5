"""Run a transform eagerly: raw arrays in, new values into the parameters, nothing on the tape.

The rule runs on whole arrays, parameter by parameter, but for large models: there the dozen passes
of a rule like Adam's wait for memory. Machine code makes one pass, and one call for all parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.dtype import Array, DType, float32
from ..core.modes import modes
from ..core.row_sparse import RowSparse
from ..core.tensor import Tensor
from .placed_step import is_elsewhere, placed_state, run_placed
from .row_step import RowPart
from .transform import GradientTransform, State, UpdateOne

LARGE = 1 << 14  # elements of all parameters, where compiling is soon worth its while


def run_transform(
    transform: GradientTransform,
    params: Sequence[Tensor],
    states: Sequence[State],
    run_large: Callable[[Sequence[Tensor]], bool] = lambda params: False,
) -> None:
    """Update parameters that have gradients, and their states.

    run_large   updates parameters by machine code if it can, and tells whether it did
    """
    if modes.base is not None and any(map(is_elsewhere, params)):
        params, states = _run_those_placed(transform, params, states, run_large)
    if not params:
        return
    if transform.each is None:
        _run_together(transform, params, states)
        return
    pairs = list(zip(params, states, strict=True))
    by_rows = [pair for pair in pairs if pair[0].grad.__class__ is RowSparse]
    for p, state in by_rows:
        part = RowPart(p, state, working_dtype(p.dtype), transform.elementwise)
        part.write(*transform.each[1](part.gradient, part.state, part.value))
    if by_rows:
        pairs = [pair for pair in pairs if pair[0].grad.__class__ is not RowSparse]
        params = [p for p, _ in pairs]
    if not (transform.elementwise and _are_large(params) and run_large(params)):
        for p, state in pairs:
            _run_one(transform.each[1], p, state)


def _run_those_placed(
    transform: GradientTransform,
    params: Sequence[Tensor],
    states: Sequence[State],
    run_large: Callable[[Sequence[Tensor]], bool],
) -> tuple[list[Tensor], list[State]]:
    """Update the parameters that are on devices; return the others and their states."""
    pairs = list(zip(params, states, strict=True))
    there = [pair for pair in pairs if is_elsewhere(pair[0])]
    members = [p for p, _ in there]
    if not run_large(members):
        run_placed(transform, members, [state for _, state in there], working)
    here = [pair for pair in pairs if not is_elsewhere(pair[0])]
    return [p for p, _ in here], [state for _, state in here]


def _are_large(params: Sequence[Tensor]) -> bool:
    return sum([p._value.size for p in params]) >= LARGE


def initial_state(transform: GradientTransform, p: Tensor) -> State:
    """Return the state of a parameter before its first update."""
    if is_elsewhere(p):
        return placed_state(transform, working(p._value))
    state = transform.init([working(p._value)])[0]
    # A slot in another memory order could not be written through a flat view.
    return {
        n: np.asarray(v, order="C") if isinstance(v, np.ndarray) else v
        for n, v in _as_arrays(state).items()
    }


def working(value: Array) -> Array:
    """Return a value in the precision that updates are computed in: at least single.

    In half precision a usual eps (1e-8) is zero and squares of small gradients vanish.
    """
    return value.astype(float32) if value.dtype.itemsize < 4 else value


def working_dtype(dtype: DType) -> DType:
    """Return the dtype that updates of a parameter are computed in."""
    return np.promote_types(float32, dtype)


def _run_one(update: UpdateOne, p: Tensor, state: State) -> None:
    x = p._value
    value = working(x)
    u, changed = update(_gradient(p, value.dtype), state, value)
    p._value = np.asarray(value + u, x.dtype)
    state.update(changed if x.ndim else _as_arrays(changed))


def _as_arrays(state: State) -> State:
    """Return slots of a parameter without dimensions, of which NumPy made scalars, as arrays."""
    return {n: np.asarray(v) if isinstance(v, np.generic) else v for n, v in state.items()}


def _run_together(
    transform: GradientTransform, params: Sequence[Tensor], states: Sequence[State]
) -> None:
    parts = [_part(p, state) for p, state in zip(params, states, strict=True)]
    updates, changed = transform.update(
        [part.gradient for part in parts],
        [part.state for part in parts],
        [part.value for part in parts],
    )
    for part, u, new in zip(parts, updates, changed, strict=True):
        part.write(u, new)


class _WholePart:
    """What a rule sees of a parameter: all of it."""

    def __init__(self, p: Tensor, state: State) -> None:
        self.p, self.state = p, state
        self.value = working(p._value)
        self.gradient = _gradient(p, self.value.dtype)

    def write(self, update: Any, changed: State) -> None:
        """Give the parameter and its slots new values."""
        self.p._value = np.asarray(self.value + update, self.p._value.dtype)
        self.state.update(changed)


def _part(p: Tensor, state: State) -> _WholePart | RowPart:
    if p.grad.__class__ is RowSparse:
        return RowPart(p, state, working_dtype(p.dtype), elementwise=False)
    return _WholePart(p, state)


def _gradient(p: Tensor, dtype: Any) -> Array:
    grad: Array = p.grad._value
    return grad if grad.dtype == dtype else grad.astype(dtype)
