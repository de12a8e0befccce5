"""Draws of some rows of a batch: the numbers that a draw for the whole batch has in them.

Rows that begin at a block of the generator's sequence are drawn alone; otherwise the whole is
drawn, and the rows are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dispatch import group
from ...core.draw_rows import DrawRows
from ...core.dtype import uint64
from ...core.op import F, Op, general, op
from ...core.rng import STATE_SHAPE, make_state
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, as_int, type_of
from ...core.tensor import Tensor
from .state import advance_state, check_state, reserve_state

MOST_LANES = 8  # elements that a block of the sequence makes


def draw_rows(
    record: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...], generator: Any, rows: DrawRows
) -> Any:
    """Draw rows of a batch; a draw that is not for rows is the same for all."""
    blocks_of: Any = record.blocks_rule
    state = TensorType(STATE_SHAPE, uint64)
    types: list[Any] = [None if x is None else type_of(x) for x in inputs]
    result = record.type_rule(group(record, (state, *types)), attrs)
    axis = rows.axis_of(result.shape) if isinstance(result, TensorType) else None
    here = blocks_of(*inputs, *attrs)
    if axis is None or not _is_wider(record, inputs, attrs, axis, rows.batch):
        return record(reserve_state(generator, here), *inputs, *attrs)
    many = blocks_of(*_wide(record, types, attrs, axis, rows.batch, MOST_LANES, _wide_type))
    if axis == 0 and many == MOST_LANES * here:  # rows begin at blocks
        first = reserve_state(generator, here * rows.count)
        return record(F.offset_state(first, here * rows.index), *inputs, *attrs)
    wide = _wide(record, inputs, attrs, axis, rows.batch, rows.count, _repeated)
    whole = record(reserve_state(generator, blocks_of(*wide)), *wide)
    chosen = slice(rows.index * rows.batch, (rows.index + 1) * rows.batch)
    return whole[(slice(None),) * axis + (chosen,)]


def _is_wider(
    record: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...], axis: int, batch: Any
) -> bool:
    """Tell whether it can be said how the operation draws for more rows."""
    sized = [dict(zip(record.attrs, attrs, strict=True)).get("shape"), *_shapes(inputs)]
    return any(s is not None and len(s) > axis and s[axis] == batch for s in sized)


def _wide(
    record: Op,
    inputs: Sequence[Any],
    attrs: tuple[Any, ...],
    axis: int,
    batch: Any,
    times: int,
    widen: Callable[[Any, int, int], Any],
) -> tuple[Any, ...]:
    """Return operands and attributes of the same draw for so many times as many rows."""
    ndim = max((len(shape) for shape in _shapes(inputs) if shape is not None), default=0)
    wide: list[Any] = []
    for x, shape in zip(inputs, _shapes(inputs), strict=True):
        has_rows = shape is not None and len(shape) == ndim and shape[axis] == batch
        wide.append(widen(x, axis, times) if has_rows else x)
    for name, attr in zip(record.attrs, attrs, strict=True):
        has_rows = name == "shape" and len(attr) > axis and attr[axis] == batch
        wide.append(_wide_shape(attr, axis, times) if has_rows else attr)
    return tuple(wide)


def _wide_shape(shape: tuple[Any, ...], axis: int, times: int) -> tuple[Any, ...]:
    return (*shape[:axis], shape[axis] * times, *shape[axis + 1 :])


def _wide_type(type: Any, axis: int, times: int) -> TensorType:
    return TensorType(_wide_shape(type.shape, axis, times), type.dtype)


def _repeated(x: Any, axis: int, times: int) -> Any:
    return F.concat([x] * times, axis=axis)


def _shapes(inputs: Sequence[Any]) -> list[Any]:
    return [None if x is None else x.shape for x in inputs]


@op(general, method=False)
def offset_state(state: Tensor, blocks: int) -> Tensor:
    """Return the state so many blocks further, for a draw that begins there."""


@offset_state.canon
def _(state, blocks):
    check_state(state)
    return (as_int(blocks, "blocks"),)


@offset_state.infer
def _(state, blocks):
    return TensorType(STATE_SHAPE, uint64)


@offset_state.eval
def _(state, blocks):
    moved = np.array(state)
    moved[2] += np.uint64(blocks)
    return moved


@offset_state.place
def _(b, state, blocks):
    rule: Any = advance_state.place_rule
    return rule(b, state, blocks)


@offset_state.samples
def _(s):
    yield Sample(make_state(7, 3), 5)
    yield Sample(make_state(7, 3), 0)


@offset_state.error_samples
def _(s):
    yield ErrorSample(make_state(7, 3)[:2], 5, error=ValueError, match=r"shape \(3,\).*\(2,\)")
