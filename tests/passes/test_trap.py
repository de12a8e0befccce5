"""The flag of the NaN trap: what it looks at, and that it costs no update in place."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.errors import AnomalyError, IndexOutOfRange
from weft.lower.kernels import GemmKernel

OPTIMIZERS = {
    "sgd": lambda p: wf.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: wf.optim.Adam(p, lr=0.1),
    "adamw": lambda p: wf.optim.AdamW(p, lr=0.1),
    "rmsprop": lambda p: wf.optim.RMSprop(p, lr=0.1, centered=True),
    "adagrad": lambda p: wf.optim.Adagrad(p, lr=0.1),
}


@pytest.fixture
def trap():
    """Return what switches the trap; it is off afterwards."""

    def switch(on):
        wf.config.nan_trap = on

    yield switch
    wf.config.nan_trap = False


class Step:
    """A step of training by a session: the gradient is x."""

    def __init__(self, make):
        self.weight = wf.nn.Parameter(wf.tensor([4.0, 1.0, 2.0]))
        self.optimizer = make([self.weight])
        with wf.Graph() as graph:
            self.x = wf.placeholder((3,), wf.float32, name="x")
            self.loss = (self.weight * self.x).sum()
            self.train = self.optimizer.minimize(self.loss)
        self.session = wf.Session(graph)

    def __call__(self, *x):
        feeds = {self.x: np.array(x, np.float32)}
        return self.session.run([self.loss, self.train], feeds)[0]

    def code(self, trapped):
        """Return the machine code, with the trap or without."""
        wf.config.nan_trap = trapped
        feeds = {self.x: np.zeros(3, np.float32)}
        return self.session.executable([self.loss, self.train], feeds)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_states_are_still_updated_in_place(trap, name):
    step = Step(OPTIMIZERS[name])
    plain, trapped = step.code(trapped=False), step.code(trapped=True)
    assert trapped.layout.changed == plain.layout.changed > 0
    assert plain.plan.flag is None
    assert trapped.plan.flag is not None


class RecurrentStep(Step):
    """A step whose gradients follow from products by a mask and by a sum with zero."""

    def __init__(self, make):
        table = wf.nn.Embedding(100, 256)
        cell, head = wf.nn.LSTM(256, 72), wf.nn.Linear(72, 5)
        self.optimizer = make([*table.parameters(), *cell.parameters(), *head.parameters()])
        with wf.Graph() as graph:
            self.x = wf.placeholder((3, 2), wf.int64, name="x")
            self.loss = (head(cell(table(self.x))[0]) ** 2).mean()
            self.train = self.optimizer.minimize(self.loss)
        self.session = wf.Session(graph)

    def code(self, trapped):
        """Return the machine code, with the trap or without."""
        wf.config.nan_trap = trapped
        feeds = {self.x: np.zeros((3, 2), np.int64)}
        return self.session.executable([self.loss, self.train], feeds)


def test_updates_are_not_computed_with_what_the_flag_looks_at(trap):
    """They would be done before it, and could not be written in place."""
    step = RecurrentStep(OPTIMIZERS["adam"])
    plain, trapped = step.code(trapped=False), step.code(trapped=True)
    assert not trapped.program.memory.copied
    assert len(trapped.program.memory.shared) == len(plain.program.memory.shared) == 21


def test_large_gradients_are_added_up_by_the_products_that_make_them(trap):
    net = wf.nn.Linear(256, 300)
    with wf.Graph() as graph:
        x = wf.placeholder((256, 256), wf.float32)
        loss = (net(x) ** 2).mean()
        step = [loss, wf.optim.Adam(net.parameters()).minimize(loss)]
    trap(True)
    code = wf.Session(graph).executable(step, {x: np.zeros((256, 256), np.float32)})
    kernels = code.program.kernels
    (product,) = [k for k in kernels if isinstance(k, GemmKernel) and k.out.shape == (300, 256)]
    assert product.row_sums
    read = [k for k in kernels if k.name.startswith("trap/")]
    assert max(view.buffer.size for kernel in read for view in kernel.views) < net.weight.size


def test_sums_of_gradients_that_overflow_are_no_error_by_themselves(trap):
    weight = wf.nn.Parameter(wf.zeros(300, 256))
    optimizer = wf.optim.SGD([weight], lr=1e-38)
    with wf.Graph() as graph:
        x = wf.placeholder((300, 256), wf.float32)
        step = [(weight * x).sum(), optimizer.minimize((weight * x).sum())]
    trap(True)
    wf.Session(graph).run(step, {x: np.full((300, 256), 3e38, np.float32)})
    np.testing.assert_array_equal(weight.numpy(), np.float32(3e38) * -np.float32(1e-38))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_trapped_step_computes_the_same(trap, name):
    plain, trapped = Step(OPTIMIZERS[name]), Step(OPTIMIZERS[name])
    xs = np.random.default_rng(0).normal(size=(5, 3))
    losses = [plain(*x) for x in xs]
    trap(True)
    assert [trapped(*x) for x in xs] == losses
    np.testing.assert_array_equal(trapped.weight.numpy(), plain.weight.numpy())


def test_a_division_by_nothing_in_the_update_is_found_before_it_is_written(trap):
    trap(True)
    step = Step(lambda p: wf.optim.Adam(p, lr=0.1, eps=0.0))
    with pytest.raises(AnomalyError, match="div"):
        step(1, 0, 2)
    np.testing.assert_array_equal(step.weight.numpy(), [4.0, 1.0, 2.0])
    assert step.optimizer.t == 0
    assert step(1, 1, 2) == pytest.approx(9.0)


def test_infinities_are_no_error(trap):
    trap(True)
    step = Step(lambda p: wf.optim.SGD(p, lr=0.1))
    assert step(1, np.inf, 2) == np.inf
    np.testing.assert_array_equal(step.weight.numpy(), np.float32([3.9, -np.inf, 1.8]))


def test_code_without_the_trap_is_that_of_before(trap):
    step, other = Step(OPTIMIZERS["adam"]), Step(OPTIMIZERS["adam"])
    assert other.code(trapped=True).plan.objects != step.code(trapped=False).plan.objects
    assert other.code(trapped=False).plan.objects == step.code(trapped=False).plan.objects


class LinearStep(Step):
    """A step whose gradient is a product with more elements than its factors: g.T @ x."""

    def __init__(self, make):
        self.weight = wf.nn.Parameter(wf.ones(8, 3))
        self.optimizer = make([self.weight])
        with wf.Graph() as graph:
            self.x = wf.placeholder((3,), wf.float32, name="x")
            y = wf.reshape(self.x, (1, 3)) @ self.weight.T
            self.loss = (wf.sqrt(y - 6) * 0 + y).sum()
            self.train = self.optimizer.minimize(self.loss)
        self.session = wf.Session(graph)


def test_factors_of_a_product_are_looked_at_where_they_are_smaller(trap):
    trap(True)
    step = LinearStep(lambda p: wf.optim.SGD(p, lr=0.1))
    assert step(2, 4, 6) == pytest.approx(96.0)
    kept = step.weight.numpy().copy()
    with pytest.raises(AnomalyError, match="in the backward of"):
        step(*np.linalg.lstsq(kept[:1], np.array([6.0]))[0])  # the root is of zero: 0 * inf
    np.testing.assert_array_equal(step.weight.numpy(), kept)


def test_factors_that_are_so_large_that_sums_overflow_are_no_error_by_themselves(trap):
    trap(True)
    step, plain = (LinearStep(lambda p: wf.optim.SGD(p, lr=1e-30)) for _ in range(2))
    with pytest.raises(IndexOutOfRange):  # the flag is set, and then nothing found
        step.code(trapped=True).run([np.float32([1e25, 1, 1])])
    found = step(1e25, 1, 1)
    trap(False)
    assert found == plain(1e25, 1, 1)
    np.testing.assert_array_equal(step.weight.numpy(), plain.weight.numpy())


def test_running_statistics_are_looked_at(trap):
    mean = wf.tensor([0.0, 0.0])

    def f(x):
        mean.assign(0.9 * mean + 0.1 * wf.log(x).mean(axis=0))
        return wf.nan_to_num(wf.log(x)).sum()

    trap(True)
    compiled = wf.compile(f, wf.ones(3, 2))
    compiled(wf.ones(3, 2))
    with pytest.raises(AnomalyError, match="log"):
        compiled(-wf.ones(3, 2))
    np.testing.assert_array_equal(mean.numpy(), [0.0, 0.0])


def test_what_has_no_floats_has_no_trap(trap):
    trap(True)
    assert wf.compile(lambda x: x + 1, wf.tensor([1, 2]))(wf.tensor([3, 4])).tolist() == [4, 5]
