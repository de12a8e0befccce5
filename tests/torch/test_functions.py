"""Functions with PyTorch's arguments, against figures that follow from their definition."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from weft import torch
from weft.faces import serving

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


def test_kernels_give_their_statistics():
    x = torch.tensor(X[:, :, None])
    out, mean, rstd = torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
    np.testing.assert_allclose(mean.numpy(), X.mean(0))
    np.testing.assert_allclose(rstd.numpy(), 1 / np.sqrt(X.var(0) + 1e-5))
    np.testing.assert_allclose(out.numpy()[..., 0], (X - X.mean(0)) / np.sqrt(X.var(0) + 1e-5))
    out, mean, rstd = torch.native_layer_norm(torch.tensor(X), (3,), None, None, 0.5)
    np.testing.assert_allclose(mean.numpy(), X.mean(1, keepdims=True))
    np.testing.assert_allclose(rstd.numpy(), 1 / np.sqrt(X.var(1, keepdims=True) + 0.5))
    out, mean, _ = torch.native_group_norm(x, None, None, 2, 3, 1, 3, 1e-5)
    np.testing.assert_allclose(mean.numpy(), X)
    assert out.abs().max().item() == 0


def test_kernels_take_modes_as_numbers():
    image = torch.arange(4.0).reshape(1, 1, 2, 2)
    grid = torch.tensor([[[[-1.0, -1.0], [5.0, 5.0]]]])
    assert torch.grid_sampler_2d(image, grid, 1, 1, True).flatten().tolist() == [0, 3]
    assert torch.grid_sampler_2d(image, grid, 0, 0, True).flatten().tolist() == [0, 0]


def test_places_of_a_fixed_number():
    x = torch.tensor([[0, 1], [2, 3]])
    assert torch.nonzero_static(x, size=2).tolist() == [[0, 1], [1, 0]]
    assert torch.nonzero_static(x, size=4, fill_value=9).tolist()[-1] == [9, 9]
    assert torch.nonzero_static(torch.zeros(()), size=2).shape == (2, 0)


def test_gradients_of_levels_and_of_what_is_drawn():
    level = torch.tensor([0.25, 0.5], requires_grad=True)
    torch.quantile(torch.tensor([1.0, 2.0, 4.0]), level).sum().backward()
    assert level.grad.tolist() == [2, 4]
    chance = torch.tensor([0.5], requires_grad=True)
    torch.bernoulli(chance).sum().backward()
    assert chance.grad.tolist() == [0]


def test_lists_of_tensors_stay_lists():
    points = torch.tensor([[0.5, 0.5], [1.5, 2.5]])
    edges = [torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0, 1.0, 2.0, 3.0])]
    counts, _ = torch.histogramdd(points, edges)
    assert counts.tolist() == [[1, 0, 0], [0, 0, 1]]
    places = [torch.tensor([0.0, 1.0, 3.0]), torch.tensor([0.0, 2.0, 4.0, 6.0])]
    x = torch.arange(12.0).reshape(3, 4)
    assert torch.gradient(x, spacing=places)[1].tolist() == [[0.5] * 4] * 3
    assert torch.gradient(x, spacing=None, dim=1)[0].tolist() == [[1] * 4] * 3


def test_dots_that_the_result_leaves_out_are_summed():
    x = torch.ones(2, 3, 4)
    assert torch.einsum("...ij->ij", x).tolist() == [[2] * 4] * 3


def test_symmetric_matrices_are_read_by_their_lower_triangle():
    a = torch.tensor([[2.0, 9.0], [0.0, 4.0]])
    assert torch.linalg.pinv(a, hermitian=True).tolist() == [[0.5, 0], [0, 0.25]]
    assert torch.linalg.matrix_rank(a, hermitian=True).item() == 2
    found = torch.linalg.lstsq(a, torch.eye(2), driver="gelsd")
    np.testing.assert_allclose(found.singular_values, np.linalg.svd(a.numpy())[1], rtol=1e-6)


def test_masked_functions_take_no_dimensions_and_corrections():
    x, mask = torch.tensor([1.0, 5.0, 3.0]), torch.tensor([True, False, True])
    assert torch.masked.var(x, mask=mask, correction=0).item() == 1
    assert torch.masked.sum(torch.tensor(3.0), 0, mask=torch.tensor(True)).item() == 3
    assert torch.masked.logaddexp(x, x, input_mask=mask, other_mask=~mask).tolist() == [1, 5, 3]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: torch.arange(0.0, -8.5, -4.0, dtype=torch.int64), [0, -4]),
        (lambda: torch.linspace(4.3, -3, 4, dtype=torch.int64), [4, 1, 0, -3]),
        (lambda: torch.logspace(0, 2.9, 3, dtype=torch.int64), [1, 10, 100]),
        (lambda: torch.addmv(torch.tensor([1]), torch.tensor([[2]]), torch.tensor([3]), beta=0.5),
         [6]),
        (lambda: torch.nanmedian(torch.tensor([[3, 1, 2]]), 1).values, [2]),
        (lambda: torch.cov(torch.tensor([1, 3]), aweights=torch.tensor([0.5, 0.5])), 2),
        (lambda: torch.nn.functional.avg_pool1d(torch.tensor([[[1, 2]]]), 2), [[[1]]]),
        (lambda: torch.masked.logsumexp(torch.tensor([-8, 6])), 6),
    ],
)  # fmt: skip
def test_whole_numbers_stay_whole(call, expected):
    found = call()
    np.testing.assert_array_equal(found.numpy(), expected)
    assert found.dtype == torch.int64 or found.ndim == 0


def test_scatter_with_a_reduction():
    x, index = torch.ones(2, 2), torch.tensor([[0, 0], [1, 0]])
    added = torch.scatter(x, 1, index, torch.ones(2, 2), reduce="add")
    assert added.tolist() == [[3, 1], [2, 2]]
    assert x.scatter(1, index, 2.0, reduce="multiply").tolist() == [[4, 1], [2, 2]]
    with pytest.raises(RuntimeError, match="either add or multiply"):
        torch.scatter(x, 1, index, x, reduce="mean")


MATRIX, VECTOR, BATCH = torch.eye(2) + 1, torch.ones(2), torch.ones(1, 2, 2)


@pytest.mark.parametrize(
    ("function", "operands"),
    [
        (torch.addmm, {"input": MATRIX, "mat1": MATRIX, "mat2": MATRIX}),
        (torch.addmv, {"input": VECTOR, "mat": MATRIX, "vec": VECTOR}),
        (torch.baddbmm, {"input": BATCH, "batch1": BATCH, "batch2": BATCH}),
        (torch.bmm, {"input": BATCH, "mat2": BATCH}),
        (torch.dot, {"input": VECTOR, "tensor": VECTOR}),
        (torch.pow, {"input": MATRIX, "exponent": 2}),
        (torch.isin, {"elements": MATRIX, "test_elements": VECTOR}),
        (torch.linalg.inv, {"A": MATRIX}),
        (torch.nn.functional.cosine_similarity, {"x1": MATRIX, "x2": MATRIX}),
    ],
)
def test_operands_by_the_names_of_pytorch(function, operands):
    assert function(**operands).tolist() == function(*operands.values()).tolist()


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (torch.hann_window(4), np.hanning(5)[:-1]),
        (torch.hann_window(5, periodic=False), np.hanning(5)),
        (torch.hamming_window(4), np.hamming(5)[:-1]),
        (torch.hamming_window(5, False, 0.5, 0.5), np.hanning(5)),
        (torch.blackman_window(4), np.blackman(5)[:-1]),
        (torch.bartlett_window(4, dtype=torch.float64), np.bartlett(5)[:-1]),
        (torch.kaiser_window(4), np.kaiser(5, 12)[:-1]),
        (torch.kaiser_window(5, False, beta=3.0), np.kaiser(5, 3)),
        (torch.hann_window(0), []),
        (torch.hann_window(1), [1]),
    ],
)
def test_windows_by_their_old_names(window, expected):
    np.testing.assert_allclose(window.numpy(), expected, atol=1e-6)


def test_windows_refuse_what_they_do_not_take():
    with pytest.raises(TypeError, match="hann_window"):
        torch.hann_window(4, True, 0.5)
    with pytest.raises(TypeError, match="kaiser_window"):
        torch.kaiser_window(4, True, 3.0, 4.0)


def test_from_dlpack_shares_memory():
    array = np.arange(3.0)
    tensor = torch.from_dlpack(array)
    array[0] = 5
    assert tensor.tolist() == [5, 1, 2]


def test_modules_of_distributions():
    with serving({"torch": "weft.torch"}):
        for name, held in (
            ("normal", "Normal"),
            ("studentT", "StudentT"),
            ("transforms", "TanhTransform"),
            ("constraints", "positive"),
            ("kl", "kl_divergence"),
            ("lowrank_multivariate_normal", "LowRankMultivariateNormal"),
        ):
            assert hasattr(import_module(f"torch.distributions.{name}"), held)
        with pytest.raises(ModuleNotFoundError, match="does not serve it"):
            import_module("torch.distributions.nowhere")
