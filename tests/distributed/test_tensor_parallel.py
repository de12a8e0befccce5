"""Layers with divided weights, of one process; on several see programs/dividing.py."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft import distributed as dist
from weft.core.draw_rows import DrawPart, DrawRows, drawing_part, drawing_rows


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


def test_alone_dropout_is_what_it_was():
    attention = wf.nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True)
    model = wf.nn.Sequential(wf.nn.Linear(8, 6), wf.nn.Dropout(0.5), wf.nn.Linear(6, 8))
    x = wf.randn(2, 5, 8)
    wf.manual_seed(1)
    expected = model(attention(x, x, x, need_weights=False)[0]).detach().numpy()
    dist.tensor_parallel(model, {"0": "column", "1": "dropout", "2": "row"})
    wf.manual_seed(1)
    found = model(dist.ParallelAttention(attention)(x)).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("run", [lambda f: f, wf.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("axis", [1, -1])
def test_parts_of_a_draw_are_those_of_the_whole(run, axis):
    """Draw pieces of rows and of another axis at once, as divided layers of divided batches do."""
    drop = run(lambda x: wf.nn.functional.dropout(x, 0.5))
    wf.manual_seed(1)
    whole = drop(wf.ones(4, 6, 6)).numpy()
    rows = []
    for index in range(2):
        parts = []
        for place in range(3):
            wf.manual_seed(1)
            with drawing_rows(DrawRows(index, 2, 2)), drawing_part(DrawPart(place, 3, axis)):
                parts.append(drop(wf.ones(2, *((2, 6) if axis == 1 else (6, 2)))).numpy())
        rows.append(np.concatenate(parts, axis))
    np.testing.assert_array_equal(np.concatenate(rows), whole)


def test_layers_stay_as_they_are_in_training_or_not():
    model = wf.nn.Sequential(wf.nn.Linear(4, 6), wf.nn.Dropout(0.5)).eval()
    dist.tensor_parallel(model, {"1": "dropout"})
    assert not any(module.training for module in model.modules())


def test_what_cannot_be_divided():
    for option in ("add_bias_kv", "add_zero_attn"):
        with pytest.raises(ValueError, match="must come from the input alone"):
            dist.ParallelAttention(wf.nn.MultiheadAttention(8, 2, **{option: True}))
    model = wf.nn.Sequential(wf.nn.Linear(4, 6))
    with pytest.raises(ValueError, match=r"'0' must be one of column, .*Received: 'rows'"):
        dist.tensor_parallel(model, {"0": "rows"})
    with pytest.raises(ValueError, match=r"no module is named 'x\*'"):
        dist.tensor_parallel(model, {"x*": "row"})
