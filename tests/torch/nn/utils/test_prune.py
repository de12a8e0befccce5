"""Pruning: masks, their order, training with them, and making them permanent."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from weft import torch
from weft.torch import nn
from weft.torch.nn.utils import prune


def layer_of(*rows):
    layer = nn.Linear(len(rows[0]), len(rows))
    layer.weight.data.copy_(torch.tensor(rows))
    return layer


def test_the_smallest_elements_are_pruned_and_stay_zero_in_training():
    layer = layer_of([1.0, -4.0], [3.0, 2.0])
    held = layer.weight
    assert prune.l1_unstructured(layer, "weight", amount=0.5) is layer
    assert layer.weight_orig is held
    assert list(layer.state_dict()) == ["bias", "weight_orig", "weight_mask"]
    assert layer.weight.tolist() == [[0.0, -4.0], [3.0, 0.0]]
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert held.grad.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    np.testing.assert_allclose(layer.weight.detach(), [[0.0, -4.1], [2.9, 0.0]], rtol=1e-6)


def test_a_compiled_step_uses_the_mask():
    layer = layer_of([1.0, -4.0], [3.0, 2.0])
    prune.l1_unstructured(layer, "weight", 2)
    run = torch.compile(lambda x: layer(x).sum())
    with torch.no_grad():
        layer.bias.zero_()
    assert [run(torch.ones(1, 2)).item() for _ in range(3)] == [-1.0] * 3
    prune.l1_unstructured(layer, "weight", 1)
    assert run(torch.ones(1, 2)).item() == -4.0


def test_methods_prune_what_those_before_have_left():
    layer = layer_of([1.0, -4.0, 1.0], [3.0, 2.0, 5.0], [9.0, 8.0, 7.0])
    prune.ln_structured(layer, "weight", amount=1, n=2, dim=0)
    assert (layer.weight_mask == 0).any(1).tolist() == [True, False, False]
    prune.l1_unstructured(layer, "weight", amount=2)
    assert layer.weight.tolist() == [[0.0, -0.0, 0.0], [0.0, 0.0, 5.0], [9.0, 8.0, 7.0]]
    prune.random_structured(layer, "weight", amount=1, dim=1)
    assert (layer.weight_mask.sum(0) == 0).sum().item() == 1
    assert (copy.deepcopy(layer).weight == layer.weight).all()


def test_removing_makes_pruning_permanent():
    net = nn.Sequential(layer_of([1.0, -4.0]), nn.ReLU())
    held = net[0].weight
    prune.custom_from_mask(net[0], "weight", torch.tensor([[False, True]]))
    assert prune.is_pruned(net)
    prune.remove(net[0], "weight")
    assert not prune.is_pruned(net)
    assert net[0].weight is held
    assert held.tolist() == [[0.0, -4.0]]
    with pytest.raises(ValueError, match="has to be pruned before pruning can be removed"):
        prune.remove(net[0], "weight")


def test_several_modules_are_pruned_as_one():
    first, second = layer_of([1.0, -4.0]), layer_of([0.5, 3.0])
    pairs = [(first, "weight"), (second, "weight")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=2)
    assert first.weight_mask.tolist() == [[0.0, 1.0]]
    assert second.weight_mask.tolist() == [[0.0, 1.0]]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.5)
    assert second.weight_mask.tolist() == [[0.0, 0.0]]
    with pytest.raises(TypeError, match='Only "unstructured"'):
        prune.global_unstructured(pairs, prune.RandomStructured, amount=1)


def test_methods_of_users():
    class EverySecond(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    layer = layer_of([1.0, -4.0, 2.0])
    EverySecond.apply(layer, "weight")
    assert layer.weight_mask.tolist() == [[0.0, 1.0, 0.0]]
    assert EverySecond().prune(torch.ones(2)).tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("amount", "error", "said"),
    [
        ("much", TypeError, "Must be int or float"),
        (1.5, ValueError, r"in the range \[0, 1\]"),
        (-1, ValueError, "non-negative integer"),
        (9, ValueError, "smaller than the number of parameters to prune=2"),
    ],
)
def test_amounts_that_cannot_be(amount, error, said):
    layer = layer_of([1.0, 2.0])
    with pytest.raises(error, match=said):
        prune.l1_unstructured(layer, "weight", amount)
    assert isinstance(layer.weight, nn.Parameter)
    with pytest.raises(ValueError, match="multidimensional"):
        prune.ln_structured(layer, "bias", 1, 2, 0)
