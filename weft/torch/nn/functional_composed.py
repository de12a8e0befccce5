"""Functions of networks that PyTorch has as one, and Weft as a layer or as two."""

from __future__ import annotations

from typing import Any

from ...core.op import F
from ...nn import multi_head_attention_forward as of_weft
from ..adoption import adopt
from ..deferred import weft_function


def multi_head_attention_forward(  # noqa: PLR0913, PLR0917  (PyTorch's arguments)
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Any:
    """Return attention of several heads with given weights, and what it looked at."""
    if static_k is not None or static_v is not None:
        raise NotImplementedError(
            "multi_head_attention_forward: static_k and static_v are not taken; give keys and "
            "values of heads to scaled_dot_product_attention"
        )
    weights = (in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p)
    last = (out_proj_weight, out_proj_bias, training, key_padding_mask, need_weights, attn_mask)
    separate = (use_separate_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight)
    attend: Any = of_weft  # its arguments are put together here
    found = attend(
        *(query, key, value, embed_dim_to_check, num_heads),
        *(*weights, *last, *separate, average_attn_weights, is_causal),
    )
    return tuple(None if part is None else adopt(part) for part in found)


def linear_cross_entropy(
    input: Any,
    linear_weight: Any,
    target: Any,
    *,
    linear_bias: Any = None,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,  # how PyTorch saves memory, which changes no value
) -> Any:
    """Return the cross entropy of a linear layer's results; classes are the first of its sizes."""
    logits = F.tensordot(input, linear_weight, ((-1,), (-1,)))
    if linear_bias is not None:
        logits = logits + linear_bias
    loss: Any = weft_function("cross_entropy", "nn.functional")
    ignored = -100 if ignore_index is None else ignore_index
    settings = {"ignore_index": ignored, "label_smoothing": label_smoothing}
    return adopt(loss(logits, target, weight=weight, reduction=reduction, **settings))


COMPOSED: dict[str, Any] = {
    "multi_head_attention_forward": multi_head_attention_forward,
    "linear_cross_entropy": linear_cross_entropy,
}
