"""Functions with PyTorch's arguments, against figures that follow from their definition."""

from __future__ import annotations

import numpy as np
import pytest

from weft import torch

X = np.array([[1.0, 5.0, 2.0], [7.0, 2.0, 4.0]])


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: torch.logsumexp(x, 1), np.log(np.exp(X).sum(1))),
        (lambda x: torch.cat([x, x], dim=1).shape, (2, 6)),
        (lambda x: torch.stack([x, x]).shape, (2, 2, 3)),
        (lambda x: torch.where(x > 3, x, 0.0), np.where(X > 3, X, 0)),
        (lambda x: torch.nonzero(x > 4), [[0, 1], [1, 0]]),
        (lambda x: torch.meshgrid(torch.arange(2), torch.arange(3))[0].shape, (2, 3)),
        (lambda x: torch.norm(x, dim=1), np.linalg.norm(X, axis=1)),
        (lambda x: torch.var_mean(x, 1)[0], X.var(1, ddof=1)),
        (lambda x: x.topk(2).indices, [[1, 2], [0, 2]]),
        (lambda x: x.kthvalue(2).values, [2, 4]),
        (lambda x: torch.cummax(x, 1).indices, [[0, 1, 1], [0, 0, 0]]),
        (lambda x: x.gather(1, torch.tensor([[2], [0]])), [[2], [7]]),
        (lambda x: torch.addmm(torch.ones(2, 2), x, x.t(), beta=2, alpha=0.5), 2 + X @ X.T / 2),
        (lambda x: torch.clamp(x, min=2, max=4), X.clip(2, 4)),
        (lambda x: torch.round(x / 3, decimals=1), (X / 3).round(1)),
        (lambda x: torch.div(x, 2, rounding_mode="floor"), X // 2),
        (lambda x: torch.einsum("ij,kj->ik", x, x), X @ X.T),
        (lambda x: torch.linalg.norm(x, "fro"), np.linalg.norm(X)),
        (lambda x: torch.linalg.svd(x, full_matrices=False).S, np.linalg.svd(X)[1]),
        (torch.special.expit, 1 / (1 + np.exp(-X))),
        (lambda x: torch.histc(x, 3, 0, 9), [3, 2, 1]),
        (lambda x: torch.unique(x, return_counts=True)[1], [1, 2, 1, 1, 1]),
        (lambda x: torch.cross(x, x + 1), np.cross(X, X + 1)),
        (lambda x: torch.as_strided(x, (2, 2), (1, 1)), [[1, 5], [5, 2]]),
        (lambda x: x.unfold(1, 2, 1).sum(-1), X[:, :-1] + X[:, 1:]),
        (lambda x: torch.repeat_interleave(x, 2, dim=0), X.repeat(2, 0)),
        (lambda x: x.median(1).values, [2, 4]),
        (lambda x: torch.take(x, torch.tensor([0, 5])), [1, 4]),
        (lambda x: torch.sum(torch.tensor(3.0), 0), 3),
        (lambda x: torch.cumsum(torch.tensor(3.0), 0), 3),
        (lambda x: torch.index_select(torch.tensor(3.0), 0, torch.tensor([0])), 3),
    ],
)
def test_figures(call, expected):
    found = call(torch.tensor(X))
    found = found.numpy() if isinstance(found, torch.Tensor) else found
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_methods_are_the_functions():
    x = torch.tensor(X)
    assert torch.equal(x.add(x, alpha=2), torch.add(x, x, alpha=2))
    assert x.new_zeros(2).dtype == x.dtype
    assert x.type() == "torch.DoubleTensor"
    assert torch.LongTensor([1, 2]).dtype == torch.int64
    assert isinstance(torch.ones(1), torch.FloatTensor)
    assert torch.arange(0, 1, 0.5).tolist() == [0, 0.5]
    assert torch.randint(5, (3,)).shape == (3,)


def test_bad_dimensions_are_named():
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range"):
        torch.ones(2).transpose(0, 3)
    with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 0 with size 2"):
        torch.ones(2)[5]
    with pytest.raises(RuntimeError, match=r"shape '\[3\]' is invalid for input of size 2"):
        torch.ones(2).view(3)


def test_distributions():
    normal = torch.distributions.Normal(torch.zeros(3), torch.ones(3))
    assert normal.rsample().max(0).values.shape == ()
    assert normal.log_prob(torch.zeros(3)).sum(0).item() == pytest.approx(-2.756816, rel=1e-5)
    chosen = torch.distributions.Categorical(logits=torch.zeros(2, 4))
    assert chosen.probs.max(1).values.tolist() == [0.25, 0.25]
    assert chosen.sample().shape == (2,)
    other = torch.distributions.Normal(torch.ones(3), torch.ones(3))
    assert torch.distributions.kl_divergence(normal, other).tolist() == [0.5] * 3
