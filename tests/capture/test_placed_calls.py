"""Compiled and jitted functions of tensors on a device: planned programs, nothing copied out."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.opaque import no_copies, opaque, there  # noqa: F401  (opaque is a fixture)

pytestmark = pytest.mark.usefixtures("opaque")
PLACE = "opaque:0"
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
F = wf.nn.functional


def trained(place, count=5):
    """Return the losses of a jitted step, and the net."""
    wf.manual_seed(0)
    layers = [wf.nn.Linear(3, 4), wf.nn.Tanh(), wf.nn.Dropout(0.5), wf.nn.Linear(4, 2)]
    net = wf.nn.Sequential(*layers).to(place)
    optimizer = wf.optim.Adam(net.parameters(), 0.01)

    @wf.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    x, y = wf.tensor(X, device=place), wf.tensor([0, 1, 0, 1], device=place)
    with no_copies():
        losses = [step(x, y) for _ in range(count)]
    assert losses[-1].device == place
    return [loss.item() for loss in losses], net


def test_a_jitted_step_stays_on_the_device():
    (here, net), (away, other) = trained("cpu"), trained(PLACE)
    np.testing.assert_allclose(away, here, rtol=1e-5)
    for p, q in zip(net.parameters(), other.parameters(), strict=True):
        assert q.device == q.grad.device == PLACE
        np.testing.assert_allclose(q.numpy(), p.numpy(), rtol=1e-3, atol=1e-5)


def test_what_python_reads_decides_the_path():
    @wf.jit
    def f(x):
        return x * 2 if x.sum() > 0 else x * 3

    x = there([1.0, 2.0])
    for _ in range(4):
        assert f(x).tolist() == [2, 4]
        assert f(-x).tolist() == [-3, -6]
        assert f(x).device == PLACE
        assert f(wf.ones(2)).device == "cpu"
    assert f(wf.ones(2, device="opaque:1")).device == "opaque:1"


def test_a_result_of_a_jitted_function_goes_on_backward():
    w = there([1.0, 2.0], requires_grad=True)

    @wf.jit
    def f(x):
        return (x * x).sum()

    for _ in range(3):
        w.grad = None
        (f(w) * 2).backward()
        assert w.grad.device == PLACE
        assert w.grad.tolist() == [4, 8]


def test_backward_through_a_jitted_loop_is_a_program_on_the_device():
    grads = []
    for place in ("cpu", PLACE):
        w = wf.tensor([0.5, 2.0], device=place, requires_grad=True)
        f = wf.jit(lambda x, w=w: wf.scan(lambda c, r: (c * r * w + r, c * w), x[0], x)[1].sum())
        x = wf.tensor(X[:, :2], device=place)
        with no_copies():
            for _ in range(2):
                w.grad = None
                (f(x) * 2).backward()
        assert w.grad.device == place
        grads.append(w.grad.tolist())
    np.testing.assert_allclose(*grads, rtol=1e-5)


def test_second_derivatives_of_jitted_functions_stay_on_the_device():
    f = wf.jit(lambda x: (x**3).sum())
    x = there([1.0, 2.0], requires_grad=True)
    (g,) = wf.gradients([f(x)], [x], create_graph=True)
    g.sum().backward()
    assert (g.device, g.tolist(), x.grad.device) == (PLACE, [3, 12], PLACE)
    assert x.grad.tolist() == [6, 12]


def test_devices_do_not_mix_in_a_jitted_function():
    w, v = there([1.0, 2.0]), wf.ones(2)

    @wf.jit
    def f(x):
        return x * w + v

    with pytest.raises(ValueError, match=r"'opaque:0'.* and .*'cpu'"):
        f(there([1.0, 2.0]))


def test_a_compiled_function_says_where_its_arguments_belong():
    double = wf.compile(lambda x: x * 2, there([1.0]))
    with no_copies():
        found = double(there([3.0]))
    assert (found.device, found.tolist()) == (PLACE, [6])
    assert double(wf.ones(1)).tolist() == [2]  # an input of the host is copied in
    with pytest.raises(ValueError, match="x is on 'opaque:1', and the program runs on 'opaque:0'"):
        double(wf.ones(1, device="opaque:1"))


def test_a_state_elsewhere_is_an_error_that_names_both():
    w = there([1.0])
    with wf.Graph() as graph:
        y = w * 2
    assert wf.Session(graph).run(y).tolist() == [2]
    with pytest.raises(ValueError, match="is on 'opaque:0', and the program runs on 'cpu'"):
        wf.Session(graph, device="cpu").run(y)


def test_feeds_and_fetches_of_a_session():
    with wf.Graph() as graph:
        x = wf.placeholder((None, 3), name="x")
        y = wf.exp(x).sum(axis=0)
    session = wf.Session(graph, device=PLACE)
    with no_copies(out=1):
        found = session.run(y, {x: wf.tensor(X, device=PLACE)})
    np.testing.assert_allclose(found, np.exp(X).sum(0), rtol=1e-6)
    np.testing.assert_allclose(session.run(y, {x: X[:2]}), np.exp(X[:2]).sum(0), rtol=1e-6)


def test_a_shape_that_depends_on_values_is_the_hosts_and_said_to_be():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), name="x")
        y = wf.masked_select(x, x > 0) * 2
    session = wf.Session(graph, device=PLACE)
    if session.executable(y, {x: np.ones(3)}) is None:
        with pytest.warns(RuntimeWarning, match="on the host, on copies"):
            found = session.run(y, {x: [1.0, -1.0, 2.0]})
    else:
        found = session.run(y, {x: [1.0, -1.0, 2.0]})
    assert found.tolist() == [2, 4]


def test_no_memory_for_a_program_loses_nothing(opaque):  # noqa: F811  (the fixture)
    w = there(np.ones(100, np.float32))
    with wf.Graph() as graph:
        step = w.assign(w + wf.exp(w).sum())
    session = wf.Session(graph)
    opaque.room = opaque.used
    with pytest.raises(MemoryError, match="opaque:0 has no room"):
        session.run(step)
    opaque.room = None
    assert w.tolist() == [1] * 100
    session.run(step)
    np.testing.assert_allclose(w.numpy(), 1 + 100 * np.e, rtol=1e-5)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: -x,
        lambda x: x + 1.0,
        lambda x: x.sum(),
        lambda x: wf.concat([x, x])[1:3] * 2.0,
        lambda x: wf.tanh(x) * x,
    ],
)
def test_gradients_outside_of_a_call(function):
    """Of functions whose gradient reads nothing of the call, or is what it is given, as well."""
    jitted = wf.jit(function)
    for _ in range(3):
        found = []
        for call, place in ((function, "cpu"), (jitted, PLACE)):
            x = wf.tensor([0.1, 0.2, 0.3], device=place, requires_grad=True)
            call(x).sum().backward()
            assert x.grad.device == place
            found.append(x.grad.numpy())
        np.testing.assert_allclose(*found, rtol=1e-5)
