"""Modules called with other tensors."""

from __future__ import annotations

import pytest

from weft import torch
from weft.torch import nn
from weft.torch.func import functional_call


def test_names_that_a_module_has_not_are_left_out_unless_it_is_strict():
    layer, x = nn.Linear(2, 1), torch.ones(1, 2)
    given = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
    assert functional_call(layer, {**given, "other": x}, x).tolist() == [[2.0]]
    assert functional_call(layer, given, (x,), strict=True).tolist() == [[2.0]]
    with pytest.raises(RuntimeError, match=r"for Linear:\n\tMissing key\(s\): 'bias'\."):
        functional_call(layer, {"weight": given["weight"]}, x, strict=True)
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): 'other'\."):
        functional_call(layer, {**given, "other": x}, x, strict=True)


def test_a_shared_tensor_is_named_once():
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    net[1].weight = net[0].weight
    found = functional_call(net, {"0.weight": torch.eye(2) * 3}, torch.ones(1, 2), strict=True)
    assert found.tolist() == [[9.0, 9.0]]
