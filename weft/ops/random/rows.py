"""Draws of some rows of a batch, or of a part: the numbers that a draw of the whole has in them.

Rows that begin at a block of the generator's sequence are drawn alone; otherwise the whole is
drawn, and the rows are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...core.dispatch import group
from ...core.draw_rows import DrawPart, DrawRows
from ...core.dtype import uint64
from ...core.op import F, Op, general, op
from ...core.rng import STATE_SHAPE, make_state
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, as_int, type_of
from ...core.tensor import Tensor
from .state import advance_state, check_state, reserve_state

MOST_LANES = 8  # elements that a block of the sequence makes


@dataclass(frozen=True)
class _Share:
    """Piece `index` of `count` pieces along an axis, each of a size."""

    index: int
    count: int
    axis: int
    size: Any


def draw_share(
    record: Op,
    inputs: tuple[Any, ...],
    attrs: tuple[Any, ...],
    generator: Any,
    rows: DrawRows | None,
    part: DrawPart | None,
) -> Any:
    """Draw rows of a batch, or a part of them; a draw for neither is the same for all."""
    blocks_of: Any = record.blocks_rule
    state = TensorType(STATE_SHAPE, uint64)
    types: list[Any] = [None if x is None else type_of(x) for x in inputs]
    result = record.type_rule(group(record, (state, *types)), attrs)
    shares = _shares(result.shape, rows, part) if isinstance(result, TensorType) else []
    shares = [share for share in shares if _is_wider(record, inputs, attrs, share)]
    here = blocks_of(*inputs, *attrs)
    if not shares:
        return record(reserve_state(generator, here), *inputs, *attrs)
    if len(shares) == 1 and shares[0].axis == 0:
        (own,) = shares
        many = blocks_of(*_wide(record, types, attrs, replace(own, count=MOST_LANES), _wide_type))
        if many == MOST_LANES * here:  # rows begin at blocks
            first = reserve_state(generator, here * own.count)
            return record(F.offset_state(first, here * own.index), *inputs, *attrs)
    wide = (*inputs, *attrs)
    for share in shares:
        wide = _wide(record, wide[: len(inputs)], wide[len(inputs) :], share, _repeated)
    whole = record(reserve_state(generator, blocks_of(*wide)), *wide)
    return whole[_place(shares)]


def _shares(shape: Any, rows: DrawRows | None, part: DrawPart | None) -> list[_Share]:
    """Return of which pieces a draw of a shape is one: by the rows, by the part, or by both."""
    shares = []
    if rows is not None and (axis := rows.axis_of(shape)) is not None:
        shares.append(_Share(rows.index, rows.count, axis, rows.batch))
    if part is not None and -len(shape) <= part.axis < len(shape):
        axis = part.axis % len(shape)
        if all(share.axis != axis for share in shares):
            shares.append(_Share(part.index, part.count, axis, shape[axis]))
    return shares


def _place(shares: Sequence[_Share]) -> tuple[slice, ...]:
    """Return where the pieces are in the whole."""
    at = [slice(None)] * (1 + max(share.axis for share in shares))
    for share in shares:
        at[share.axis] = slice(share.index * share.size, (share.index + 1) * share.size)
    return tuple(at)


def _is_wider(record: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...], share: _Share) -> bool:
    """Tell whether it can be said how the operation draws for more rows."""
    sized = [dict(zip(record.attrs, attrs, strict=True)).get("shape"), *_shapes(inputs)]
    return any(_has(shape, share) for shape in sized)


def _has(shape: Any, share: _Share) -> bool:
    """Tell whether a shape is that of a piece."""
    return shape is not None and len(shape) > share.axis and shape[share.axis] == share.size


def _wide(
    record: Op,
    inputs: Sequence[Any],
    attrs: tuple[Any, ...],
    share: _Share,
    widen: Callable[[Any, int, int], Any],
) -> tuple[Any, ...]:
    """Return operands and attributes of the same draw for all pieces together."""
    axis, times = share.axis, share.count
    ndim = max((len(shape) for shape in _shapes(inputs) if shape is not None), default=0)
    wide: list[Any] = []
    for x, shape in zip(inputs, _shapes(inputs), strict=True):
        has_rows = shape is not None and len(shape) == ndim and _has(shape, share)
        wide.append(widen(x, axis, times) if has_rows else x)
    for name, attr in zip(record.attrs, attrs, strict=True):
        has_rows = name == "shape" and _has(attr, share)
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
