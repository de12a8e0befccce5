"""Attention with weights that are given is that of a layer that has them."""

import numpy as np
import pytest

import weft as wf
from weft.nn.attention_function import multi_head_attention_forward


@pytest.mark.parametrize("options", [{}, {"add_bias_kv": True, "add_zero_attn": True}, {"kdim": 5}])
def test_as_the_layer(options):
    wf.manual_seed(0)
    layer = wf.nn.MultiheadAttention(8, 2, **options).eval()
    query = wf.randn(4, 3, 8)
    key, value = wf.randn(6, 3, layer.kdim), wf.randn(6, 3, 8)
    mask = wf.tensor(np.triu(np.ones((4, 6), bool), 3))
    expected = layer(query, key, value, attn_mask=mask)
    before = wf.get_rng_state()
    found = multi_head_attention_forward(
        *(query, key, value, 8, 2, layer.in_proj_weight, layer.in_proj_bias),
        *(layer.bias_k, layer.bias_v, layer.add_zero_attn, 0.0),
        *(layer.out_proj.weight, layer.out_proj.bias),
        training=False,
        attn_mask=mask,
        use_separate_proj_weight=layer.in_proj_weight is None,
        q_proj_weight=layer.q_proj_weight,
        k_proj_weight=layer.k_proj_weight,
        v_proj_weight=layer.v_proj_weight,
    )
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert wf.get_rng_state() == before, "no weights are drawn"


def test_a_wrong_size_is_named():
    x = wf.zeros((2, 1, 4))
    with pytest.raises(ValueError, match=r"multiple of num_heads.*\(2, 1, 4\), 6 and 2"):
        multi_head_attention_forward(
            *(x, x, x, 6, 2, wf.zeros((12, 4)), None, None, None, False, 0.0, wf.eye(4), None)
        )
