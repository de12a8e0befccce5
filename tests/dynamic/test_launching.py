"""Batches of cells in lists of launches: forward, backward, and what goes another way."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.backends.cpu.runtime.launches import LaunchList, launches_work
from weft.dynamic import gradient_rows, launch_forms, launching, launching_back

pytestmark = pytest.mark.skipif(not launches_work(), reason="needs native calls")
WIDTH = 48
CHAINS = [[3, 1, 4, 1, 5], [9, 2], [6], [5, 3, 5, 8, 9, 7, 9], [3, 2, 3]]


class Chain:
    """A recurrent network with a table of inputs, which is a cell."""

    def __init__(self, dtype="float64"):
        rng = np.random.default_rng(0)

        def parameter(*shape):
            return wf.tensor(rng.normal(0, 0.3, shape), dtype=dtype, requires_grad=True)

        self.table, self.weight = parameter(10, WIDTH), parameter(2 * WIDTH, WIDTH)
        self.parameters = [self.table, self.weight]
        self.step = wf.cell(self.step)
        self.zeros = wf.zeros(WIDTH, dtype=dtype)

    def step(self, number, state):
        return wf.tanh(wf.concat([self.table[number], state]) @ self.weight)

    def loss(self, chain):
        state = wf.zeros(WIDTH, dtype=self.table.dtype)
        for number in chain:
            state = self.step(wf.tensor(number), state)
        return (state * state).sum()


def found(mean, net):
    """Return the loss and its gradients."""
    total = mean(CHAINS)
    return [x.numpy() for x in (total, *wf.gradients(total, net.parameters))]


@pytest.fixture
def net():
    return Chain()


@pytest.fixture
def one_by_one(net):
    total = wf.stack([net.loss(chain) for chain in CHAINS]).mean()
    return [x.numpy() for x in (total, *wf.gradients(total, net.parameters))]


@pytest.fixture
def lists(monkeypatch):
    """Return the lengths of lists that have run."""
    met = []
    run = LaunchList.run

    def counted(self):
        met.append(len(self.words))
        return run(self)

    monkeypatch.setattr(LaunchList, "run", counted)
    return met


def check(left, right, tolerance=1e-12):
    for x, y in zip(left, right, strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def test_all_steps_are_one_list_each_way(net, one_by_one, lists):
    mean = wf.batched(net.loss, reduce="mean")
    check(found(mean, net), one_by_one)
    assert len(lists) == 2
    check(found(mean, net), one_by_one)


def test_long_lists_run_in_parts(net, one_by_one, lists, monkeypatch):
    monkeypatch.setattr("weft.backends.cpu.runtime.launches.MOST_WORDS", 100)
    check(found(wf.batched(net.loss, reduce="mean"), net), one_by_one)
    assert len(lists) > 2


def test_where_lists_do_not_run(net, one_by_one, lists, monkeypatch):
    for module in (launch_forms, launching, launching_back):
        monkeypatch.setattr(module, "can_launch", lambda: False)
    check(found(wf.batched(net.loss, reduce="mean"), net), one_by_one)
    assert not lists


def test_batches_of_lists_are_pulled_back_alone(net, one_by_one, lists, monkeypatch):
    monkeypatch.setattr(launching_back, "can_launch", lambda: False)
    check(found(wf.batched(net.loss, reduce="mean"), net), one_by_one)
    assert len(lists) == 1


def test_gradients_that_are_written_late_are_pulled_back_alone(net, one_by_one, monkeypatch):
    monkeypatch.setattr(gradient_rows, "LARGE", 0)
    check(found(wf.batched(net.loss, reduce="mean"), net), one_by_one)


def test_half_precision():
    net = Chain("float16")
    total = wf.stack([net.loss(chain) for chain in CHAINS]).mean()
    expected = [x.numpy() for x in (total, *wf.gradients(total, net.parameters))]
    check(found(wf.batched(net.loss, reduce="mean"), net), expected, 2e-2)


def test_the_way_back_can_be_gone_twice(net, one_by_one):
    total = wf.batched(net.loss, reduce="mean")(CHAINS)
    for _ in range(2):
        made = wf.gradients(total, net.parameters, retain_graph=True)
        check([x.numpy() for x in made], one_by_one[1:])


def test_a_bad_index_names_its_example(net):
    mean = wf.batched(net.loss, reduce="mean")
    mean(CHAINS)
    with pytest.raises(IndexError) as caught:
        mean([*CHAINS, [1, 2, 77]])
    assert any("in example 5 of 6" in note for note in caught.value.__notes__)


def test_a_bad_index_in_a_context(net):
    with wf.batching():
        state = net.step(wf.tensor(77), net.step(wf.tensor(2), net.zeros))
        with pytest.raises(IndexError, match="range"):
            state.numpy()


def test_results_that_are_one_value():
    weight = wf.tensor(np.eye(80) * 0.5, requires_grad=True)

    @wf.cell
    def both(x):
        y = wf.tanh(x @ weight)
        return y, y

    def loss(x):
        left, right = both(wf.tensor(x))
        left, right = both(left + right)
        return (left * right).sum()

    given = [np.full(80, 0.1 * i) for i in range(5)]
    total = wf.batched(loss, reduce="sum")(given)
    alone = wf.stack([loss(x) for x in given]).sum()
    np.testing.assert_allclose(total.numpy(), alone.numpy(), rtol=1e-12)
    pairs = zip(wf.gradients(total, [weight]), wf.gradients(alone, [weight]), strict=True)
    for x, y in pairs:
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-12)


def test_what_members_share_may_change_between_calls(net):
    mean = wf.batched(net.loss, reduce="mean")
    for _ in range(3):
        made = found(mean, net)
        total = wf.stack([net.loss(chain) for chain in CHAINS]).mean()
        check(made, [x.numpy() for x in (total, *wf.gradients(total, net.parameters))])
        with wf.no_grad():
            net.weight *= 0.9


def test_what_members_share_may_change_between_reads(net):
    with wf.batching():
        first = net.step(wf.tensor(2), net.zeros)
        before = first.numpy()
        with wf.no_grad():
            net.weight *= 2.0
            net.table *= 0.5
        state = net.step(wf.tensor(2), first)
        after = state.numpy()
    alone = wf.tanh(wf.concat([net.table[2], wf.tensor(before)]) @ net.weight)
    np.testing.assert_allclose(after, alone.numpy(), rtol=1e-12)
