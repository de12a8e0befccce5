"""Public random functions: reproducibility, counters, distributions, gradients, and dropout."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.ops import conformance as c
from weft.autodiff.reverse import gradients
from weft.core.errors import WeftError
from weft.core.modes import interpret_with
from weft.core.op import F
from weft.core.rng import Generator, default_generator
from weft.core.tensor import Tensor, make_leaf
from weft.ops.random import draw as wf

N = 20_000
LEVEL = 1e-4  # of significance; seeds are fixed, so a test that passes once passes always


def tensor(data, requires_grad=False, dtype=np.float64):
    return make_leaf(np.array(data, dtype), requires_grad, None)


@pytest.fixture
def generator():
    return Generator(1234)


# -- reproducibility ------------------------------------------------------------------------------

CALLS = {
    "rand": lambda g: wf.rand(3, 4, generator=g),
    "randn": lambda g: wf.randn((5,), dtype="float64", generator=g),
    "rand_like": lambda g: wf.rand_like(tensor([1.0, 2.0]), generator=g),
    "randn_like": lambda g: wf.randn_like(tensor([1, 2], dtype=np.int64), generator=g),
    "uniform": lambda g: wf.uniform(-1.0, 2.0, (7,), generator=g),
    "uniform of tensors": lambda g: wf.uniform(tensor([0.0, 1.0]), 5.0, generator=g),
    "normal": lambda g: wf.normal(1.0, 2.0, 6, generator=g),
    "normal of tensors": lambda g: wf.normal(tensor([0.0, 1.0]), tensor([[1.0]]), generator=g),
    "truncated_normal": lambda g: wf.truncated_normal(shape=(2, 2), generator=g),
    "exponential": lambda g: wf.exponential(3.0, 5, generator=g),
    "gamma": lambda g: wf.gamma(0.7, 2.0, (3,), generator=g),
    "beta": lambda g: wf.beta(0.5, 2.0, (3,), generator=g),
    "dirichlet": lambda g: wf.dirichlet([1.0, 2.0, 3.0], generator=g),
    "randint": lambda g: wf.randint(0, 10, (4,), generator=g),
    "bernoulli": lambda g: wf.bernoulli(0.4, (9,), generator=g),
    "categorical": lambda g: wf.categorical([0.0, 1.0, 2.0], 6, generator=g),
    "multinomial": lambda g: wf.multinomial([1.0, 2.0, 3.0], 2, generator=g),
    "permutation": lambda g: wf.permutation(9, generator=g),
    "permutation of a tensor": lambda g: wf.permutation(tensor([1, 2, 3]), generator=g),
    "orthogonal": lambda g: wf.orthogonal(3, 2, generator=g),
    "dropout": lambda g: F.dropout(tensor(np.ones(20)), generator=g),
    "gumbel_softmax": lambda g: F.gumbel_softmax(tensor([0.0, 1.0]), generator=g),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_seed_fixes_the_draw_and_the_next_draw_differs(call):
    generator = Generator(5)
    first, second = call(generator).numpy(), call(generator).numpy()
    np.testing.assert_array_equal(first, call(Generator(5)).numpy())
    assert first.shape == second.shape
    assert not np.array_equal(first, call(Generator(6)).numpy()) or first.size < 4


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_interpreter_draws_the_same_numbers_and_counters(call):
    eager, traced = Generator(5), Generator(5)
    expected = call(eager).numpy()
    with interpret_with(c.Recorder(None)):
        found = call(traced).numpy()
    np.testing.assert_array_equal(found, expected)
    assert traced.get_state() == eager.get_state()


def test_the_default_generator_is_seeded_saved_and_restored():
    before = wf.get_rng_state()
    try:
        wf.manual_seed(3)
        state = wf.get_rng_state()
        first = wf.rand(4).numpy()
        wf.set_rng_state(state)
        np.testing.assert_array_equal(wf.rand(4).numpy(), first)
        np.testing.assert_array_equal(wf.rand(4, generator=Generator(3)).numpy(), first)
    finally:
        default_generator.set_state(before)


def test_counters_depend_on_shapes_not_on_values():
    def counter_after(p):
        generator = Generator(0)
        wf.bernoulli(tensor(p), generator=generator)
        return generator.get_state()["counter"]

    assert counter_after([0.0, 0.5, 1.0]) == counter_after([1.0, 1.0, 1.0])


def test_every_random_operator_counts_its_blocks():
    for op in c.op_module.registry.values():
        assert (op.kind == "random") == (op.blocks_rule is not None), op


def test_a_refused_call_draws_nothing(generator):
    before = generator.get_state()
    for bad in (
        lambda: wf.rand(-1, generator=generator),
        lambda: wf.normal(0.0, -1.0, 3, generator=generator),
        lambda: wf.randint(3, 3, generator=generator),
        lambda: wf.rand(3, dtype="int64", generator=generator),
    ):
        with pytest.raises(WeftError):
            bad()
    assert generator.get_state() == before


def test_forked_generators_with_wide_keys_can_draw(generator):
    child = generator.fork(3)
    assert not np.array_equal(
        wf.rand(8, generator=child).numpy(), wf.rand(8, generator=generator).numpy()
    )
    again = wf.rand(8, generator=Generator(1234).fork(3))
    np.testing.assert_array_equal(wf.rand(8, generator=generator.fork(3)).numpy(), again.numpy())


# -- what is made ---------------------------------------------------------------------------------


def test_shapes_dtypes_and_leaves(generator):
    assert wf.rand(2, 3, generator=generator).shape == (2, 3)
    assert wf.rand(generator=generator).shape == ()
    assert wf.randn(0, 3, generator=generator).shape == (0, 3)
    assert wf.rand(2, generator=generator).dtype == np.float32
    assert wf.randn(2, dtype="float16", generator=generator).dtype == np.float16
    assert wf.randint(9, shape=2, dtype="uint8", generator=generator).dtype == np.uint8
    assert wf.bernoulli(tensor([0.5]), generator=generator).dtype == np.float64
    assert wf.bernoulli(0.5, 3, dtype=bool, generator=generator).dtype == np.bool_
    assert wf.permutation(3, generator=generator).dtype == np.int64
    leaf = wf.randn(3, requires_grad=True, generator=generator)
    assert leaf.is_leaf
    assert leaf.requires_grad
    assert wf.rand_like(tensor([1, 2], dtype=np.int32), generator=generator).dtype == np.float32


def test_numbers_and_categories_lie_in_range(generator):
    assert set(wf.randint(3, shape=200, generator=generator).numpy()) == {0, 1, 2}
    assert set(wf.randint(-2, 1, 200, generator=generator).numpy()) == {-2, -1, 0}
    low, high = np.array([0.0, 10.0]), np.array([1.0, 11.0])
    drawn = wf.uniform(tensor(low), tensor(high), (500, 2), generator=generator).numpy()
    assert ((drawn >= low) & (drawn <= high)).all()
    cut = wf.truncated_normal(a=0.5, b=1.0, shape=500, generator=generator).numpy()
    assert ((cut >= 0.5) & (cut <= 1.0)).all()


def test_categorical_shapes_and_impossible_classes(generator):
    logits = tensor(np.zeros((2, 5, 3)))
    assert wf.categorical(logits, generator=generator).shape == (2, 5)
    assert wf.categorical(logits, 7, generator=generator).shape == (2, 5, 7)
    never = wf.categorical([0.0, -np.inf], 100, generator=generator).numpy()
    assert (never == 0).all()
    distinct = wf.multinomial([1.0, 1.0, 1.0], 3, generator=generator).numpy()
    assert sorted(distinct) == [0, 1, 2]


def test_permutation_of_a_tensor_keeps_rows_and_gradients(generator):
    x = tensor(np.arange(12.0).reshape(4, 3), requires_grad=True)
    y = wf.permutation(x, generator=generator)
    assert sorted(map(tuple, y.numpy())) == sorted(map(tuple, x.numpy()))
    columns = wf.permutation(x, axis=1, generator=generator).numpy()
    assert sorted(map(tuple, columns.T)) == sorted(map(tuple, x.numpy().T))
    (g,) = gradients([F.sum(y)], [x])
    np.testing.assert_array_equal(g.numpy(), np.ones((4, 3)))


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 3, 2)])
def test_orthogonal_rows_or_columns(generator, shape):
    q = wf.orthogonal(shape, gain=2.0, dtype="float64", generator=generator).numpy()
    assert q.shape == shape
    m = q.reshape(shape[0], -1) / 2
    gram = m @ m.T if m.shape[0] <= m.shape[1] else m.T @ m
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-12)


# -- distributions --------------------------------------------------------------------------------

CONTINUOUS = {
    "uniform": (lambda g: wf.uniform(2.0, 5.0, N, generator=g), stats.uniform(2, 3)),
    "normal": (lambda g: wf.normal(3.0, 2.0, N, generator=g), stats.norm(3, 2)),
    "normal of tensors": (
        lambda g: wf.normal(tensor(3.0), tensor(2.0), N, generator=g),
        stats.norm(3, 2),
    ),
    "truncated": (
        lambda g: wf.truncated_normal(0.0, 1.0, -1.0, 0.5, N, generator=g),
        stats.truncnorm(-1, 0.5),
    ),
    "exponential": (lambda g: wf.exponential(4.0, N, generator=g), stats.expon(scale=0.25)),
    "gamma": (lambda g: wf.gamma(0.6, 3.0, N, generator=g), stats.gamma(0.6, scale=3)),
    "beta": (lambda g: wf.beta(0.6, 2.0, N, generator=g), stats.beta(0.6, 2)),
    "dirichlet": (
        lambda g: wf.dirichlet([1.0, 2.0, 3.0], (N, 3), generator=g)[:, 1],
        stats.beta(2, 4),
    ),
}


@pytest.mark.parametrize(("call", "law"), CONTINUOUS.values(), ids=CONTINUOUS)
def test_continuous_draws_follow_their_distribution(generator, call, law):
    assert stats.kstest(call(generator).numpy().astype(np.float64), law.cdf).pvalue > LEVEL


def test_discrete_draws_follow_their_distribution(generator):
    ones = wf.bernoulli(0.3, N, generator=generator).numpy().sum()
    assert stats.binomtest(int(ones), N, 0.3).pvalue > LEVEL
    drawn = wf.categorical(np.log([0.2, 0.5, 0.3]), N, generator=generator).numpy()
    expected = N * np.array([0.2, 0.5, 0.3])
    assert stats.chisquare(np.bincount(drawn), expected).pvalue > LEVEL
    first = [wf.multinomial([1.0, 3.0], 1, generator=generator).item() for _ in range(400)]
    assert stats.binomtest(sum(first), 400, 0.75).pvalue > LEVEL


# -- gradients ------------------------------------------------------------------------------------


def test_reparameterised_gradients_reach_the_parameters():
    mean, std = tensor([0.5, -1.0], True), tensor([1.0, 3.0], True)
    x = wf.normal(mean, std, generator=Generator(8))
    z = (x.numpy() - mean.numpy()) / std.numpy()
    d_mean, d_std = gradients([F.sum(x)], [mean, std])
    np.testing.assert_allclose(d_mean.numpy(), 1.0)
    np.testing.assert_allclose(d_std.numpy(), z)
    low, high = tensor(1.0, True), tensor(3.0, True)
    x = wf.uniform(low, high, (4,), generator=Generator(8))
    u = (x.numpy() - 1) / 2
    d_low, d_high = gradients([F.sum(x)], [low, high])
    np.testing.assert_allclose([d_low.item(), d_high.item()], [np.sum(1 - u), np.sum(u)])
    rate = tensor(2.0, True)
    x = wf.exponential(rate, 3, generator=Generator(8))
    (d_rate,) = gradients([F.sum(x)], [rate])
    np.testing.assert_allclose(d_rate.item(), -x.numpy().sum() / 2)


# -- dropout and Gumbel ---------------------------------------------------------------------------


def test_dropout_scales_what_it_keeps(generator):
    x = tensor(np.ones(N), requires_grad=True)
    y = F.dropout(x, 0.3, generator=generator)
    kept = y.numpy() != 0
    np.testing.assert_allclose(y.numpy()[kept], 1 / 0.7)
    assert stats.binomtest(int(kept.sum()), N, 0.7).pvalue > LEVEL
    (g,) = gradients([F.sum(y)], [x])
    np.testing.assert_array_equal(g.numpy(), y.numpy())
    assert not F.dropout(x, 1.0, generator=generator).numpy().any()


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_channels_are_dropped_together(generator, spatial):
    name = f"dropout{spatial}d"
    x = tensor(np.ones((6, 5, *(3,) * spatial)))
    y = getattr(F, name)(x, 0.5, generator=generator).numpy().reshape(30, -1)
    assert set(np.unique(y)) == {0.0, 2.0}
    assert (y == y[:, :1]).all()
    single = getattr(F, name)(tensor(np.ones((40, *(2,) * spatial))), generator=generator)
    rows = single.numpy().reshape(40, -1)
    assert (rows == rows[:, :1]).all()
    assert 0 < np.count_nonzero(rows[:, 0]) < 40


def test_alpha_dropout_keeps_mean_and_variance(generator):
    x = wf.randn(N, generator=generator)
    y = F.alpha_dropout(x, 0.4, True, generator=generator).numpy()
    assert abs(y.mean()) < 0.05
    assert abs(y.var() - 1) < 0.1
    assert not F.alpha_dropout(x, 1.0, True).numpy().any()
    channels = tensor(np.ones((8, 9, 4)))
    z = F.feature_alpha_dropout(channels, 0.5, True, generator=generator).numpy()
    assert (z == z[:, :, :1]).all()
    assert len(np.unique(z)) == 2


def test_gumbel_softmax_draws_in_proportion(generator):
    p = np.array([0.2, 0.5, 0.3])
    logits = tensor(np.tile(np.log(p), (N, 1)), requires_grad=True)
    hard = F.gumbel_softmax(logits, 0.7, True, generator=generator)
    assert set(np.unique(np.round(hard.numpy(), 12))) == {0.0, 1.0}
    assert stats.chisquare(hard.numpy().sum(axis=0), N * p).pvalue > LEVEL
    (g,) = gradients([F.sum(hard * hard)], [logits])
    assert np.abs(g.numpy()).max() > 0


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: wf.rand("a"), TypeError, "'a'"),
        (lambda: wf.rand(2, generator=7), TypeError, "Received: int 7"),
        (lambda: wf.normal([1, 2], 1.0), TypeError, "mean .*Received: int64"),
        (lambda: wf.normal(tensor([1.0]), -1.0), ValueError, "std .*Received: -1"),
        (lambda: wf.normal(tensor([1.0, 2.0]), 1.0, (3,)), ValueError, r"\(2,\)"),
        (lambda: wf.exponential(0.0), ValueError, "rate .*Received: 0"),
        (lambda: wf.bernoulli(1.5), ValueError, "1.5"),
        (lambda: wf.gamma(-1.0), ValueError, "alpha"),
        (lambda: wf.dirichlet(1.0), ValueError, r"\(\.\.\., K\)"),
        (lambda: wf.orthogonal(3), ValueError, r"shape \(3,\)"),
        (lambda: wf.permutation("abc"), TypeError, "Received: str"),
        (lambda: wf.permutation(tensor(1.0)), IndexError, "0-d"),
        (lambda: wf.multinomial([1.0, 0.0], 2), ValueError, "2 different"),
        (lambda: wf.rand(2, device="tpu"), ValueError, "tpu"),
        (lambda: wf.randint(2, requires_grad=True), TypeError, "requires_grad"),
    ],
)
def test_errors_say_what_was_received(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_draws_are_tensors():
    assert isinstance(wf.rand(2), Tensor)
