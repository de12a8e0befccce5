"""Batch normalisation as part of the layer before it."""

from __future__ import annotations

import numpy as np
import pytest

from weft import torch
from weft.torch import nn
from weft.torch.nn import utils


def used(norm):
    """Return a batch norm that has seen data and was trained."""
    size = norm.num_features
    norm.running_mean.copy_(torch.randn(size))
    norm.running_var.copy_(torch.rand(size) + 0.5)
    norm.weight.data.copy_(torch.randn(size))
    norm.bias.data.copy_(torch.randn(size))
    return norm.eval()


@pytest.mark.parametrize(
    ("layer", "norm", "fuse", "shape"),
    [
        (nn.Conv2d(3, 4, 2), nn.BatchNorm2d(4), utils.fuse_conv_bn_eval, (2, 3, 5, 5)),
        (nn.Conv1d(3, 4, 2, bias=False), nn.BatchNorm1d(4), utils.fuse_conv_bn_eval, (2, 3, 5)),
        (
            nn.ConvTranspose2d(3, 4, 2),
            nn.BatchNorm2d(4),
            lambda layer, norm: utils.fuse_conv_bn_eval(layer, norm, transpose=True),
            (2, 3, 5, 5),
        ),
        (nn.Linear(3, 4), nn.BatchNorm1d(4), utils.fuse_linear_bn_eval, (2, 3)),
    ],
)
def test_the_fused_layer_computes_what_both_do(layer, norm, fuse, shape):
    with pytest.raises(AssertionError, match="Fusion only for eval!"):
        fuse(layer, norm)
    layer, norm = layer.eval(), used(norm)
    x = torch.randn(*shape)
    fused = fuse(layer, norm)
    np.testing.assert_allclose(fused(x).detach(), norm(layer(x)).detach(), rtol=1e-4, atol=1e-5)
    assert type(fused) is type(layer)


def test_sizes_that_do_not_fit():
    with pytest.raises(AssertionError, match=r"got linear\.out_features=4"):
        utils.fuse_linear_bn_eval(nn.Linear(3, 4).eval(), nn.BatchNorm1d(3).eval())
