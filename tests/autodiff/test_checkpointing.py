"""checkpoint: the same results, less memory, in every surrounding."""

import gc
import tracemalloc
import weakref
from functools import partial

import numpy as np
import pytest

import weft as wf
from weft.autodiff import policies
from weft.core.errors import ArgumentTypeError, GradientError

F = wf.nn.functional
POLICIES = {
    "None": None,
    "nothing": "nothing",
    "dots": "dots",
    "everything": "everything",
    "names": policies.names("hidden"),
    "function": lambda op, *types, **attrs: op.name == "tanh",
}


def array(*shape, seed=0):
    return wf.tensor(np.random.default_rng(seed).normal(size=shape))


def leaf(*shape, seed=0):
    return wf.tensor(np.random.default_rng(seed).normal(size=shape), requires_grad=True)


class Block:
    """A function of x with weights from outside, random numbers and operations of every kind."""

    def __init__(self):
        self.w, self.b = leaf(4, 4), leaf(4, seed=1)

    def __call__(self, x):
        h = F.layer_norm(wf.tanh(x @ self.w + self.b), (4,))
        h = wf.checkpoint_name(F.dropout(h, 0.5), "hidden")
        left, right = wf.split(h, (2, 2), axis=1)
        with wf.no_grad():
            scale = (h * h).mean()
        ranked = wf.sort(h, axis=1) * scale
        return (
            (wf.exp(left) * right).sum()
            + F.relu(h @ self.w).sum()
            + wf.cumsum(ranked, axis=1).mean()
        )

    def gradients(self, fn, x):
        wf.manual_seed(3)
        loss = fn(x)
        loss.backward()
        found = [loss.item(), self.w.grad.numpy(), self.b.grad.numpy()]
        self.w.grad = self.b.grad = None
        return found


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_the_same_gradients(policy):
    block, x = Block(), array(3, 4)
    expected = block.gradients(block, x)
    found = block.gradients(wf.checkpoint(block, policy), x)
    assert found[0] == expected[0]
    for a, b in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_the_same_gradients_in_graphs(policy):
    block, value = Block(), array(3, 4).numpy()

    def run(fn):
        wf.manual_seed(3)
        with wf.Graph() as graph:
            x = wf.placeholder((3, 4), wf.float64, name="x")
            loss = fn(x)
            grads = wf.gradients(loss, [x, block.w, block.b])
            second = wf.gradients((grads[1] ** 2).sum(), [block.w, block.b])
        return wf.Session(graph).run([loss, *grads, *second], {x: value})

    for a, b in zip(run(wf.checkpoint(block, policy)), run(block), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_graphs_compute_again_also_when_optimised():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float64, name="x")
        gradient = wf.grad(wf.checkpoint(lambda x: wf.tanh(wf.cos(x)).sum()))(x)
    optimised = graph.optimize([gradient])
    assert str(optimised).count("F.cos(") == 1  # of the copy; the original is not needed
    assert "checkpoint_name" in str(optimised)


NESTED = {
    "plain": lambda x: wf.sin(wf.cos(x) * x) * 2,
    "nested": wf.checkpoint(
        lambda x: wf.checkpoint(lambda y: wf.sin(wf.checkpoint(lambda z: wf.cos(z) * z)(y)))(x) * 2
    ),
}
TRANSFORMS = {
    "grad": lambda fn: wf.grad(lambda x: fn(x).sum()),
    "second": lambda fn: wf.grad(lambda x: (wf.grad(lambda x: fn(x).sum())(x) ** 2).sum()),
    "hessian": lambda fn: wf.hessian(lambda x: fn(x).sum()),
    "jacfwd": wf.jacfwd,
    "jacrev": wf.jacrev,
    "jvp of grad": lambda fn: lambda x: wf.hvp(lambda x: fn(x).sum(), (x,), (x,)),
    "grad of jvp": lambda fn: wf.grad(lambda x: wf.jvp(fn, (x,), (x,))[1].sum()),
    "linearize": lambda fn: lambda x: wf.linearize(fn, x)[1](x),
    "inside": lambda fn: wf.grad(wf.checkpoint(lambda x: wf.grad(lambda x: fn(x).sum())(x).sum())),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_nested_and_under_transforms(transform):
    x = array(3)
    expected = transform(NESTED["plain"])(x).numpy()
    np.testing.assert_allclose(transform(NESTED["nested"])(x).numpy(), expected, rtol=1e-10)


def test_trees_constants_and_what_is_passed_through():
    outside = leaf(2)

    def fn(batch, *, scale):
        x = batch["x"]
        return {"y": x * scale, "same": batch["x"], "n": wf.argmax(x), "c": 3, "w": outside}

    x = leaf(2, seed=1)
    found = wf.checkpoint(fn)({"x": x}, scale=2.0)
    assert found["same"] is x
    assert found["w"] is outside
    assert (found["c"], found["n"].requires_grad) == (3, False)
    found["y"].sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_modules_and_their_statistics():
    norm = wf.nn.BatchNorm1d(4)
    plain = wf.nn.Sequential(wf.nn.Linear(4, 4), norm, wf.nn.ReLU(), wf.nn.Dropout(0.5))
    x = wf.randn(8, 4)

    def run(fn):
        norm.reset_running_stats()
        wf.manual_seed(1)
        plain.zero_grad()
        fn(x).sum().backward()
        return [norm.running_mean.numpy().copy(), *(p.grad.numpy() for p in plain.parameters())]

    expected = run(plain)
    for a, b in zip(run(wf.checkpoint(plain)), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    assert type(norm.running_mean) is wf.Tensor


def test_random_numbers_after_a_checkpoint_are_the_same():
    x = leaf(3)

    def draws(fn):
        wf.manual_seed(0)
        fn(x).sum().backward()
        return wf.rand(2).tolist()

    assert draws(wf.checkpoint(F.dropout)) == draws(F.dropout)


def test_functions_with_own_derivatives():
    @wf.custom_vjp
    def clipped(x):
        return x * 1.0

    clipped.defvjp(lambda x: (x * 1.0, x), lambda x, g: (wf.clip(g, -1, 1) * x,))
    x = leaf(3)

    def fn(x):
        return (3 * clipped(wf.sin(x))).sum()

    expected = wf.grad(fn)(x).numpy()
    np.testing.assert_allclose(wf.grad(wf.checkpoint(fn))(x).numpy(), expected)


def test_later_changes_of_what_was_read_do_not_matter():
    w, x = leaf(2), leaf(2, seed=1)
    y = wf.checkpoint(lambda x: wf.sin(x * w))(x)
    expected = (np.cos(x.numpy() * w.numpy()) * w.numpy()).tolist()
    with wf.no_grad():
        w += 1
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), expected)


def test_retained_graphs_and_freed_ones():
    x = leaf(2)
    y = wf.checkpoint(lambda x: wf.sin(x) * x)(x).sum()
    first = wf.gradients(y, x, retain_graph=True)
    assert wf.gradients(y, x).tolist() == first.tolist()
    with pytest.raises(GradientError, match="freed"):
        y.backward()


def test_without_need_nothing_is_kept():
    x = array(3)
    y = wf.checkpoint(wf.sin)(x)
    assert not y.requires_grad
    with wf.no_grad():
        assert not wf.checkpoint(wf.sin)(leaf(3)).requires_grad


# -- memory ---------------------------------------------------------------------------------------


def peak(fn):
    gc.collect()
    tracemalloc.start()
    fn()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def chain(x, count):
    for _ in range(count):
        x = wf.sin(x)
    return x


def test_memory_grows_with_the_root_of_the_length():
    x = wf.tensor(np.ones(20_000), requires_grad=True)  # 160 kB

    def train(n, checkpointed):
        part = partial(chain, count=n)
        y = x
        for _ in range(n):
            y = (wf.checkpoint(part) if checkpointed else part)(y)
        y.sum().backward()
        x.grad = None

    unit = x.nbytes
    assert peak(lambda: train(8, False)) > 60 * unit
    assert peak(lambda: train(8, True)) < 2 * 8 * unit + 8 * unit
    assert peak(lambda: train(16, True)) < 2 * 16 * unit + 8 * unit


def test_intermediates_die_in_forward():
    seen = []

    def fn(x):
        y = wf.sin(x)
        seen.append(weakref.ref(y.numpy().base))
        return wf.cos(y)

    z = wf.checkpoint(fn)(leaf(1000))
    gc.collect()
    assert seen[0]() is None
    assert z.requires_grad


def test_jvp_of_a_long_chain_takes_constant_memory():
    x = wf.tensor(np.ones(20_000))
    short, long = (peak(lambda n=n: wf.jvp(lambda x: chain(x, n), (x,), (x,))) for n in (200, 2000))
    assert long < short + 2 * x.nbytes  # of 4,000 that a tape would keep


# -- mistakes -------------------------------------------------------------------------------------


def test_mistakes_are_explained():
    with pytest.raises(ArgumentTypeError, match="takes a function"):
        wf.checkpoint(3)
    with pytest.raises(ArgumentTypeError, match="policy must be None, one of 'nothing'"):
        wf.checkpoint(wf.sin, "dotz")
    with pytest.raises(ArgumentTypeError, match="names takes strings"):
        policies.names(3)


def test_a_value_that_escaped_is_explained():
    kept = []
    wf.checkpoint(lambda x: kept.append(wf.sin(x)) or x * 2)(leaf(2))
    with pytest.raises(GradientError, match="a checkpoint that has ended"):
        kept[0] + 1


def test_compiled_checkpoints_are_machine_code_throughout():
    x = wf.tensor(np.linspace(0.0, 1.0, 5))
    block = wf.checkpoint(lambda x: wf.sin(wf.exp(x)))
    slope = wf.compile(wf.grad(lambda x: block(block(x)).sum()), x)
    assert slope.stats()["library"] == []
    plain = wf.grad(lambda x: wf.sin(wf.exp(wf.sin(wf.exp(x)))).sum())
    np.testing.assert_allclose(slope(x).numpy(), plain(x).numpy(), rtol=1e-12)
