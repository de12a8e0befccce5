"""Run a transform eagerly: raw arrays in, new values into the parameters, nothing on the tape.

Small parameters take new arrays. A large one is updated block by block: the dozen passes of a rule
like Adam's then run in the processor's cache instead of main memory, and no full-size temporary is
allocated. Blocks are written into the parameter's own buffer when nobody else holds it; slots of
the state always belong to the optimizer, which hands out copies only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.dtype import Array, DType, float32
from ..core.tensor import Tensor
from .transform import GradientTransform, State, UpdateOne

BLOCK = 1 << 15  # elements: the operands of one pass fit a second-level cache


def run_transform(
    transform: GradientTransform, params: Sequence[Tensor], states: Sequence[State]
) -> None:
    """Update parameters that have gradients, and their states."""
    if transform.each is None:
        _run_together(transform, params, states)
        return
    update = transform.each[1]
    for p, state in zip(params, states, strict=True):
        if transform.elementwise and p._value.size > BLOCK:
            _run_blocks(update, p, state)
        else:
            _run_one(update, p, state)


def initial_state(transform: GradientTransform, p: Tensor) -> State:
    """Return the state of a parameter before its first update."""
    state = transform.init([working(p._value)])[0]
    # A slot in another memory order could not be written through a flat view.
    return {
        n: np.asarray(v, order="C") if isinstance(v, np.ndarray) else v for n, v in state.items()
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
    state.update(changed)


def _run_together(
    transform: GradientTransform, params: Sequence[Tensor], states: Sequence[State]
) -> None:
    values = [working(p._value) for p in params]
    grads = [_gradient(p, v.dtype) for p, v in zip(params, values, strict=True)]
    updates, changed = transform.update(grads, states, values)
    for p, value, u, state, new in zip(params, values, updates, states, changed, strict=True):
        p._value = np.asarray(value + u, p._value.dtype)
        state.update(new)


def _run_blocks(update: UpdateOne, p: Tensor, state: State) -> None:
    own = p._exclusive()
    shape, size = p.shape, p.size
    target = own if own is not None and own.flags.c_contiguous else np.empty(shape, p.dtype)
    x, out = p._value.reshape(-1), target.reshape(-1)
    dtype = working_dtype(x.dtype)
    g = _gradient(p, dtype).reshape(-1)
    arrays = {n: v.reshape(-1) for n, v in state.items() if getattr(v, "shape", None) == shape}
    scalars = {n: v for n, v in state.items() if n not in arrays}
    changed: State = {}
    for start in range(0, size, BLOCK):
        part = slice(start, start + BLOCK)
        value = x[part].astype(dtype, copy=False)
        block = {n: v[part] for n, v in arrays.items()}
        u, changed = update(g[part], {**scalars, **block}, value)
        np.add(value, u, out=out[part], casting="same_kind")
        for name, array in arrays.items():
            if name in changed:
                array[part] = changed[name]
    p._value = target
    state.update({n: v for n, v in changed.items() if n not in arrays})
    state.update({n: v.reshape(shape) for n, v in arrays.items()})


def _gradient(p: Tensor, dtype: Any) -> Array:
    grad: Array = p.grad._value
    return grad if grad.dtype == dtype else grad.astype(dtype)
