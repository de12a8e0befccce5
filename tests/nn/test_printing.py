"""How layers print."""

from __future__ import annotations

import pytest

import weft as wf
from weft import nn


class Own(nn.Module):
    _printed = ("*size", "mode", "weight")

    def __init__(self, weight: bool) -> None:
        super().__init__()
        self.size, self.mode = (2, 3), "fast"
        self.register_parameter("weight", nn.Parameter(wf.zeros(1)) if weight else None)


@pytest.mark.parametrize(
    ("layer", "shown"),
    [
        (Own(True), "Own((2, 3), mode='fast', weight=True)"),
        (Own(False), "Own((2, 3), mode='fast', weight=False)"),
        (nn.Tanh(), "Tanh()"),
        (nn.ReLU(inplace=True), "ReLU(inplace=True)"),
        (nn.Hardswish(inplace=True), "Hardswish()"),
        (nn.ELU(0.5, inplace=True), "ELU(alpha=0.5, inplace=True)"),
        (nn.Linear(2, 3, bias=False), "Linear(in_features=2, out_features=3, bias=False)"),
        (nn.weight_norm(nn.Linear(2, 3)), "Linear(in_features=2, out_features=3, bias=True)"),
        (nn.RMSNorm(4), "RMSNorm((4,), eps=None, elementwise_affine=True)"),
        (nn.ZeroPad2d(1), "ZeroPad2d((1, 1, 1, 1))"),
    ],
)
def test_repr_of_options(layer: nn.Module, shown: str) -> None:
    assert repr(layer) == shown


def test_computed_biases_print_as_biases() -> None:
    layer = nn.weight_norm(nn.Linear(2, 3), "bias", None)
    assert repr(layer) == "Linear(in_features=2, out_features=3, bias=True)"
