"""Losses and attention: stability, edge cases, gradients, cost, and agreement with PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from tests.ops import conformance as c
from tests.ops.references import nn, nn_losses
from weft.autodiff.reverse import gradients
from weft.core.modes import interpret_with
from weft.core.op import F, composites
from weft.core.samples import Sampler
from weft.core.tensor import make_leaf


def tensor(data, requires_grad=False, dtype=np.float64):
    return make_leaf(np.array(data, dtype), requires_grad, None)


def grad(loss, x):
    return gradients([loss], [x])[0].numpy()


# -- stability ------------------------------------------------------------------------------------

HUGE = np.array([[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4]], np.float32)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_huge_logits(name):
    x = tensor(HUGE, requires_grad=True, dtype=np.float32)
    y = getattr(F, name)(x)
    expected = getattr(special, name)(HUGE.astype(np.float64), axis=1)
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-3)
    assert np.isfinite(grad(F.sum(y * y), x)).all()


def test_softmax_sums_to_one_for_large_close_logits():
    x = tensor(1e4 + np.linspace(0, 1, 100), dtype=np.float32)
    assert abs(F.softmax(x).numpy().sum(dtype=np.float64) - 1) < 1e-6


def test_cross_entropy_of_huge_logits():
    x = tensor(HUGE, requires_grad=True, dtype=np.float32)
    loss = F.cross_entropy(x, tensor([1, 1], dtype=np.int64), reduction="none")
    np.testing.assert_allclose(loss.numpy(), [2e4, np.log(2)], rtol=1e-3)
    assert np.isfinite(grad(F.sum(loss), x)).all()


def test_binary_cross_entropy_of_huge_logits():
    x = tensor([1e4, -1e4, 1e4, -1e4, 0.0], requires_grad=True, dtype=np.float32)
    y = tensor([1, 0, 0, 1, 1], dtype=np.float32)
    loss = F.binary_cross_entropy_with_logits(x, y, reduction="none")
    np.testing.assert_allclose(loss.numpy(), [0, 0, 1e4, 1e4, np.log(2)], rtol=1e-6)
    np.testing.assert_allclose(grad(F.sum(loss), x), [0, 0, 1, -1, -0.5], atol=1e-6)


def test_binary_cross_entropy_at_certainty_still_learns():
    p = tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True, dtype=np.float32)
    y = tensor([1.0, 0.0, 0.0, 1.0], dtype=np.float32)
    loss = F.binary_cross_entropy(p, y, reduction="none")
    np.testing.assert_allclose(loss.numpy(), [100, 100, 0, 0])
    g = grad(F.sum(loss), p)
    assert np.isfinite(g).all()
    assert g[0] < 0 < g[1]


# -- cross entropy --------------------------------------------------------------------------------


def test_cross_entropy_gradient_is_softmax_minus_one_hot():
    x = tensor(np.random.default_rng(0).normal(size=(4, 3)), requires_grad=True)
    target = np.array([0, 2, 1, 1])
    g = grad(F.cross_entropy(x, tensor(target, dtype=np.int64)), x)
    np.testing.assert_allclose(g, (special.softmax(x.numpy(), axis=1) - np.eye(3)[target]) / 4)


def test_ignored_positions_may_hold_anything():
    logits = np.array([[1.0, 2.0], [np.nan, np.inf]])
    target = tensor([0, -100], dtype=np.int64)
    loss = F.cross_entropy(tensor(logits), target)
    np.testing.assert_allclose(loss.item(), np.log1p(np.exp(1.0)))


def test_indices_one_hot_and_log_probabilities_agree():
    x = tensor(np.random.default_rng(0).normal(size=(4, 3)))
    target = np.array([0, 2, 1, 1])
    by_index = F.cross_entropy(x, tensor(target, dtype=np.int64)).item()
    by_row = F.cross_entropy(x, tensor(np.eye(3)[target])).item()
    by_nll = F.nll_loss(F.log_softmax(x, 1), tensor(target, dtype=np.int64)).item()
    np.testing.assert_allclose([by_row, by_nll], by_index)


def test_class_weights_receive_gradients():
    x, w = tensor(np.eye(2)), tensor([1.0, 2.0], requires_grad=True)
    loss = F.cross_entropy(x, tensor([0, 1], dtype=np.int64), w, reduction="sum")
    np.testing.assert_allclose(grad(loss, w), np.log1p(np.exp(-1.0)))


def test_lists_are_accepted():
    loss = F.cross_entropy([[0.0, 0.0]], [1])
    np.testing.assert_allclose(loss.item(), np.log(2), rtol=1e-6)
    assert F.mse_loss([1.0, 2.0], [1.0, 4.0]).item() == 2.0


class Counter:
    """An interpreter that runs eagerly and counts operations."""

    def __init__(self):
        self.names = []

    def apply(self, op, inputs, attrs):
        self.names.append(op.name)
        return op.specialized.execute(inputs, attrs)


@pytest.mark.parametrize(
    ("most", "call"),
    [
        (7, composites["log_softmax"]),
        (6, composites["softmax"]),
        (8, lambda x: F.cross_entropy(x, tensor([0, 1], dtype=np.int64))),
        (7, lambda x: F.layer_norm(x, 3)),
        (3, lambda x: F.mse_loss(x, tensor(np.ones((2, 3))))),
        (5, lambda x: F.binary_cross_entropy_with_logits(x, tensor(np.ones((2, 3))))),
    ],
)
def test_few_operations(most, call):
    counter = Counter()
    with interpret_with(counter):
        call(tensor(np.ones((2, 3))))
    assert len(counter.names) <= most, counter.names


# -- regression -----------------------------------------------------------------------------------


def test_huber_has_its_second_derivative_at_zero():
    x = tensor([0.0, 0.5, 2.0], requires_grad=True)
    loss = F.huber_loss(x, tensor(np.zeros(3)), reduction="sum")
    (g,) = gradients([loss], [x], create_graph=True)
    np.testing.assert_allclose(g.numpy(), [0.0, 0.5, 1.0])
    np.testing.assert_allclose(grad(F.sum(g), x), [1.0, 1.0, 0.0])


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "kl_div"])
def test_a_column_against_a_row_is_refused_with_a_remedy(name):
    with pytest.raises(ValueError, match=rf"{name}: .*\(5, 1\) and \(5,\).*x\.reshape\(\(5,\)\)"):
        getattr(F, name)(tensor(np.zeros((5, 1))), tensor(np.zeros(5)))


# -- ctc ------------------------------------------------------------------------------------------


def test_impossible_alignments_have_no_gradient():
    x = tensor(special.log_softmax(np.ones((2, 1, 3)), axis=2), requires_grad=True)
    loss = F.ctc_loss(x, [[1, 1]], [2], [2])
    assert np.isposinf(loss.item())
    assert not grad(loss, x).any()


def test_long_sequences_stay_finite():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(120, 2, 5)) * 20
    x = tensor(special.log_softmax(scores, axis=2), requires_grad=True, dtype=np.float32)
    targets = rng.integers(1, 5, (2, 30))
    loss = F.ctc_loss(x, targets, [120, 100], [30, 12], reduction="none")
    assert np.isfinite(loss.numpy()).all()
    g = grad(F.sum(loss), x)
    # Each frame is passed by exactly one state: d loss / d log_probs sums to -1 over classes.
    np.testing.assert_allclose(g[:100].sum(axis=2), -1, atol=1e-3)
    assert not g[100:, 1].any()


def test_half_precision_works_throughout():
    x = tensor(special.log_softmax(np.zeros((4, 1, 3)), axis=2), dtype=np.float16)
    loss = F.ctc_loss(x, [[1]], [4], [1])
    assert loss.dtype == np.float16
    np.testing.assert_allclose(loss.item(), np.log(81 / 10), rtol=1e-2)


# -- attention ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_a_query_that_sees_nothing_gives_zeros_and_clean_gradients(kind):
    rng = np.random.default_rng(0)
    q, k, v = (tensor(rng.normal(size=(3, 4)), requires_grad=True) for _ in range(3))
    seen = np.array([[True, False, True], [False] * 3, [True] * 3])
    mask = tensor(seen, dtype=bool) if kind == "bool" else tensor(np.where(seen, 0.0, -np.inf))
    out = F.scaled_dot_product_attention(q, k, v, mask)
    assert not out.numpy()[1].any()
    for g in gradients([F.sum(out * out)], [q, k, v]):
        assert np.isfinite(g.numpy()).all()


def test_causal_attention_does_not_look_ahead():
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 5, 4))
    before = F.scaled_dot_product_attention(tensor(q), tensor(k), tensor(v), is_causal=True).numpy()
    k[3:], v[3:] = 9.0, 9.0
    after = F.scaled_dot_product_attention(tensor(q), tensor(k), tensor(v), is_causal=True).numpy()
    np.testing.assert_array_equal(before[:3], after[:3])
    assert not np.allclose(before[3:], after[3:])


# -- PyTorch --------------------------------------------------------------------------------------

OWN = ("hinge_loss", "sigmoid_focal_loss", "gumbel_softmax")  # PyTorch has none, or draws
SAMPLE_RULES = {**nn.COMPOSITE_SAMPLES, **nn_losses.COMPOSITE_SAMPLES}
PEER_CASES = [
    (name, sample)
    for name, rule in SAMPLE_RULES.items()
    if name not in OWN
    for sample in rule(Sampler())
]


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("name", "sample"), PEER_CASES, ids=[f"{name}-{i}" for i, (name, _) in enumerate(PEER_CASES)]
)
def test_values_and_gradients_are_those_of_pytorch(name, sample):
    torch = pytest.importorskip("torch")
    given = c.Arguments.of(sample)
    theirs = given.map(lambda array: torch.tensor(array.copy()))
    ours = given.map(c.to_leaf)
    x, y = theirs.args[0], ours.args[0]
    if x.is_floating_point():
        x.requires_grad_()
    their_function, our_function = getattr(torch.nn.functional, name), composites[name]
    if name == "ctc_loss":  # PyTorch's gradient holds only behind a log_softmax
        their_function = after(their_function, lambda logits: logits.log_softmax(-1))
        our_function = after(our_function, F.log_softmax)
    try:
        expected = theirs.call(their_function)
    except (TypeError, ValueError, RuntimeError) as error:
        pytest.skip(f"PyTorch does not take these arguments: {error}")
    found = ours.call(our_function)
    np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), rtol=1e-6, atol=1e-7)
    if sample.grad and x.requires_grad:
        weights = np.cos(np.arange(found.size)).reshape(found.shape)
        (expected * torch.tensor(weights)).sum().backward()
        np.testing.assert_allclose(
            grad(F.sum(found * weights), y), x.grad.numpy(), rtol=1e-6, atol=1e-7
        )


def after(function, first):
    """Return a function that applies another one to its first argument before all else."""
    return lambda x, *args, **kwargs: function(first(x), *args, **kwargs)
