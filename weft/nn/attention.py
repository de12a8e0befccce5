"""Multi-head attention (Vaswani et al. 2017, arXiv:1706.03762, section 3.2.2)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..core import dtype as dt
from ..core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from ..core.tensor import Tensor, wrap
from . import init
from .arguments import as_flag, as_probability, as_size
from .calls import F
from .linear import Linear
from .module import Module
from .parameter import Parameter, new_parameter
from .rnn_cells import same_dims


class MultiheadAttention(Module):
    """Let each query look at keys and values through several heads.

    Query, key and value are (length, batch, features), (batch, length, features) with
    `batch_first`, or (length, features) without a batch.

    dropout        probability of dropping attention weights, in training
    add_bias_kv    append a learnt key and value to every sequence of them
    add_zero_attn  append a key and value of zeros
    kdim, vdim     features of key and value, if not `embed_dim`

    >>> import weft as wf
    >>> attention = MultiheadAttention(8, num_heads=2, batch_first=True)
    >>> x = wf.zeros(3, 5, 8)
    >>> output, weights = attention(x, x, x)
    >>> output.shape, weights.shape
    ((3, 5, 8), (3, 5, 5))
    """

    _printed = ("embed_dim", "num_heads")
    in_proj_weight: Parameter | None  # None if q_, k_ and v_proj_weight are used
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(  # noqa: PLR0913  (PyTorch's options)
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.embed_dim = as_size(self, "embed_dim", embed_dim)
        self.num_heads = as_size(self, "num_heads", num_heads)
        if self.embed_dim % self.num_heads:
            raise ArgumentError(
                "MultiheadAttention: embed_dim must be divisible by num_heads. "
                f"Received: {embed_dim} and {num_heads}"
            )
        self.head_dim = self.embed_dim // self.num_heads
        self.kdim = self.embed_dim if kdim is None else as_size(self, "kdim", kdim)
        self.vdim = self.embed_dim if vdim is None else as_size(self, "vdim", vdim)
        self.dropout = as_probability(self, "dropout", dropout)
        self.add_zero_attn = as_flag(self, "add_zero_attn", add_zero_attn)
        self.batch_first = as_flag(self, "batch_first", batch_first)
        factory = {"dtype": dtype, "device": device}
        self._register_weights(as_flag(self, "bias", bias), add_bias_kv, factory)
        self.reset_parameters()

    def _register_weights(self, bias: bool, bias_kv: bool, factory: dict[str, Any]) -> None:
        size = self.embed_dim
        joined = self.kdim == size and self.vdim == size
        columns = {"in": size, "q": size, "k": self.kdim, "v": self.vdim}
        for name, inputs in columns.items():
            rows = 3 * size if name == "in" else size
            used = joined == (name == "in")
            parameter = new_parameter((rows, inputs), **factory) if used else None
            self.register_parameter(f"{name}_proj_weight", parameter)
        made = new_parameter((3 * size,), **factory) if bias else None
        self.register_parameter("in_proj_bias", made)
        for name in ("bias_k", "bias_v"):
            parameter = new_parameter((1, 1, size), **factory) if bias_kv else None
            self.register_parameter(name, parameter)
        self.out_proj = Linear(size, size, bias=bias, **factory)

    def reset_parameters(self) -> None:
        """Draw the weights as Glorot and Bengio propose, and set the biases to zero."""
        for name, parameter in self.named_parameters(recurse=False):
            if name.endswith("weight"):
                init.xavier_uniform_(parameter)
            elif name == "in_proj_bias":
                init.zeros_(parameter)
            else:
                init.xavier_normal_(parameter)
        self.out_proj.reset_parameters()
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the output, and the attention weights or None.

        key_padding_mask       (batch, keys): True where a key is only padding
        attn_mask              (queries, keys) or (batch * heads, queries, keys): True where a
                               query must not look; masks of floats are added to the scores
        need_weights           False computes the same output faster
        average_attn_weights   (batch, queries, keys), or (batch, heads, queries, keys) if False
        is_causal              query i looks at keys 0 ... i only; with attn_mask it is a hint that
                               the mask says so already

        A query that may look at no key gets zeros instead of NaN.
        """
        batched = self._check_inputs(query, key, value)
        query, key, value = self._batch_first((query, key, value), batched)
        if key_padding_mask is not None and not batched:
            key_padding_mask = F.unsqueeze(key_padding_mask, 0)
        q, k, v = self._project(query, key, value)
        k, v = self._with_extra_keys(k, v)
        masks = self._masks(q, k, attn_mask, key_padding_mask, is_causal, need_weights)
        output, weights = self._attend((q, k, v), masks, need_weights)
        output = self.out_proj(F.flatten(F.swapaxes(output, 1, 2), 2))
        if weights is not None and average_attn_weights:
            weights = F.mean(weights, 1)
        if not batched:
            return F.squeeze(output, 0), weights if weights is None else F.squeeze(weights, 0)
        return output if self.batch_first else F.swapaxes(output, 0, 1), weights

    # -- the parts -------------------------------------------------------------------------------

    def _batch_first(self, inputs: tuple[Tensor, ...], batched: bool) -> list[Tensor]:
        """Return inputs as (batch, length, features); one given twice stays one object."""
        if batched and self.batch_first:
            return list(inputs)
        arrange = F.swapaxes if batched else F.unsqueeze
        axes = (0, 1) if batched else (0,)
        made = {id(x): arrange(x, *axes) for x in inputs}
        return [made[id(x)] for x in inputs]

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        """Return the three projections, with as few products as the inputs allow."""
        size, weight, bias = self.embed_dim, self.in_proj_weight, self.in_proj_bias
        if weight is not None and query is key and key is value:
            return tuple(F.split(F.linear(query, weight, bias), size, -1))
        if weight is not None and key is value:
            sizes = (size, 2 * size)
            b_q, b_kv = (None, None) if bias is None else F.split(bias, sizes, 0)
            w_q, w_kv = F.split(weight, sizes, 0)
            k, v = F.split(F.linear(key, w_kv, b_kv), size, -1)
            return F.linear(query, w_q, b_q), k, v
        separate = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        weights = separate if weight is None else F.split(weight, size, 0)
        biases = (None,) * 3 if bias is None else F.split(bias, size, 0)
        return tuple(map(F.linear, (query, key, value), weights, biases))

    def _with_extra_keys(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values with the learnt one and the one of zeros appended."""
        pairs: list[tuple[Tensor, Tensor | None]] = []
        if self.bias_k is not None:
            pairs.append((self.bias_k, self.bias_v))
        if self.add_zero_attn:
            zero = wrap(np.zeros((1, 1, self.embed_dim), k.dtype))
            pairs.append((zero, zero))
        one = (k.shape[0], 1, self.embed_dim)
        for extra_k, extra_v in pairs:
            k = F.concat((k, F.broadcast_to(extra_k, one)), 1)
            v = F.concat((v, F.broadcast_to(extra_v, one)), 1)
        return k, v

    def _split_heads(self, x: Tensor) -> Tensor:
        """Return (batch, length, features) as (batch, heads, length, features of a head)."""
        return F.swapaxes(F.unflatten(x, -1, (self.num_heads, self.head_dim)), 1, 2)

    def _attend(
        self, projected: tuple[Tensor, ...], masks: Masks, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        q, k, v = map(self._split_heads, projected)
        p = self.dropout if self.training else 0.0
        if not need_weights:
            options = {"dropout_p": p, "is_causal": masks.causal}
            return F.scaled_dot_product_attention(q, k, v, masks.allowed, **options), None
        scores = F.matmul(q * (1 / math.sqrt(self.head_dim)), F.swapaxes(k, -1, -2))
        weights = F.dropout(attention_weights(scores, masks.allowed), p, self.training)
        return F.matmul(weights, v), weights

    # -- masks -----------------------------------------------------------------------------------

    def _masks(
        self,
        q: Tensor,
        k: Tensor,
        attn_mask: Tensor | None,
        padding: Tensor | None,
        is_causal: bool,
        need_weights: bool,
    ) -> Masks:
        """Return the masks as one, which broadcasts to (batch, heads, queries, keys)."""
        batch, queries, keys = q.shape[0], q.shape[1], k.shape[1]
        extra = self._extra_keys()
        causal = bool(is_causal) and attn_mask is None
        if causal and (need_weights or extra):
            attn_mask, causal = _future(queries, keys - extra), False
        blocked = []
        if attn_mask is not None:
            sizes = (queries, keys - extra)
            per_head = (batch * self.num_heads, *sizes)
            _check_mask("attn_mask", attn_mask, sizes, per_head)
            mask = _extended(attn_mask, extra)
            if attn_mask.ndim == 3:
                mask = F.reshape(mask, (batch, self.num_heads, queries, keys))
            blocked.append(mask)
        if padding is not None:
            _check_mask("key_padding_mask", padding, (batch, keys - extra))
            blocked.append(_extended(padding, extra)[:, None, None, :])
        return Masks(_allowed(blocked), causal)

    def _extra_keys(self) -> int:
        return int(self.bias_k is not None) + int(self.add_zero_attn)

    def _check_inputs(self, query: Any, key: Any, value: Any) -> bool:
        """Tell whether the inputs have a batch dimension; raise if they do not fit."""
        inputs = {"query": query, "key": key, "value": value}
        sizes = (self.embed_dim, self.kdim, self.vdim)
        for (name, x), size in zip(inputs.items(), sizes, strict=True):
            if not isinstance(x, Tensor):
                raise ArgumentTypeError(
                    f"MultiheadAttention: {name} must be a tensor. Received: {type(x).__name__}"
                )
            if x.ndim != query.ndim or x.ndim not in (2, 3) or x.shape[-1] not in (size, None):
                layout = "(batch, length, " if self.batch_first else "(length, batch, "
                raise ShapeError(
                    f"MultiheadAttention: {name} must have shape {layout}{size}), or (length, "
                    f"{size}), like the other inputs. Received: {x.shape}"
                )
        self._check_lengths(query, key, value)
        return bool(query.ndim == 3)

    def _check_lengths(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        length = 1 if query.ndim == 3 and self.batch_first else 0
        same_batch = query.ndim == 2 or same_dims(
            query.shape[1 - length : 2 - length], key.shape[1 - length : 2 - length]
        )
        if not same_batch or not same_dims(key.shape[:-1], value.shape[:-1]):
            raise ShapeError(
                "MultiheadAttention: key and value must have one length, and all inputs one "
                f"batch size. Received: {query.shape}, {key.shape} and {value.shape}"
            )


class Masks(NamedTuple):
    """One mask in the sense of scaled_dot_product_attention, and whether attention is causal."""

    allowed: Tensor | None
    causal: bool


def attention_weights(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Return softmax over the keys that a mask leaves, and zeros where it leaves none."""
    if scores.shape[-1] == 0:
        return scores
    if allowed is None:
        return F.softmax(scores, -1)
    masked = F.where(allowed, scores, -np.inf) if allowed.dtype == dt.bool_ else scores + allowed
    top = F.max(F.stop_gradient(masked), axis=-1, keepdims=True)
    nothing = F.equal(top, -np.inf)
    # Both sides of the outer `where` must be finite, or NaN would reach the gradient.
    return F.where(nothing, 0.0, F.softmax(F.where(nothing, 0.0, masked), -1))


# -- helpers -------------------------------------------------------------------------------------


def _future(queries: int, keys: int) -> Tensor:
    """Return True where a key comes after the query."""
    return wrap(~np.tri(queries, keys, dtype=bool))


def _extended(mask: Tensor, extra: int) -> Tensor:
    """Return a mask that leaves the keys appended at the end open."""
    if not extra:
        return mask
    return F.pad(mask, (*((0, 0),) * (mask.ndim - 1), (0, extra)))


def _allowed(blocked: list[Tensor]) -> Tensor | None:
    """Return masks that say "blocked" as one that says "allowed", or as floats to be added."""
    if not blocked:
        return None
    if all(mask.dtype == dt.bool_ for mask in blocked):
        return F.logical_not(F.logical_or(*blocked) if len(blocked) == 2 else blocked[0])
    floats = [_as_scores(mask, blocked) for mask in blocked]
    return floats[0] + floats[1] if len(floats) == 2 else floats[0]


def _as_scores(mask: Tensor, among: list[Tensor]) -> Tensor:
    if mask.dtype != dt.bool_:
        return mask
    dtype = next(m.dtype for m in among if m.dtype != dt.bool_)
    return F.where(mask, wrap(np.array(-np.inf, dtype)), wrap(np.array(0, dtype)))


def _check_mask(name: str, mask: Any, *shapes: tuple[Any, ...]) -> None:
    if not isinstance(mask, Tensor):
        raise ArgumentTypeError(
            f"MultiheadAttention: {name} must be a tensor. Received: {type(mask).__name__}"
        )
    if mask.dtype != dt.bool_ and not dt.is_float(mask.dtype):
        raise DTypeError(
            f"MultiheadAttention: {name} must hold truth values (True = must not look) or floats "
            f"to add to the scores. Received: {mask.dtype}"
        )
    if not any(same_dims(mask.shape, shape) for shape in shapes):
        expected = " or ".join(map(str, shapes))
        raise ShapeError(
            f"MultiheadAttention: {name} must have shape {expected}. Received: {mask.shape}"
        )
