"""Multi-head attention as a function of its weights, with PyTorch's parameters."""

from __future__ import annotations

from typing import Any

from ..core.errors import ShapeError
from ..core.tensor import Tensor
from .attention import MultiheadAttention
from .calls import F
from .module import Module


class _WithWeights(MultiheadAttention):
    """Multi-head attention whose weights are given, and not drawn."""

    def __init__(self, embed_dim: int, num_heads: int, **given: Any) -> None:
        Module.__init__(self)
        sizes = {"embed_dim": embed_dim, "num_heads": num_heads, "batch_first": False}
        self.__dict__.update(sizes, head_dim=embed_dim // num_heads, **given)


def multi_head_attention_forward(  # noqa: PLR0913, PLR0917  (PyTorch's parameters, in its order)
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return what `MultiheadAttention` does with weights that are given; lengths come first.

    PyTorch's static_k and static_v, keys and values of heads that are projected already, are not
    taken: give them to `scaled_dot_product_attention`.

    >>> import weft as wf
    >>> x, w = wf.zeros((5, 3, 4)), wf.zeros((12, 4))
    >>> out, weights = multi_head_attention_forward(
    ...     x, x, x, 4, 2, w, None, None, None, False, 0.0, wf.eye(4), None
    ... )
    >>> out.shape, weights.shape
    ((5, 3, 4), (3, 5, 5))
    """
    if query.shape[-1] != embed_dim_to_check or embed_dim_to_check % num_heads:
        raise ShapeError(
            "multi_head_attention_forward: query must have embed_dim_to_check features, a multiple "
            f"of num_heads. Received: {tuple(query.shape)}, {embed_dim_to_check} and {num_heads}"
        )
    layer = _WithWeights(
        embed_dim_to_check,
        num_heads,
        kdim=key.shape[-1],
        vdim=value.shape[-1],
        dropout=float(dropout_p),
        add_zero_attn=bool(add_zero_attn),
        in_proj_weight=None if use_separate_proj_weight else in_proj_weight,
        q_proj_weight=q_proj_weight,
        k_proj_weight=k_proj_weight,
        v_proj_weight=v_proj_weight,
        in_proj_bias=in_proj_bias,
        bias_k=bias_k,
        bias_v=bias_v,
        training=bool(training),
        out_proj=lambda x: F.linear(x, out_proj_weight, out_proj_bias),
    )
    masks = (key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal)
    found: tuple[Tensor, Tensor | None] = layer.forward(query, key, value, *masks)
    return found
