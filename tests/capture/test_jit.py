"""wf.jit: eager code as compiled programs, equal to eager code in all that can be seen."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from weft.core.errors import GraphError


def network() -> wf.nn.Module:
    wf.manual_seed(3)
    return wf.nn.Sequential(
        wf.nn.Linear(6, 8, bias=False),
        wf.nn.BatchNorm1d(8),
        wf.nn.ReLU(),
        wf.nn.Dropout(0.25),
        wf.nn.Linear(8, 3),
    )


def double_of(x):
    return 2 * x


def batches(count: int = 6) -> list[tuple[wf.Tensor, wf.Tensor]]:
    rng = np.random.default_rng(0)
    return [
        (
            wf.tensor(rng.normal(size=(16, 6)).astype(np.float32)),
            wf.tensor(rng.integers(0, 3, 16)),
        )
        for _ in range(count)
    ]


def trained(decorate, make_optimizer=lambda ps: wf.optim.Adam(ps, lr=1e-2)):
    net = network()
    optimizer = make_optimizer(net.parameters())

    @decorate
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    losses = [step(x, y).item() for x, y in batches()]
    return losses, net, optimizer, step


def eager(function):
    return function


def assert_same_state(net, other):
    for (_, mine), (_, theirs) in zip(
        net.state_dict().items(), other.state_dict().items(), strict=True
    ):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-5)


def test_a_training_step_does_what_eager_code_does():
    losses, net, optimizer, _ = trained(eager)
    jitted_losses, jitted_net, jitted_optimizer, _ = trained(wf.jit)
    np.testing.assert_allclose(losses, jitted_losses, rtol=1e-4)
    assert_same_state(net, jitted_net)
    assert optimizer.t == jitted_optimizer.t
    for p, q in zip(net.parameters(), jitted_net.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), atol=1e-5)


def test_a_step_is_recorded_once():
    *_, step = trained(wf.jit)
    (paths,) = step._traces.values()
    assert [trace.runs for trace in paths] == [6]


def test_random_numbers_are_those_of_eager_code():
    def draw(x):
        return x + wf.randn(3), wf.rand(2)

    wf.manual_seed(7)
    expected = [draw(wf.zeros(3)) for _ in range(3)]
    after = wf.rand(1)
    wf.manual_seed(7)
    jitted = wf.jit(draw)
    for first, second in expected:
        a, b = jitted(wf.zeros(3))
        np.testing.assert_array_equal(a.numpy(), first.numpy())
        np.testing.assert_array_equal(b.numpy(), second.numpy())
    np.testing.assert_array_equal(wf.rand(1).numpy(), after.numpy())


def test_branches_on_values_are_each_recorded():
    @wf.jit
    def f(x):
        if x.sum() > 0:
            return x * 2
        return x - 1

    for sign in (1.0, -1.0, 1.0, -1.0, -1.0):
        x = wf.full((3,), sign)
        expected = x * 2 if sign > 0 else x - 1
        np.testing.assert_array_equal(f(x).numpy(), expected.numpy())


def test_no_state_is_written_on_the_path_not_taken():
    total = wf.zeros(2)

    @wf.jit
    def f(x):
        total.copy_(total + x)
        if total.sum() > 5:
            total.zero_()
        return total * 1

    seen = [f(wf.ones(2)).tolist() for _ in range(6)]
    assert seen == [[1, 1], [2, 2], [0, 0], [1, 1], [2, 2], [0, 0]]
    assert total.tolist() == [0, 0]


def test_numbers_read_from_values_follow_them():
    @wf.jit
    def f(x):
        mean = x.mean().item()
        return mean, mean * 2 + 1, x * mean

    for value in (1.0, 2.5, 4.0):
        mean, more, scaled = f(wf.full((2,), value))
        assert (mean, more) == (value, 2 * value + 1)
        assert isinstance(mean, float)
        assert scaled.tolist() == [value * value] * 2
    assert len(f._traces) == 1


def test_gradients_accumulate_over_calls():
    def gathered(decorate):
        w = wf.tensor([1.0, 2.0], requires_grad=True)

        @decorate
        def f(x):
            (w * x).sum().backward()

        for i in range(3):
            f(wf.full((2,), float(i + 1)))
        return w.grad.tolist()

    assert gathered(wf.jit) == gathered(eager) == [6.0, 6.0]


def test_arguments_are_written_to():
    @wf.jit
    def f(x):
        x += 1
        return x

    x = wf.zeros(2)
    assert f(x) is x
    assert f(x) is x
    assert x.tolist() == [2.0, 2.0]


def test_hooks_see_and_change_gradients():
    def gradient(decorate):
        w = wf.tensor([1.0, 2.0], requires_grad=True)

        @decorate
        def f(x):
            y = w * x
            y.register_hook(lambda g: g * 3)
            y.sum().backward()

        f(wf.ones(2))
        f(wf.ones(2))
        return w.grad.tolist()

    assert gradient(wf.jit) == gradient(eager) == [6.0, 6.0]


def test_train_and_eval_are_two_programs():
    net = network()
    jitted = wf.jit(net)
    x = batches(1)[0][0]
    for mode in (True, False, False):
        net.train(mode)
        wf.manual_seed(1)
        result = jitted(x).numpy()
        wf.manual_seed(1)
        if not mode:
            np.testing.assert_allclose(result, net(x).numpy(), rtol=1e-5, atol=1e-6)


def test_learning_rates_are_read_anew():
    w = wf.tensor([1.0], requires_grad=True)
    optimizer = wf.optim.SGD([w], lr=1.0)

    @wf.jit
    def step():
        optimizer.zero_grad()
        w.sum().backward()
        optimizer.step()

    for rate in (1.0, 0.5, 0.25):
        optimizer.param_groups[0]["lr"] = rate
        step()
    assert w.tolist() == [1.0 - 1.75]


def test_it_takes_functions_and_modules_only():
    with pytest.raises(TypeError, match=r"expected a function or a module\. Received: int 3"):
        wf.jit(3)


def test_a_strict_function_raises_where_it_would_run_eagerly():
    w = wf.tensor([1.0, 2.0], requires_grad=True)
    optimizer = wf.optim.LBFGS([w])
    step = wf.jit(lambda x: optimizer.step(lambda: closure(x)), strict=True)

    def closure(x):
        optimizer.zero_grad()
        loss = ((w - x) ** 2).sum()
        loss.backward()
        return loss

    with pytest.raises(GraphError, match="cannot be compiled: LBFGS steps by values"):
        step(wf.tensor([0.0, 0.0]))
    assert w.tolist() == [1.0, 2.0]
    double = wf.jit(strict=True)(lambda x: x * 2.0)
    assert double(wf.tensor([1.5])).tolist() == [3.0]


def test_it_tells_what_became_of_calls():
    scale = [2.0]

    @wf.jit
    def f(x):
        return x * scale[0] if x.sum() > 0 else -x

    f(wf.ones(2))
    f(wf.ones(2))
    f(-wf.ones(2))
    assert "a value that is read was another" in f.explain()
    scale[0] = 3.0
    assert f(wf.ones(2)).tolist() == [3.0, 3.0]
    assert "was 2.0, is 3.0" in f.explain()
    stats = f.stats()
    assert (stats["recordings"], stats["compiled_calls"], stats["eager_calls"]) == (3, 4, 0)
    assert sum(stats["kernels"].values()) > 0


def test_it_prints_its_function_and_how_many_programs_there_are():
    double = wf.jit(double_of)
    assert repr(double) == "<jit of double_of: 0 programs>"
    double(wf.ones(2))
    assert repr(double) == "<jit of double_of: 1 program>"


def test_its_graph_can_be_seen_without_running_it():
    calls = []

    @wf.jit
    def f(x):
        calls.append(1)
        return x + 1

    graph = f.graph(wf.ones(3))
    assert [node.op.name for node in graph.nodes if node.inputs] == ["add"]
    assert calls == []
    f(wf.ones(3))
    assert f.graph() is f.graph(wf.ones(3))


def test_what_cannot_be_recorded_runs_eagerly_and_says_so_once(capsys):
    @wf.jit
    def f(x):
        print("called")
        return x + 1

    with pytest.warns(
        RuntimeWarning, match=r"jit: f runs eagerly: calls print \(test_jit\.py:\d+\)"
    ):
        f(wf.ones(1))
    f(wf.ones(1))
    assert capsys.readouterr().out == "called\n" * 2
    assert f.stats()["eager_calls"] == 2
    with pytest.raises(RuntimeError, match="has no graph: calls print"):
        f.graph(wf.ones(1))


def test_backward_of_a_result_from_outside_runs_eagerly():
    w = wf.tensor([1.0, 2.0], requires_grad=True)
    inner = wf.jit(lambda w: (w * w).sum())

    def step(loss):
        loss.backward()
        return loss * 2

    for make in (lambda: sum(w * w), lambda: inner(w), lambda: inner(w) + inner(w)):
        w.grad, jitted = None, wf.jit(step)
        loss = make()
        with pytest.warns(RuntimeWarning, match="outside"):
            jitted(loss)
        np.testing.assert_allclose(w.grad, np.array([2.0, 4.0]) * loss.item() / 5)
        w.grad = None
        jitted(make())
        np.testing.assert_allclose(w.grad, np.array([2.0, 4.0]) * loss.item() / 5)


def test_tensors_of_numbers_that_change_have_the_dtypes_of_numbers():
    @wf.jit
    def make(a, n):
        filled = wf.full((2,), a), wf.full((2,), n), wf.full_like(wf.ones(2), n)
        return wf.tensor(a), wf.tensor([a, n]), wf.tensor(n), wf.asarray(a), *filled

    for a, n in ((0.5, 1), (0.25, 2), (0.125, 3)):
        found, expected = make(a, n), make._function(a, n)
        assert [x.dtype for x in found] == [x.dtype for x in expected]
        assert [x.tolist() for x in found] == [x.tolist() for x in expected]
    assert make.stats()["eager_calls"] == 0


def test_alpha_may_be_a_number_that_changes():
    step = wf.jit(lambda x, a: wf.add(x, x, alpha=a))
    for a in (0.5, 0.25, -1.5):
        assert step(wf.ones(2), a).tolist() == [1 + a, 1 + a]
    assert step.stats()["eager_calls"] == 0


def test_numbers_that_change_are_fed_to_calls_of_other_kinds():
    """What calls of one kind have shown is known when those of another kind come."""

    @wf.jit
    def scaled(x, rate):
        return x * rate + 1.0

    x, y = wf.ones((3,)), wf.ones((3,), dtype=wf.float64)
    for rate in (0.5, 0.25, 0.125):
        scaled(x, rate)
    assert scaled.stats()["recordings"] == 2
    for rate in (3.0, 4.0, 5.0):
        assert scaled(y, rate).tolist() == [rate + 1.0] * 3
    assert scaled.stats()["recordings"] == 3


@wf.jit
def tripled(x):
    return x * 3


class Halves(wf.nn.Module):
    """A network with a compiled method, and a compiled function of a method."""

    def __init__(self, weight=0.5):
        super().__init__()
        self.weight = wf.nn.Parameter(wf.tensor(weight))
        self.fast = wf.jit(self.plain, strict=True)

    def plain(self, x):
        return x * self.weight

    @wf.jit
    def method(self, x):
        return x * self.weight


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_jitted_functions_compile_anew_for_copied_objects(copied):
    x = wf.tensor([2.0])
    net = Halves()
    assert net.fast(x).item() == net.method(x).item() == 1.0
    other = copied(net)
    with wf.no_grad():
        other.weight.copy_(wf.tensor(2.0))
    assert other.fast(x).item() == other.method(x).item() == 4.0
    assert net.fast(x).item() == net.method(x).item() == 1.0
    assert other.fast.stats()["recordings"] == 1
    method = copied(net.method)
    assert method(x).item() == 1.0
    assert repr(method) == "<jit of method: 1 program>"
    assert copied(tripled) is tripled  # found by its name, as a function is
    named = copied(wf.jit(double_of))
    assert named(x).item() == 4.0
    assert copied(wf.jit(wf.nn.Identity()))(x).item() == 2.0
    with pytest.raises(GraphError, match="cannot be compiled"):
        copied(wf.jit(print, strict=True))(x)


def test_a_function_that_is_recorded_in_each_call_says_so_once():
    class Holder:
        def __init__(self):
            self.state = {"sum": wf.tensor(0.0)}

    held = Holder()

    @wf.jit
    def add(x):
        held.state = {"sum": held.state["sum"] + x}  # a new dictionary each time
        return held.state["sum"]

    for _ in range(16):
        add(wf.tensor(1.0))
    why = r"add is recorded anew in each call: .*held.state.* is another .*test_jit.py"
    with pytest.warns(RuntimeWarning, match=why) as told:
        found = [add(wf.tensor(1.0)).item() for _ in range(4)]
    assert len(told) == 1
    assert found == [17.0, 18.0, 19.0, 20.0]


class Stepping(wf.nn.Module):
    """Multiplies by a state that each call replaces, before or after it is read."""

    def __init__(self, first: bool) -> None:
        super().__init__()
        self.first = first
        self.register_buffer("state", wf.tensor([1.0, 2.0]))

    def forward(self, x):
        if self.first:
            self.state.copy_(self.state + 1)
        y = (x * self.state).pow(3).sum()
        if not self.first:
            self.state.copy_(self.state + 1)
        return y


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_behind_a_call_that_replaced_a_state_are_those_of_the_state_it_read(
    first, create_graph
):
    eager, jitted = Stepping(first), wf.jit(Stepping(first), strict=True)
    x = wf.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(3):
        expected, got = (
            wf.gradients(net(x), x, create_graph=create_graph).detach().numpy()
            for net in (eager, jitted)
        )
        np.testing.assert_array_equal(got, expected)


def test_hooks_inside_of_a_call_see_each_gradient_that_is_taken_outside_of_it():
    seen = []

    def hooked(x):
        y = x * 2
        y.register_hook(lambda g: seen.append(float(g.sum())))
        return (y * y).sum()

    jitted = wf.jit(hooked)
    x = wf.tensor([1.0, 2.0], requires_grad=True)
    with pytest.warns(RuntimeWarning, match="hooks on gradients"):
        jitted(x).backward()
    for _ in range(2):
        jitted(x).backward()
    assert seen == [12.0] * 3


def test_hooks_on_modules_see_each_gradient_that_is_taken_outside_of_a_call():
    seen = []
    net = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.Tanh())
    net[0].register_full_backward_hook(lambda module, into, out: seen.append(float(out[0].sum())))
    jitted = wf.jit(net)
    with pytest.warns(RuntimeWarning, match="hooks on gradients"):
        jitted(wf.ones(2, 3)).sum().backward()
    jitted(wf.ones(2, 3)).sum().backward()
    assert len(seen) == 2
    assert seen[0] == seen[1]
