"""wf.compile: functions and graphs as machine code for one signature."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from weft.core.errors import GraphError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(16, 4)).astype(np.float32)
Y = RNG.normal(size=(16, 2)).astype(np.float32)


def dot(x, y):
    return (x * y).sum()


def test_a_function():
    compiled = wf.compile(dot, wf.ones(3), wf.ones(3))
    found = compiled(wf.tensor([1.0, 2.0, 3.0]), np.array([1, 1, 2], np.float32))
    assert isinstance(found, wf.Tensor)
    assert float(found) == 9.0
    assert compiled.stats()["library"] == []
    assert repr(compiled) == "<compiled dot(float32[3], float32[3])>"
    assert "define" in compiled.executable.llvm_ir()


@pytest.mark.parametrize("copied", [copy.deepcopy, pickle.dumps])
def test_copies_are_refused_with_what_to_do(copied):
    compiled = wf.compile(dot, wf.ones(3), wf.ones(3))
    with pytest.raises(GraphError, match=r"compile: dot .* cannot be copied or pickled; .*wf\.jit"):
        copied({"fast": compiled})


def test_nests_of_arguments_and_results():
    def both(batch, *, unused=None):
        return {"sum": batch["a"] + batch["b"][0], "fixed": ("name", 3, None)}

    batch = {"a": wf.ones(2), "b": [wf.zeros(2)]}
    found = wf.compile(both, batch)({"a": wf.ones(2), "b": [wf.ones(2)]})
    np.testing.assert_array_equal(found["sum"].numpy(), [2, 2])
    assert found["fixed"] == ("name", 3, None)


def test_a_function_of_nothing():
    assert float(wf.compile(lambda: wf.ones(3).sum())()) == 3.0


def test_numbers_with_a_fraction_may_change_and_others_may_not():
    def scaled(x, factor, axis):
        return (x * factor).sum(axis)

    compiled = wf.compile(scaled, wf.ones((2, 3)), 1.0, 0)
    found = compiled(wf.ones((2, 3)), 2.5, 0)
    assert found.dtype == wf.float32
    np.testing.assert_array_equal(found.numpy(), [5, 5, 5])
    with pytest.raises(ValueError, match=r"scaled: 0 is part of what was compiled.*Received: 1"):
        compiled(wf.ones((2, 3)), 2.5, 1)


def training():
    wf.manual_seed(0)
    # No bias before the normalisation: its gradient is rounding, which Adam makes large.
    net = wf.nn.Sequential(wf.nn.Linear(4, 8, bias=False), wf.nn.BatchNorm1d(8), wf.nn.Tanh())
    net.append(wf.nn.Linear(8, 2))
    optimizer = wf.optim.Adam(net.parameters(), lr=0.01)
    return net, optimizer


def test_a_training_step_updates_weights_slots_and_statistics():
    net, optimizer = training()

    def step(x, y):
        loss = F.mse_loss(net(x), y)
        return loss, optimizer.minimize(loss)

    compiled = wf.compile(step, X, Y)
    losses = [float(compiled(X, Y)[0]) for _ in range(5)]
    twin, eager = training()
    for expected in losses:
        loss = F.mse_loss(twin(wf.tensor(X)), wf.tensor(Y))
        eager.zero_grad()
        loss.backward()
        eager.step()
        np.testing.assert_allclose(float(loss), expected, rtol=1e-5)
    assert optimizer.t == 5
    for (name, a), b in zip(net.state_dict().items(), twin.state_dict().values(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6, err_msg=name)


def test_what_a_function_writes_to_tensors_from_outside():
    count = wf.tensor(0.0)

    def counted(x):
        count.copy_(count + 1)
        return x + count

    compiled = wf.compile(counted, wf.zeros(()))
    assert float(count) == 0.0  # tracing is not running
    assert [float(compiled(wf.zeros(()))) for _ in range(3)] == [1.0, 2.0, 3.0]
    assert float(count) == 3.0


def test_random_numbers_are_those_of_eager_mode():
    compiled = wf.compile(lambda x: x + wf.rand(4), wf.zeros(4))
    wf.manual_seed(3)
    found = [compiled(wf.zeros(4)).numpy() for _ in range(3)]
    wf.manual_seed(3)
    np.testing.assert_array_equal(found, [wf.rand(4).numpy() for _ in range(3)])


def test_debug_interpret_runs_the_graph_node_by_node(monkeypatch):
    compiled = wf.compile(lambda x: x.exp().sum(), wf.zeros(1000))
    x = wf.tensor(RNG.normal(size=1000).astype(np.float32))
    monkeypatch.setattr(wf.config, "debug_interpret", True)
    assert float(compiled(x)) == float(x.exp().sum())


def make_graph():
    with wf.Graph() as graph:
        x = wf.placeholder((None, 3), wf.float32, name="x")
        y = (x * 2).sum()
    return graph, x, y


def test_a_graph():
    graph, x, y = make_graph()
    compiled = wf.compile(graph, np.ones((2, 3), np.float32), fetches={"y": y, "x": x})
    found = compiled(np.ones((2, 3), np.float32))
    assert found["y"] == 12.0
    assert isinstance(found["x"], np.ndarray)


def test_a_graph_of_known_sizes_needs_no_examples():
    weight = wf.tensor([1.0, 2.0])
    with wf.Graph() as graph:
        x = wf.placeholder((2,), wf.float32, name="x")
        y = (weight * x).sum()
        update = weight.assign(weight + x)
    compiled = wf.compile(graph, fetches=[y, update])
    found, written = compiled(np.ones(2, np.float32))
    assert found == 3.0
    np.testing.assert_array_equal(written, [2, 3])
    np.testing.assert_array_equal(weight.numpy(), [2, 3])


F32 = np.float32
BAD_CALLS = {
    "shape": (lambda c: c(np.ones(4, F32), np.ones(3, F32)), ValueError, r"dot: x .*\[3\].*\(4,\)"),
    "dtype": (lambda c: c(np.ones(3, int), np.ones(3, F32)), TypeError, r"dot: x .*int64"),
    "too few": (lambda c: c(np.ones(3, F32)), TypeError, r"dot: the arguments .*1 element"),
    "nest": (lambda c: c([np.ones(3, F32)], np.ones(3, F32)), ValueError, r"dot: "),
    "a symbol": (lambda c: c("x", np.ones(3, F32)), TypeError, r"dot: the value for x"),
}


@pytest.mark.parametrize(("call", "error", "message"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_calls_it_was_not_compiled_for(call, error, message):
    with pytest.raises(error, match=message):
        call(wf.compile(dot, wf.ones(3), wf.ones(3)))


def test_what_cannot_be_compiled():
    graph, _, y = make_graph()
    with pytest.raises(TypeError, match=r"a function or a wf\.Graph\. Received: int 3"):
        wf.compile(3)
    with pytest.raises(ValueError, match="fetches belong to graphs"):
        wf.compile(dot, wf.ones(3), wf.ones(3), fetches="x")
    with pytest.raises(ValueError, match="say what to compute"):
        wf.compile(graph)
    with pytest.raises(ValueError, match=r"x is float32\[x_0, 3\]: give examples"):
        wf.compile(graph, fetches=y)
    with pytest.raises(ValueError, match=r"1 placeholder\(s\): x\. Received: 2"):
        wf.compile(graph, X, X, fetches=y)
    compiled = wf.compile(graph, np.ones((2, 3), F32), fetches=y)
    with pytest.raises(ValueError, match=r"x was compiled for shape \(2, 3\).*\(4, 3\)"):
        compiled(np.ones((4, 3), F32))


def test_shapes_that_depend_on_values():
    compiled = wf.compile(lambda x: (x[x > 0] * 2, x.exp()), wf.ones(3))
    for numbers in ([0.0, 1.0, 2.0], [0.0, 0.0, 0.0], [1.0, 1.0, 3.0]):
        chosen, powers = compiled(wf.tensor(numbers))
        np.testing.assert_array_equal(chosen.numpy(), [2 * n for n in numbers if n > 0])
        np.testing.assert_allclose(powers.numpy(), np.exp(numbers), rtol=1e-6)


def test_the_name_is_the_function_after_the_compiler_is_loaded():
    import weft.compiler.stages  # noqa: F401, PLC0415 - a submodule must not take the name's place

    assert callable(wf.compile)


# -- calls after the first, which leave all checks to the code ------------------------------------


@pytest.fixture
def product():
    compiled = wf.compile(lambda x, y: x * y, wf.ones(3), wf.ones(3))
    for _ in range(2):
        np.testing.assert_array_equal(compiled(wf.full((3,), 2.0), wf.ones(3)).numpy(), [2, 2, 2])
    return compiled


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((wf.ones(4), wf.ones(3)), "x must be fed with float32.3."),
        ((wf.ones(3), wf.ones(3, dtype="int32")), "y must be fed with float32"),
        ((wf.ones(3), wf.ones(3, 1)), "y must be fed with float32.3."),
        ((wf.ones(3),), "Received: 1 element"),
        ((wf.ones(3),) * 3, "Received: 3 element"),
        ((wf.ones(3), "three"), "y"),
        ((wf.ones(3), None), "the value for y"),
    ],
)
def test_later_calls_are_checked_too(product, args, message):
    with pytest.raises((TypeError, ValueError), match=message):
        product(*args)
    np.testing.assert_array_equal(product(wf.ones(3), wf.ones(3)).numpy(), [1, 1, 1])


@pytest.mark.parametrize(
    "x",
    [
        np.arange(3, dtype=np.float32),
        np.arange(6, dtype=np.float32)[::2],
        np.arange(3, dtype=np.float32).view(type("Other", (np.ndarray,), {})),
        wf.nn.Parameter(wf.arange(3.0)),
        [0.0, 1.0, 2.0],
        wf.tensor(np.arange(3, dtype=np.float32)[::-1])[::-1],
    ],
)
def test_later_calls_take_what_the_first_takes(product, x):
    expected = np.asarray(x if isinstance(x, list) else x.detach() if hasattr(x, "detach") else x)
    found = product(x, wf.full((3,), 2.0))
    np.testing.assert_array_equal(found.numpy(), expected * 2)


def test_arguments_that_code_does_not_need_are_checked():
    first = wf.compile(lambda x, y: x + 1, wf.ones(3), wf.ones(3))
    for _ in range(2):
        first(wf.ones(3), wf.ones(3))
    with pytest.raises(ValueError, match="y must be fed"):
        first(wf.ones(3), wf.ones(4))


def test_results_of_later_calls_are_arrays_of_their_own(product):
    found = [product(wf.full((3,), float(i)), wf.ones(3)) for i in range(3)]
    assert [float(y[0]) for y in found] == [0.0, 1.0, 2.0]


def test_the_interpreter_can_be_asked_for_at_any_time(product, monkeypatch):
    monkeypatch.setattr(wf.config, "debug_interpret", True)
    monkeypatch.setattr(product.executable, "run_unchecked", None)
    np.testing.assert_array_equal(product(wf.ones(3), wf.ones(3)).numpy(), [1, 1, 1])


# -- updates ---------------------------------------------------------------------------------------


def test_a_step_trains_whether_it_returns_the_update_or_not():
    w = wf.nn.Parameter(wf.tensor([1.0, 2.0]))
    optimizer = wf.optim.SGD([w], lr=0.5)

    def step(x):
        loss = (w * x).sum()
        optimizer.minimize(loss)
        return loss

    compiled = wf.compile(step, wf.ones(2))
    assert [float(compiled(wf.ones(2))) for _ in range(3)] == [3.0, 2.0, 1.0]
    np.testing.assert_array_equal(w.numpy(), [-0.5, 0.5])
    assert optimizer.t == 3


def test_what_is_assigned_holds_from_there_on():
    t = wf.tensor(1.0)

    def double(x):
        before = t + 0
        t.assign(t + x)
        doubled = t.assign(t * 2)
        return before, doubled, t

    compiled = wf.compile(double, wf.tensor(1.0))
    for run in (compiled, double):
        t.assign(1.0)
        assert [float(y) for y in run(wf.tensor(2.0))] == [1.0, 6.0, 6.0]
        assert float(t) == 6.0


def two_steps(second_first):
    """Return a function that takes two steps on one parameter, and the parameter."""
    w = wf.nn.Parameter(wf.tensor([1.0, 2.0]))
    one, two = wf.optim.SGD([w], lr=0.5, momentum=0.5), wf.optim.Adam([w], lr=0.1)

    def step(x):
        loss = (w * w * x).sum()
        if second_first:  # made of the value that the first step changes
            other = (w * w * w).sum()
            one.minimize(loss)
        else:
            one.minimize(loss)
            other = (w * w * w).sum()
        two.minimize(other)
        one.minimize((w * x).sum())
        return loss, other

    return step, w


@pytest.mark.parametrize("second_first", [False, True])
def test_several_steps_in_one_function(second_first):
    step, w = two_steps(second_first)
    twin, v = two_steps(second_first)
    compiled = wf.compile(step, wf.ones(2))
    for _ in range(3):
        found, expected = compiled(wf.ones(2)), twin(wf.ones(2))
        np.testing.assert_allclose([*map(float, found)], [*map(float, expected)], rtol=1e-5)
        np.testing.assert_allclose(w.numpy(), v.detach().numpy(), rtol=1e-5)


def test_gradients_end_at_what_was_assigned():
    def losses(w, v):
        w.assign(v * 3)
        return wf.gradients((w * w * v).sum(), [w, v])

    def made():
        return [wf.nn.Parameter(wf.tensor([1.0, 2.0])) for _ in range(2)]

    w, v = made()
    found = wf.compile(lambda: losses(w, v))()
    for a, b in zip(found, losses(*made()), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_a_weight_that_was_written_to_before_the_step_trains():
    def made():
        w = wf.nn.Parameter(wf.tensor([1.0, 2.0]))
        optimizer = wf.optim.SGD([w], lr=0.5)

        def step(x):
            with wf.no_grad():
                w.clamp_(-1.5, 1.5)
            loss = (w * w * x).sum()
            optimizer.minimize(loss)
            return loss

        return step, w

    (step, w), (twin, v) = made(), made()
    compiled = wf.compile(step, wf.ones(2))
    for _ in range(2):
        assert float(compiled(wf.ones(2))) == float(twin(wf.ones(2)))
        np.testing.assert_array_equal(w.numpy(), v.detach().numpy())


NO_TENSORS = {
    "none": None,
    "list": [],
    "tuple": (),
    "number": 3.0,
    "nest": {"a": None, "b": [2, "c"]},
}


@pytest.mark.parametrize("what", NO_TENSORS)
def test_a_function_that_returns_no_tensor(what):
    compiled = wf.compile(lambda x: NO_TENSORS[what], wf.ones(2))
    assert [compiled(wf.ones(2)) for _ in range(2)] == [NO_TENSORS[what]] * 2
    assert compiled.stats()["kernels"] == {}


def test_a_function_that_returns_no_tensor_writes_what_it_assigns():
    total = wf.tensor(0.0)
    compiled = wf.compile(lambda x: [None, total.assign(total + x)][:1], wf.tensor(1.0))
    assert [compiled(wf.tensor(2.0)) for _ in range(2)] == [[None], [None]]
    assert float(total) == 4.0


@pytest.mark.parametrize("fetches", [[], (), {}, None])
def test_fetching_nothing(fetches):
    with wf.Graph() as graph:
        x = wf.placeholder((2,), wf.float32, name="x")
        x * 2
    session = wf.Session(graph, compiled=True)
    assert session.run(fetches, {"x": np.ones(2, np.float32)}) == fetches
    assert session.run(fetches) == fetches


def test_examples_that_are_too_few_or_too_many():
    with pytest.raises(TypeError, match=r"compile: Linear takes \(x.*give an example.*'x'"):
        wf.compile(wf.nn.Linear(3, 2))
    with pytest.raises(TypeError, match=r"Received: 2 examples, too many positional arguments"):
        wf.compile(lambda x: x, wf.ones(2), wf.ones(2))
