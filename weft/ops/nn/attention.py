"""Scaled dot-product attention (Vaswani et al. 2017, arXiv:1706.03762, section 3.2.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtype as dt
from ...core.dim import is_known, may_stretch, size_max
from ...core.dim.number import size_sqrt
from ...core.errors import ArgumentError, DTypeError, ShapeError
from ...core.op import F, composite
from ...core.rng import Generator
from ...core.shape import broadcast
from ...core.tensor import Tensor
from .._halves import rounded_once
from ..reduce.softmax import softmax
from ._arguments import check_floats, check_number, check_probability, operands, same_dims
from .dropout import dropout


@composite(fused=True)
@rounded_once
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Return softmax(query @ key.mT * scale + mask) @ value.

    query (..., L, E), key (..., S, E), value (..., S, V) give (..., L, V); leading dimensions
    broadcast.

    attn_mask   broadcast to (..., L, S): truth values, True where a query may look at a key, or
                floats that are added to the scores
    dropout_p   drops attention weights; give 0.0 outside training
    is_causal   query i looks at keys 0 ... i only
    scale       1 / sqrt(E) if not given
    enable_gqa  key and value have fewer heads (axis -3), each shared by a group of query heads

    A query that may look at no key at all gets zeros, and no NaN in any gradient.
    """
    fn = "scaled_dot_product_attention"
    query, key, value, mask = operands(fn, query=query, key=key, value=value, attn_mask=attn_mask)
    _check_shapes(fn, query, key, value)
    if enable_gqa:
        key, value = _repeat_heads(fn, query, key), _repeat_heads(fn, query, value)
    _check_batches(fn, query, key, value)
    if scale is None:
        factor = 1 / size_sqrt(size_max(query.shape[-1], 1))
    else:
        factor = check_number(fn, "scale", scale)
    scores = F.matmul(query * factor, F.swapaxes(key, -1, -2))
    _check_mask(fn, mask, scores)
    weights = _weights(scores, mask, is_causal)
    dropout_p = check_probability(fn, dropout_p, "dropout_p")
    if dropout_p:
        weights = dropout(weights, dropout_p, generator=generator)
    return F.matmul(weights, value)


# -- the parts --------------------------------------------------------------------------------


def _weights(scores: Any, mask: Any, is_causal: bool) -> Any:
    """Return the attention weights: a softmax over the keys that the masks leave."""
    if scores.shape[-1] == 0:
        return scores
    if is_causal:
        # The first key is open to every query, so no row is empty for this mask alone.
        scores = F.where(_causal(*scores.shape[-2:]), scores, -np.inf)
    if mask is None:
        return softmax(scores, -1)
    masked = F.where(mask, scores, -np.inf) if mask.dtype == dt.bool_ else scores + mask
    return _softmax_or_zeros(masked)


def _causal(queries: Any, keys: Any) -> Any:
    """Return which keys lie at the query's own place or before it."""
    if is_known((queries, keys)):
        return np.tri(queries, keys, dtype=bool)
    return F.iota(queries)[:, None] >= F.iota(keys)


def _softmax_or_zeros(scores: Any) -> Any:
    """Return softmax over the last axis, with zeros for rows that are -inf throughout."""
    top = F.max(F.stop_gradient(scores), axis=-1, keepdims=True)
    e = F.exp(scores - F.where(top == -np.inf, 0.0, top))
    total = F.sum(e, axis=-1, keepdims=True)
    return e / F.where(total == 0, 1.0, total)


def _repeat_heads(fn: str, query: Any, x: Any) -> Any:
    """Return key or value with each head repeated for the query heads that share it."""
    if query.ndim < 3 or x.ndim < 3:
        raise ShapeError(
            f"{fn}: enable_gqa needs heads, shape (..., H, L, E). "
            f"Received: {query.shape} and {x.shape}"
        )
    heads, shared = query.shape[-3], x.shape[-3]
    if shared == 0 or heads % shared != 0:
        raise ArgumentError(
            f"{fn}: with enable_gqa the heads of key and value must divide those of query. "
            f"Received: {heads} query heads and {shared}"
        )
    return x if heads == shared else F.repeat(x, heads // shared, axis=-3)


# -- checks -----------------------------------------------------------------------------------


def _check_shapes(fn: str, query: Any, key: Any, value: Any) -> None:
    for name, x in (("query", query), ("key", key), ("value", value)):
        check_floats(fn, name, x)
        if x.ndim < 2:
            raise ShapeError(
                f"{fn}: {name} must have shape (..., length, size). Received: {x.shape}"
            )
    if not same_dims(query.shape[-1:], key.shape[-1:]):
        raise ShapeError(
            f"{fn}: query and key must have the same last dimension. "
            f"Received: {query.shape} and {key.shape}"
        )
    if not same_dims(key.shape[-2:-1], value.shape[-2:-1]):
        raise ShapeError(
            f"{fn}: key and value must have the same length, axis -2. "
            f"Received: {key.shape} and {value.shape}"
        )


def _check_batches(fn: str, query: Any, key: Any, value: Any) -> None:
    shapes = [tuple(x.shape[:-2]) for x in (query, key, value)]
    try:
        broadcast(*shapes)
    except ShapeError as error:
        named = f"{fn}: leading dimensions of query, key and value: {error}"
        raise ShapeError(named, **error.facts) from None


def _check_mask(fn: str, mask: Any, scores: Any) -> None:
    if mask is None:
        return
    if mask.dtype != dt.bool_ and not dt.is_float(mask.dtype):
        raise DTypeError(
            f"{fn}: attn_mask must hold truth values (True = may look) or floats to add to the "
            f"scores. Received: {mask.dtype}"
        )
    wanted, given = tuple(scores.shape), tuple(mask.shape)
    fits = len(given) <= len(wanted) or set(given[: len(given) - len(wanted)]) == {1}
    pairs = zip(reversed(given), reversed(wanted), strict=False)
    if not fits or not all(may_stretch(*pair) for pair in pairs):
        raise ShapeError(
            f"{fn}: attn_mask must broadcast to the scores, {wanted} (queries by keys). "
            f"Received: {given}"
        )
