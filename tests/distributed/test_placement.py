"""Placements of one process; on several see programs/dividing.py, and passes/dividing."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft import distributed as dist


def test_alone_a_placement_changes_nothing():
    x = wf.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (dist.shard(x, 1) * dist.shard(x, None)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * x.detach().numpy())
    whole = dist.join_parts(dist.local_part(x, 1), 1)
    np.testing.assert_array_equal(whole.detach().numpy(), x.detach().numpy())


def test_alone_placed_parameters_are_what_they_were():
    model = wf.nn.Sequential(wf.nn.Linear(4, 6), wf.nn.ReLU(), wf.nn.Linear(6, 2))
    x, names = wf.randn(3, 4), [name for name, _ in model.named_parameters()]
    expected = model(x).detach().numpy()
    dist.place_parameters(model, {"0.*": 0, "2.weight": 1})
    assert [name for name, _ in model.named_parameters()] == names
    np.testing.assert_array_equal(model(x).detach().numpy(), expected)
    model(x).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_children_of_a_placed_module_keep_their_names():
    attention = wf.nn.Sequential(wf.nn.MultiheadAttention(8, 2, batch_first=True))
    names = {name for name, _ in attention.named_parameters()}
    dist.place_parameters(attention, {"0.in_proj_weight": 0, "0.out_proj.weight": 1})
    assert {name for name, _ in attention.named_parameters()} == names
    x = wf.randn(2, 3, 8)
    assert attention[0](x, x, x)[0].shape == (2, 3, 8)


def test_what_cannot_be_placed():
    layer = wf.nn.Linear(4, 6)
    model = wf.nn.Sequential(layer)
    with pytest.raises(ValueError, match=r"no parameter is named 'x\*'"):
        dist.place_parameters(model, {"x*": 0})
    with pytest.raises(IndexError, match="axis 2 is out of range"):
        dist.place_parameters(model, {"0.weight": 2})
    with pytest.raises(ValueError, match="belongs to the model itself"):
        dist.place_parameters(layer, {"weight": 0})
    with pytest.raises(TypeError, match=r"expected a module\. Received: int"):
        dist.place_parameters(3, {"weight": 0})
    other = wf.nn.Linear(4, 6)
    other.weight = layer.weight
    with pytest.raises(ValueError, match=r"several modules share 0\.weight"):
        dist.place_parameters(wf.nn.Sequential(layer, other), {"0.weight": 0})
    with pytest.raises(TypeError, match="x must be a tensor"):
        dist.shard([1.0])
    with pytest.raises(IndexError, match="axis 3 is out of range"):
        dist.shard(wf.ones(2), 3)
