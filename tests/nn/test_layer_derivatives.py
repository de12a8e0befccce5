"""Derivatives of layers by their input and parameters, in both modes, to second order."""

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.autodiff.check import check_grads

LAYERS = [
    (lambda: nn.Linear(3, 2), (2, 3)),
    (lambda: nn.Conv1d(2, 2, 3, padding=1, padding_mode="reflect"), (1, 2, 5)),
    (lambda: nn.Conv2d(2, 4, 2, stride=2, groups=2), (1, 2, 4, 4)),
    (lambda: nn.ConvTranspose1d(2, 3, 3, stride=2, output_padding=1), (1, 2, 3)),
    (lambda: nn.BatchNorm1d(3), (4, 3)),
    (lambda: nn.BatchNorm1d(3, momentum=None), (4, 3)),
    (lambda: nn.BatchNorm1d(3).eval(), (4, 3)),
    (lambda: nn.InstanceNorm1d(2, affine=True, track_running_stats=True), (2, 2, 4)),
    (lambda: nn.LayerNorm(3), (2, 3)),
    (lambda: nn.GroupNorm(2, 4), (2, 4, 2)),
    (lambda: nn.RMSNorm(3), (2, 3)),
    (lambda: nn.LocalResponseNorm(2), (1, 3, 2)),
    (lambda: nn.PReLU(3), (2, 3)),
    (lambda: nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1)), (2, 3)),
    (lambda: nn.AvgPool1d(2), (1, 2, 4)),
    (lambda: nn.MaxPool1d(2), (1, 2, 4)),
    (lambda: nn.LPPool3d(3.0, 2), (1, 1, 2, 2, 2)),
    (lambda: nn.Upsample(5, mode="linear"), (1, 1, 3)),
    (lambda: nn.Softmax(1), (2, 3)),
    (nn.GLU, (2, 4)),
]


@pytest.mark.parametrize(("make", "shape"), LAYERS)
def test_derivatives(make, shape):
    layer = make().double()
    tensors = {name: p.numpy() for name, p in layer.named_parameters()}
    x = np.abs(np.random.default_rng(1).standard_normal(shape)) + 0.3

    def call(x, tensors):
        return nn.functional_call(layer, tensors, x)

    check_grads(call, [x, tensors], order=2)
    assert all(isinstance(b.numpy(), np.ndarray) for b in layer.buffers())


def test_bilinear_and_embedding():
    bilinear, rng = nn.Bilinear(2, 3, 2).double(), np.random.default_rng(0)
    tensors = {name: p.numpy() for name, p in bilinear.named_parameters()}
    check_grads(
        lambda a, b, t: nn.functional_call(bilinear, t, a, b),
        [rng.random((2, 2)), rng.random((2, 3)), tensors],
    )
    index = wf.tensor([[0, 2], [2, 2]])
    for layer in (nn.Embedding(4, 2), nn.EmbeddingBag(4, 2, mode="mean")):
        table = rng.random((4, 2))
        check_grads(lambda w, m=layer: nn.functional_call(m, {"weight": w}, index), [table])
