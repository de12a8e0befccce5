"""Paths of a jitted function that part at a truth value are one program."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.capture import jitted as jitted_module
from weft.graph.control.ops import COND

ONE, TWO, THREE = (wf.full((3,), v) for v in (1.0, 2.0, 3.0))


def compare(function, *calls):
    """Check that a function does the same jitted; return that."""
    jitted = wf.jit(function)
    for args in calls:
        np.testing.assert_allclose(jitted(*args).numpy(), function(*args).numpy(), rtol=1e-5)
    return jitted


def programs(jitted) -> int:
    return jitted.stats()["paths"]


def conds(jitted) -> int:
    return sum(node.op is COND for node in jitted.graph().nodes)


def test_two_paths_are_one_program_that_neither_is_recorded_for_again():
    def f(x):
        y = x * 3
        z = y * 2 if x.sum() > 0 else y - 1
        return z + x

    jitted = compare(f, (ONE,), (-ONE,), (TWO,), (-TWO,), (ONE,))
    assert programs(jitted) == 1
    assert jitted.stats()["recordings"] == 2
    assert jitted.stats()["compiled_calls"] == 5


def test_what_both_paths_compute_stands_outside_of_the_branches():
    def f(x):
        y = x * 3
        z = y.exp() if x.sum() > 0 else y - 1
        return (z * 2 + y).sum()

    jitted = compare(f, (ONE,), (-ONE,))
    names = [node.op.name for node in jitted.graph().nodes]
    assert conds(jitted) == 1
    assert names.count("mul") == 2
    assert names.count("add") == 1
    (branch,) = [node for node in jitted.graph().nodes if node.op is COND]
    assert [node.op.name for node in branch.attrs[0].nodes if node.inputs] == ["exp"]
    assert [node.op.name for node in branch.attrs[1].nodes if node.inputs] == ["sub"]


def test_a_step_with_a_branch_is_one_native_call(monkeypatch):
    def f(x):
        return x * 2 if x.sum() > 0 else x - 1

    jitted = compare(f, (ONE,), (-ONE,))
    ((trace,),) = jitted._traces.values()
    runs = []
    latest = trace.call._latest
    monkeypatch.setattr(trace.call, "_latest", lambda fed: runs.append(1) or latest(fed))
    for x in (ONE, -TWO, TWO):
        jitted(x)
    assert len(runs) == 3


def test_branches_in_branches_and_early_returns():
    def f(x):
        if x.sum() > 0:
            if x.sum() > 4:
                return x * 10
            y = x + 1
            if x.sum() > 2:
                y = y * y
            return y
        return -x

    values = (ONE, -ONE, TWO, 0.5 * ONE, THREE, -TWO, ONE, 0.1 * ONE)
    jitted = compare(f, *((x,) for x in values))
    assert programs(jitted) == 1
    assert jitted.stats()["recordings"] == 4


def test_break_and_continue():
    def f(x):
        total = wf.zeros(())
        for row in x:
            if row < -1:
                continue
            if row > 2:
                break
            total = total + row * 2
        return total

    rng = np.random.default_rng(0)
    calls = [(wf.tensor(rng.normal(size=4).astype(np.float32) * 2),) for _ in range(12)]
    jitted = compare(f, *calls, *calls)
    assert programs(jitted) == 1
    assert jitted.stats()["recordings"] <= 12


def test_paths_may_return_and_do_other_things():
    seen = []

    @wf.jit
    def f(x):
        if x.sum() > 0:
            seen.append("more")
            return {"sum": x.sum()}
        seen.append(x.sum())
        return None

    assert f(ONE)["sum"].item() == 3
    assert f(-ONE) is None
    assert f(-TWO) is None
    assert f(TWO)["sum"].item() == 6
    assert programs(f) == 1
    assert [x if isinstance(x, str) else x.item() for x in seen] == ["more", -3.0, -6.0, "more"]


def test_a_state_that_one_path_writes_is_as_it_was_on_the_other():
    total, count = wf.zeros(2), wf.zeros(())

    @wf.jit
    def f(x):
        count.add_(1)
        if x.sum() > 0:
            total.add_(x)
        return count * 1

    for sign in (1.0, -1.0, 1.0, -1.0, 1.0):
        f(wf.full((2,), sign))
    assert total.tolist() == [3.0, 3.0]
    assert count.item() == 5
    assert programs(f) == 1


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_training_with_a_branch_in_the_loss(momentum):
    def trained(decorate):
        wf.manual_seed(0)
        net = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.Tanh(), wf.nn.Linear(4, 1))
        optimizer = wf.optim.SGD(net.parameters(), lr=0.05, momentum=momentum)

        @decorate
        def step(x):
            optimizer.zero_grad()
            y = net(x)
            loss = (y * y).mean()
            if loss > 0.05:
                loss = loss + y.abs().sum()
            loss.backward()
            optimizer.step()
            return loss

        rng = np.random.default_rng(1)
        data = [wf.tensor(rng.normal(size=(5, 3)).astype(np.float32)) for _ in range(4)]
        losses = [step(x * s).item() for s in (1, 0.01, 2, 0.02) for x in data]
        return losses, net, step

    losses, net, _ = trained(lambda f: f)
    jitted_losses, jitted_net, step = trained(wf.jit)
    np.testing.assert_allclose(jitted_losses, losses, rtol=1e-4, atol=1e-6)
    for p, q in zip(net.parameters(), jitted_net.parameters(), strict=True):
        np.testing.assert_allclose(q.numpy(), p.numpy(), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(q.grad.numpy(), p.grad.numpy(), rtol=1e-4, atol=1e-6)
    assert programs(step) == 1
    assert step.stats()["recordings"] == 2


def test_branches_with_layers_of_their_own_train_these_alone():
    def trained(decorate):
        wf.manual_seed(0)
        small, large = wf.nn.Linear(3, 2), wf.nn.Linear(3, 2)
        optimizer = wf.optim.Adam([*small.parameters(), *large.parameters()], lr=0.1)

        @decorate
        def step(x):
            optimizer.zero_grad()
            y = large(x) if x.sum() > 0 else small(x)
            (y * y).sum().backward()
            optimizer.step()

        for sign in (1.0, -1.0, 1.0, 1.0, -1.0):
            step(wf.full((2, 3), sign))
        grads = [p.grad is None for layer in (small, large) for p in layer.parameters()]
        values = [p.numpy() for layer in (small, large) for p in layer.parameters()]
        return grads, values, step

    grads, values, _ = trained(lambda f: f)
    jitted_grads, jitted_values, step = trained(wf.jit)
    assert jitted_grads == grads == [False, False, True, True]
    for p, q in zip(values, jitted_values, strict=True):
        np.testing.assert_allclose(q, p, rtol=1e-4, atol=1e-6)
    assert programs(step) == 1


def test_bits_are_those_of_the_path_alone():
    w = wf.tensor(np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32))

    def f(x):
        h = (x @ w).tanh()
        if h.sum() > 0:
            h = (h @ w).tanh() * 2
        return (h @ w).sum(axis=0), h.mean()

    x = wf.tensor(np.random.default_rng(1).normal(size=(4, 8)).astype(np.float32))
    both = wf.jit(f)
    calls = (x, -x)
    for value in calls:
        both(value)
    assert programs(both) == 1
    for value in calls:
        alone = wf.jit(f)(value)
        for a, b in zip(both(value), alone, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_a_place_that_one_path_changes_is_fed_to_both():
    class Keeper:
        def __init__(self):
            self.best = wf.full((), 10.0)

        @wf.jit
        def step(self, x):
            loss = x.sum()
            if loss < self.best:
                self.best = loss.detach()
            return loss - self.best

    keeper = Keeper()
    found = [keeper.step(ONE * v).item() for v in (2.0, 3.0, 1.0, 2.0, 0.5, 4.0, 0.1)]
    np.testing.assert_allclose(found, [0, 3, 0, 3, 0, 10.5, 0], rtol=1e-5)
    assert keeper.best.item() == pytest.approx(0.3, rel=1e-5)
    assert keeper.step.stats()["recordings"] <= 3


def test_results_of_both_paths_have_a_history():
    w = wf.tensor([1.0, 2.0, 3.0], requires_grad=True)

    @wf.jit
    def f(x):
        return (w * x).sum() if x.sum() > 0 else (w * w * x).sum()

    for sign, expected in ((1.0, [1, 1, 1]), (-1.0, [-2, -4, -6]), (1.0, [1, 1, 1])):
        w.grad = None
        f(wf.full((3,), sign)).backward()
        assert w.grad.tolist() == expected
    assert programs(f) == 1


def test_random_numbers_behind_a_branch_are_those_of_eager_code():
    def f(x):
        y = x * 2 if x.sum() > 0 else x - 1
        return y + wf.rand(3)

    signs = (1.0, -1.0, -1.0, 1.0)
    wf.manual_seed(3)
    expected = [f(ONE * s).numpy() for s in signs]
    wf.manual_seed(3)
    jitted = wf.jit(f)
    for s, value in zip(signs, expected, strict=True):
        np.testing.assert_array_equal(jitted(ONE * s).numpy(), value)
    assert programs(jitted) == 1


def test_a_branch_that_draws_stays_a_program_of_its_own():
    def f(x):
        return x + wf.rand(3) if x.sum() > 0 else x - 1

    signs = (1.0, -1.0, -1.0, 1.0)
    wf.manual_seed(3)
    expected = [f(ONE * s).numpy() for s in signs]
    wf.manual_seed(3)
    jitted = wf.jit(f)
    for s, value in zip(signs, expected, strict=True):
        np.testing.assert_array_equal(jitted(ONE * s).numpy(), value)
    assert programs(jitted) == 2


def random_branches(seed):
    """Return a function of branches, some in others, over a tensor."""
    rng = np.random.default_rng(seed)
    steps = [
        lambda x, y: x + y * 0.5,
        lambda x, y: x * y - 1,
        lambda x, y: (x - y).tanh() * 3,
        lambda x, y: x * 1.5,
    ]

    def block(depth):
        parts = []
        for _ in range(rng.integers(1, 4)):
            if depth and rng.random() < 0.5:
                limit, at = float(rng.normal()), int(rng.integers(0, 3))
                parts.append((limit, at, block(depth - 1), block(depth - 1)))
            else:
                parts.append(steps[rng.integers(0, len(steps))])
        return parts

    def run(parts, x, y):
        for part in parts:
            if callable(part):
                x, y = part(x, y), x
            elif x[part[1]] > part[0]:
                x, y = run(part[2], x, y)
            else:
                x, y = run(part[3], x, y)
        return x, y

    program = block(3)

    def f(x):
        x, y = run(program, x, x * 2)
        return (x * x + y).sum()

    return f


@pytest.mark.parametrize("seed", range(6))
def test_random_branches_give_what_eager_code_gives(seed):
    f = random_branches(seed)
    w = wf.tensor([0.5, -1.0, 2.0], requires_grad=True)

    def step(x):
        w.grad = None
        loss = f(x * w)
        loss.backward()
        return loss

    jitted = wf.jit(step)
    rng = np.random.default_rng(seed)
    for x in (wf.tensor(rng.normal(size=3).astype(np.float32)) for _ in range(10)):
        expected, gradient = step(x).numpy(), w.grad.numpy().copy()
        np.testing.assert_allclose(jitted(x).numpy(), expected, rtol=1e-4, atol=1e-5)
        scale = abs(gradient).max()
        np.testing.assert_allclose(w.grad.numpy(), gradient, rtol=1e-4, atol=1e-5 * scale)
    assert programs(jitted) == 1


def test_what_fails_to_join_runs_apart_and_is_told_of(monkeypatch):
    def fail(known, new):
        raise KeyError("a place")

    def f(x):
        return x * 2 if x.sum() > 0 else x - 1

    monkeypatch.setattr(jitted_module, "joined", fail)
    jitted = compare(f, (ONE,), (-ONE,), (TWO,))
    assert programs(jitted) == 2
    assert "apart: from other paths: KeyError: 'a place'" in jitted.explain()
