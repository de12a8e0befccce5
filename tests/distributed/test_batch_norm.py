"""Batch normalisation over the rows of all processes; on several of them see training.py."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft import distributed as dist


@pytest.mark.parametrize("shape", [(6, 3), (6, 3, 4), (6, 3, 2, 2)])
def test_alone_it_is_batch_normalisation(shape):
    kinds = {2: wf.nn.BatchNorm1d, 3: wf.nn.BatchNorm1d, 4: wf.nn.BatchNorm2d}
    plain, sync = kinds[len(shape)](3), dist.SyncBatchNorm(3)
    for _ in range(2):
        x = wf.randn(*shape)
        a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
        weights = wf.randn(*shape)
        (plain(a) * weights).sum().backward()
        (sync(b) * weights).sum().backward()
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-4, atol=1e-5)
    for name, value in plain.state_dict().items():
        np.testing.assert_allclose(
            value.numpy(), sync.state_dict()[name].numpy(), rtol=1e-4, atol=1e-6
        )
    plain.eval(), sync.eval()
    np.testing.assert_allclose(plain(x).numpy(), sync(x).numpy(), rtol=1e-5, atol=1e-7)


def test_layers_of_a_model_are_replaced():
    inner = wf.nn.Sequential(wf.nn.Linear(2, 3), wf.nn.BatchNorm1d(3, affine=False))
    model = wf.nn.Sequential(inner, wf.nn.BatchNorm1d(3, momentum=None, track_running_stats=False))
    before = dict(model.state_dict())
    assert dist.synchronize_batch_norm(model) is model
    kinds = [type(m).__name__ for m in model.modules()]
    assert kinds.count("SyncBatchNorm") == 2
    assert list(model.state_dict()) == list(before)
    assert isinstance(dist.synchronize_batch_norm(wf.nn.BatchNorm2d(2)), dist.SyncBatchNorm)
    model(wf.randn(4, 2))
