"""minimize() of a symbol: every optimizer takes the same steps in a graph as eagerly."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.op import registry
from weft.core.tree import flatten
from weft.optim import transform

F32 = np.float32


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch):
    """Go from node to node, which rounds as eager mode does.

    Except for powers of single numbers: eager steps compute them in Python, graphs in NumPy, which
    has code of its own for some processors that rounds otherwise. Here both are Python's.
    """
    monkeypatch.setattr(wf.config, "debug_interpret", True)
    by_numpy = registry["pow"].kernel
    monkeypatch.setattr(registry["pow"], "_kernel", lambda x, y: _power(x, y, by_numpy))


def _power(x, y, by_numpy):
    if np.ndim(x) == np.ndim(y) == 0 and np.result_type(x, y) == np.float64 and x > 0:
        return np.array(float(x) ** float(y))
    return by_numpy(x, y)


RNG = np.random.default_rng(0)
XS = RNG.standard_normal((30, 6, 3)).astype(F32)
TS = RNG.standard_normal((30, 6, 2)).astype(F32)

OPTIMIZERS = {
    "sgd": lambda ps: wf.optim.SGD(ps, lr=0.1),
    "momentum": lambda ps: wf.optim.SGD(ps, lr=0.1, momentum=0.9, dampening=0.1),
    "nesterov": lambda ps: wf.optim.SGD(
        ps, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01
    ),
    "Momentum": lambda ps: wf.optim.Momentum(ps, lr=0.05),
    "Adam": lambda ps: wf.optim.Adam(ps, lr=0.01),
    "AdamW": lambda ps: wf.optim.AdamW(ps, lr=0.01, weight_decay=0.1),
    "Amsgrad": lambda ps: wf.optim.Amsgrad(ps, lr=0.01),
    "Adamax": lambda ps: wf.optim.Adamax(ps, lr=0.01),
    "NAdam": lambda ps: wf.optim.NAdam(ps, lr=0.01),
    "RAdam": lambda ps: wf.optim.RAdam(ps, lr=0.01),
    "Adagrad": wf.optim.Adagrad,
    "Adadelta": wf.optim.Adadelta,
    "RMSprop": lambda ps: wf.optim.RMSprop(ps, lr=0.01),
    "LAMB": wf.optim.LAMB,
    "Lion": wf.optim.Lion,
    "ASGD": lambda ps: wf.optim.ASGD(ps, lr=0.1, t0=5, weight_decay=0.01),
    "Rprop": lambda ps: wf.optim.Rprop(ps, lr=0.01),
    "Adafactor": lambda ps: wf.optim.Adafactor(ps, lr=0.05, weight_decay=0.01),
    "Eve": wf.optim.Eve,
}
every_optimizer = pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)


def network():
    wf.manual_seed(0)
    return wf.nn.Sequential(wf.nn.Linear(3, 5), wf.nn.Tanh(), wf.nn.Linear(5, 2))


def loss_of(net, x, t):
    return ((net(x) - t) ** 2).mean()


class Static:
    """A network with a training step in a graph."""

    def __init__(self, make, net=None, optimizer=None):
        self.net = network() if net is None else net
        self.optimizer = make(self.net.parameters()) if optimizer is None else optimizer
        with wf.Graph() as self.graph:
            self.x = wf.placeholder((None, 3), wf.float32)
            self.t = wf.placeholder((None, 2), wf.float32)
            self.loss = loss_of(self.net, self.x, self.t)
            self.train = self.optimizer.minimize(self.loss)
        self.session = wf.Session(self.graph)

    def step(self, i):
        loss, none = self.session.run([self.loss, self.train], {self.x: XS[i], self.t: TS[i]})
        assert none is None
        return float(loss)


class Eager:
    """The same with eager steps."""

    def __init__(self, make):
        self.net = network()
        self.optimizer = make(self.net.parameters())

    def step(self, i):
        loss = loss_of(self.net, wf.tensor(XS[i]), wf.tensor(TS[i]))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step(loss=loss)
        return float(loss)


def assert_equal_training(a, b):
    """Assert that weights and what a checkpoint of the optimizer holds are equal to the bit."""
    for x, y in results_of(a, b):
        np.testing.assert_array_equal(x, y, strict=True)


def results_of(a, b):
    """Yield the weights of two trainings, and what a checkpoint of each optimizer holds."""
    for tree_a, tree_b in (
        (a.net.state_dict(), b.net.state_dict()),
        (a.optimizer.state_dict(), b.optimizer.state_dict()),
    ):
        leaves, structure = flatten(tree_a)
        for x, y in zip(leaves, structure.flatten_like(tree_b), strict=True):
            assert type(x) is type(y)
            yield np.asarray(x), np.asarray(y)


def test_the_table_has_every_optimizer():
    others = {"LBFGS", "Muon", "Optimizer", "SparseAdam", "TransformOptimizer", "SGD"}
    classes = {
        name
        for name in wf.optim.__all__
        if isinstance(getattr(wf.optim, name), type)
        and issubclass(getattr(wf.optim, name), wf.optim.Optimizer)
    }
    assert classes - others <= set(OPTIMIZERS)


def test_steps_of_muon_which_takes_matrices_alone():
    def trained(wrap):
        wf.manual_seed(0)
        w = wf.nn.Parameter(wf.randn(4, 6))
        optimizer = wf.optim.Muon([w], lr=0.1)

        def step(x):
            optimizer.zero_grad()
            loss = ((x @ w) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        run = wrap(step)
        return [float(run(wf.ones(3, 4) * i)) for i in range(1, 6)]

    np.testing.assert_allclose(trained(wf.jit), trained(lambda step: step), rtol=1e-4)


@every_optimizer
def test_steps_are_those_of_eager_mode(make):
    eager, static = Eager(make), Static(make)
    for i in range(30):
        assert static.step(i) == eager.step(i)
    assert_equal_training(static, eager)
    assert eager.optimizer.t == static.optimizer.t == 30


@every_optimizer
def test_eager_and_static_steps_alternate(make):
    eager, mixed = Eager(make), Static(make)
    hand = Eager(make)
    hand.net, hand.optimizer = mixed.net, mixed.optimizer
    for i in range(12):
        eager.step(i)
        (mixed if i % 3 else hand).step(i)
    assert_equal_training(mixed, eager)


@every_optimizer
def test_a_checkpoint_continues_in_another_graph(make):
    whole = Static(make)
    for i in range(10):
        whole.step(i)
    first = Static(make)
    for i in range(5):
        first.step(i)
    second = Static(make)
    second.net.load_state_dict(first.net.state_dict())
    second.optimizer.load_state_dict(first.optimizer.state_dict())
    for i in range(5, 10):
        second.step(i)
    assert_equal_training(second, whole)


def test_a_schedule_changes_the_learning_rate_between_runs():
    def make(ps):
        return wf.optim.SGD(ps, lr=0.1, momentum=0.9)

    eager, static = Eager(make), Static(make)
    schedules = [wf.optim.lr.ExponentialLR(o.optimizer, 0.8) for o in (eager, static)]
    for i in range(10):
        eager.step(i)
        static.step(i)
        for schedule in schedules:
            schedule.step()
    assert static.optimizer.param_groups[0]["lr"] == pytest.approx(0.1 * 0.8**10)
    assert_equal_training(static, eager)


def test_groups_have_their_own_settings():
    def make(_, net=None):
        return None

    def grouped(net):
        groups = [
            {"params": [net[0].weight], "lr": 0.2},
            {"params": [net[0].bias, net[2].weight], "momentum": 0.5},
        ]
        return wf.optim.SGD(groups, lr=0.05)

    eager = Eager(wf.optim.Adam)
    eager.optimizer = grouped(eager.net)
    net = network()
    static = Static(make, net, grouped(net))
    before = net[2].bias.numpy().copy()
    for i in range(5):
        eager.step(i)
        static.step(i)
    assert_equal_training(static, eager)
    np.testing.assert_array_equal(net[2].bias.numpy(), before)  # in no group


def test_a_chain_of_transforms():
    def make(ps):
        chained = transform.chain(
            transform.clip_by_global_norm(0.5), transform.trace(0.9), transform.scale(-0.1)
        )
        return wf.optim.TransformOptimizer(ps, chained)

    eager, static = Eager(make), Static(make)
    for i in range(10):
        eager.step(i)
        static.step(i)
    assert_equal_training(static, eager)


@pytest.mark.parametrize("dtype", [wf.float16, wf.float64])
def test_parameters_of_other_precisions(dtype):
    values = {}
    for mode in ("eager", "static"):
        w = wf.nn.Parameter(wf.tensor([0.5, -0.25, 0.125], dtype=dtype))
        optimizer = wf.optim.Adam([w], lr=0.01)
        if mode == "static":
            with wf.Graph() as graph:
                train = optimizer.minimize(((w - 1) ** 2).sum())
            session = wf.Session(graph)
        for _ in range(5):
            if mode == "static":
                session.run(train)
            else:
                optimizer.minimize(((w - 1) ** 2).sum())
        assert w.dtype == dtype
        values[mode] = w.numpy()
    np.testing.assert_array_equal(values["static"], values["eager"])


def test_frozen_and_unused_parameters_stay():
    net = network()
    net[0].weight.requires_grad_(False)
    unused = wf.nn.Parameter(wf.tensor([1.0]))
    kept = net[0].weight.numpy().copy()
    static = Static(None, net, wf.optim.Adam([*net.parameters(), unused], lr=0.1))
    static.step(0)
    np.testing.assert_array_equal(net[0].weight.numpy(), kept)
    np.testing.assert_array_equal(unused.numpy(), [1.0])


def test_two_optimizers_of_one_parameter_keep_their_own_slots():
    w = wf.nn.Parameter(wf.tensor(1.0))
    first = wf.optim.SGD([w], lr=0.1, momentum=0.9)
    second = wf.optim.SGD([w], lr=0.1, momentum=0.9)
    with wf.Graph() as graph:
        step_one, step_two = first.minimize(w * w), second.minimize(w * 3)
    session = wf.Session(graph)
    expected = wf.nn.Parameter(wf.tensor(1.0))
    one = wf.optim.SGD([expected], lr=0.1, momentum=0.9)
    two = wf.optim.SGD([expected], lr=0.1, momentum=0.9)
    for _ in range(3):
        session.run(step_one)
        session.run(step_two)
        one.minimize(expected * expected)
        two.minimize(expected * 3)
    np.testing.assert_allclose(w.numpy(), expected.numpy(), rtol=1e-6)
    assert (first.t, second.t) == (3, 3)


def test_two_losses_in_one_graph():
    """As in adversarial training: each step moves its own parameters."""
    a, b = wf.nn.Parameter(wf.tensor(1.0)), wf.nn.Parameter(wf.tensor(2.0))
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float32)
        y = wf.placeholder((), wf.float32)
        step_a = wf.optim.SGD([a], lr=0.5).minimize((a * x - b.detach()) ** 2)
        step_b = wf.optim.SGD([b], lr=0.5).minimize((b * y) ** 2)
    session = wf.Session(graph)
    session.run(step_a, {x: 1.0})
    assert (float(a), float(b)) == (2.0, 2.0)
    session.run(step_b, {y: 1.0})
    assert (float(a), float(b)) == (2.0, 0.0)


def test_statistics_are_committed_with_the_step_of_their_own_network():
    nets = [wf.nn.BatchNorm1d(3) for _ in range(2)]
    with wf.Graph() as graph:
        xs = [wf.placeholder((4, 3), wf.float32, name=n) for n in "ab"]
        steps = [
            wf.optim.SGD(net.parameters(), lr=0.1).minimize((net(x) ** 2).sum())
            for net, x in zip(nets, xs, strict=True)
        ]
    session = wf.Session(graph)
    before = nets[0].running_mean.numpy().copy()
    session.run(steps[1], {"b": XS[0][:4]})
    np.testing.assert_array_equal(nets[0].running_mean.numpy(), before)
    assert np.abs(nets[1].running_mean.numpy()).max() > 0
    session.run(steps[0], {"a": XS[0][:4]})
    np.testing.assert_array_equal(nets[0].running_mean.numpy(), nets[1].running_mean.numpy())


def test_statistics_of_a_network_that_is_used_twice():
    """A step commits what its own loss has run, not what was built for other purposes."""
    net, twin = wf.nn.BatchNorm1d(3), wf.nn.BatchNorm1d(3)
    with wf.Graph() as graph:
        x = wf.placeholder((4, 3), wf.float32, name="x")
        step = wf.optim.SGD(net.parameters(), lr=0.1).minimize((net(x) ** 2).sum())
        probe = net(wf.placeholder((2, 3), wf.float32, name="probe"))
        again = wf.optim.SGD(net.parameters(), lr=0.1).minimize((net(x) ** 2).sum())
    session = wf.Session(graph)
    session.run(step, {"x": XS[0][:4]})
    twin(wf.tensor(XS[0][:4]))
    np.testing.assert_array_equal(net.running_mean.numpy(), twin.running_mean.numpy())
    session.run(again, {"x": XS[0][:4]})
    twin(wf.tensor(XS[0][:4]))
    np.testing.assert_array_equal(net.running_mean.numpy(), twin.running_mean.numpy())
    assert session.run(probe, {"probe": XS[0][:2], "x": XS[0][:4]}).shape == (2, 3)


def test_a_failing_step_changes_nothing():
    static = Static(OPTIMIZERS["Adam"])
    static.step(0)
    kept = {k: v.numpy().copy() for k, v in static.net.state_dict().items()}
    with pytest.raises(ValueError, match="shape"):
        static.session.run(static.train, {static.x: XS[0], static.t: TS[0][:3]})
    for key, value in static.net.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), kept[key])
    assert static.optimizer.t == 1


# -- refused ---------------------------------------------------------------------------------------


def prepared():
    w = wf.nn.Parameter(wf.tensor(1.0))
    return w, wf.optim.SGD([w], lr=0.1)


def test_hooks_are_refused():
    w, optimizer = prepared()
    for register in (optimizer.register_step_pre_hook, optimizer.register_step_post_hook):
        handle = register(lambda *_: None)
        with wf.Graph(), pytest.raises(ValueError, match=r"minimize: hooks run in Python.*remove"):
            optimizer.minimize(w * w)
        handle.remove()


def test_loss_scaling_is_refused():
    w, optimizer = prepared()
    wf.optim.LossScaler(optimizer)
    assert optimizer.loss_scaling is not None
    with wf.Graph(), pytest.raises(ValueError, match="minimize: loss scaling belongs to eager"):
        optimizer.minimize(w * w)


def test_lbfgs_is_refused():
    w, _ = prepared()
    with wf.Graph(), pytest.raises((RuntimeError, TypeError), match=r"LBFGS.*step\(closure\)"):
        wf.optim.LBFGS([w]).minimize(w * w)


def test_changed_settings_are_refused():
    w = wf.nn.Parameter(wf.tensor(1.0))
    optimizer = wf.optim.Adam([w], lr=0.1)
    with wf.Graph() as graph:
        train = optimizer.minimize(w * w)
    optimizer.param_groups[0]["lr"] = 0.01
    wf.Session(graph).run(train)
    optimizer.param_groups[0]["betas"] = (0.5, 0.9)
    wf.Session(graph).run(train)  # numbers of the rule are read anew
    optimizer.param_groups[0]["betas"] = (0.0, 0.9)  # without one of them it is another rule
    with pytest.raises(RuntimeError, match=r"betas of group 0 was .* build the step anew"):
        wf.Session(graph).run(train)
    optimizer.param_groups[0].update(betas=(0.5, 0.9), eps=0.5)
    with pytest.raises(RuntimeError, match=r"eps of group 0 was .* build the step anew"):
        wf.Session(graph).run(train)
    assert optimizer.t == 2


@pytest.mark.parametrize("kind", ["SGD", "Adam", "RMSprop"])
def test_settings_that_change_between_runs_are_those_of_eager_steps(kind):
    def trained(step_of):
        w = wf.nn.Parameter(wf.tensor([1.0, -2.0]))
        options = {"momentum": 0.5} if kind != "Adam" else {"betas": (0.5, 0.9)}
        optimizer = getattr(wf.optim, kind)([w], lr=0.1, weight_decay=0.1, **options)
        step = step_of(optimizer, lambda: w.square().sum())
        for i in range(1, 5):
            changed = {"momentum": 0.1 * i} if kind != "Adam" else {"betas": (0.1 * i, 0.8)}
            optimizer.param_groups[0].update(changed, lr=0.1 / i, weight_decay=0.2 / i)
            step()
        return w.numpy()

    def static(optimizer, loss):
        with wf.Graph() as graph:
            train = optimizer.minimize(loss())
        return lambda: wf.Session(graph).run(train)

    eager = trained(lambda optimizer, loss: lambda: optimizer.minimize(loss()))
    np.testing.assert_allclose(trained(static), eager, rtol=1e-6)
    recorded = trained(lambda optimizer, loss: wf.jit(lambda: optimizer.minimize(loss())))
    np.testing.assert_allclose(recorded, eager, rtol=1e-6)


def test_minimize_inside_a_body_is_refused():
    w, optimizer = prepared()

    def step(c, _):
        optimizer.minimize(w * c)
        return c, None

    with wf.Graph(), pytest.raises(RuntimeError, match="not possible inside fn, a body"):
        wf.scan(step, wf.ones(()), length=2)
