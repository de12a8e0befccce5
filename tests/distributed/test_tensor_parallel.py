"""Layers with divided weights, of one process; on several see programs/dividing.py."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft import distributed as dist


@pytest.mark.parametrize("kind", ["column", "column_to_all", "row", "row_of_all"])
def test_alone_a_linear_layer_is_what_it_was(kind):
    model = wf.nn.Sequential(wf.nn.Linear(4, 6))
    x = wf.randn(3, 4)
    expected = model(x).detach().numpy()
    dist.tensor_parallel(model, {"0": kind})
    np.testing.assert_allclose(model(x).detach().numpy(), expected, rtol=1e-6)


def test_alone_tables_and_attention_are_what_they_were():
    table, attention = wf.nn.Embedding(6, 8), wf.nn.MultiheadAttention(8, 2)
    tokens = wf.tensor([[0, 5], [3, 3]])
    np.testing.assert_array_equal(
        dist.ParallelEmbedding(table)(tokens).detach().numpy(), table(tokens).detach().numpy()
    )
    x = wf.randn(5, 3, 8)
    found = dist.ParallelAttention(attention)(x).detach().numpy()
    expected = attention(x, x, x, need_weights=False)[0].detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_what_cannot_be_divided():
    model = wf.nn.Sequential(wf.nn.Linear(4, 6))
    with pytest.raises(ValueError, match=r"'0' must be one of column, .*Received: 'rows'"):
        dist.tensor_parallel(model, {"0": "rows"})
    with pytest.raises(ValueError, match=r"no module is named 'x\*'"):
        dist.tensor_parallel(model, {"x*": "row"})
