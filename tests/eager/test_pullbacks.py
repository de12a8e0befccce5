"""Gradients of elementwise operators on large tensors: one pass of machine code."""

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from weft.core import op as core_op
from weft.core.large import LARGE, Door
from weft.eager import pullbacks

FUNCTIONS = {
    "relu": wf.relu,
    "gelu": F.gelu,
    "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"),
    "tanh": wf.tanh,
    "sigmoid": wf.sigmoid,
    "silu": F.silu,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "elu": F.elu,
    "sqrt": lambda x: wf.sqrt(abs(x) + 1),
    "log": lambda x: wf.log(abs(x) + 1),
    "square": wf.square,
    "sin": wf.sin,
}


@pytest.fixture
def made(monkeypatch):
    """Return the names of operators whose gradients were compiled."""
    wf.zeros(LARGE)  # opens the door
    monkeypatch.setattr(wf.config, "eager_kernels", True)
    found, real = [], pullbacks._compiled

    def counted(name, *args):
        found.append(name)
        return real(name, *args)

    monkeypatch.setattr(pullbacks, "_compiled", counted)
    return found


@pytest.mark.parametrize("opens", ["before", "with", "after"])
def test_an_operator_has_it_whenever_the_door_opens(opens, monkeypatch):
    class OpenedByAnotherThread(Door):
        def admit(self, op, scope):
            super().admit(op, scope)
            if opens == "with":
                self.unlock()

    tanh, door = wf.tanh.op, OpenedByAnotherThread()
    for name in ("backward", "linked", "saves", "_specialized"):
        monkeypatch.setattr(tanh, name, None)
    monkeypatch.setattr(core_op, "door", door)
    if opens == "before":
        door.unlock()
    generated = tanh.specialized.backward
    if opens == "after":
        door.unlock()
    assert tanh.backward is tanh.specialized.scope["backward"] is not generated


def operand(size=LARGE, dtype=np.float32):
    values = np.random.default_rng(0).normal(size=size).astype(dtype)
    values.reshape(-1)[:4] = 0.0, -0.0, np.inf, np.nan
    return wf.tensor(values, requires_grad=True)


def gradient(function, x):
    g = np.random.default_rng(1).normal(size=x.shape).astype(x._value.dtype)
    with np.errstate(all="ignore"):
        return wf.gradients(function(x), x, wf.tensor(g)).numpy()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_numpy(name, dtype, monkeypatch):
    x = operand(LARGE + 3, dtype)
    found = gradient(FUNCTIONS[name], x)
    monkeypatch.setattr(wf.config, "eager_kernels", False)
    expected = gradient(FUNCTIONS[name], x)
    tolerance = 3e-6 if dtype == np.float32 else 1e-14
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    assert found.dtype == dtype


def test_code_is_made_once_for_a_size_and_attributes(made):
    for slope in (0.11, 0.11, 0.12):
        gradient(lambda x, s=slope: F.leaky_relu(x, s), operand(LARGE + 5))
    assert made == ["leaky_relu"] * 2


def test_small_gradients_and_those_of_numpy_need_no_code(made, monkeypatch):
    gradient(wf.tanh, operand(100))
    monkeypatch.setattr(wf.config, "eager_kernels", False)
    gradient(wf.tanh, operand(LARGE + 7))
    assert not made


def test_gradients_that_lie_otherwise(made, monkeypatch):
    x = wf.tensor(np.random.default_rng(0).normal(size=(300, 300)), requires_grad=True)
    found = wf.gradients(wf.tanh(x).T * wf.arange(300.0, dtype=wf.float64), x, wf.ones(300, 300))
    monkeypatch.setattr(wf.config, "eager_kernels", False)
    expected = wf.gradients(wf.tanh(x).T * wf.arange(300.0, dtype=wf.float64), x, wf.ones(300, 300))
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-11)


def test_a_gradient_that_is_one_number_for_all_elements(made, monkeypatch):
    def slopes(x):
        return wf.gradients((wf.square(x).sum() * 3).sqrt(), x).numpy()

    x = operand((LARGE // 64 + 1, 64))
    x = wf.tensor(np.nan_to_num(x.detach().numpy(), posinf=2.0), requires_grad=True)
    found = [slopes(x) for _ in range(2)]
    assert made == ["square"]
    monkeypatch.setattr(wf.config, "eager_kernels", False)
    for one in found:
        np.testing.assert_allclose(one, slopes(x), rtol=1e-5)


def test_second_derivatives(made):
    x = wf.tensor(np.linspace(-2, 2, LARGE), requires_grad=True)
    (g,) = wf.gradients([wf.tanh(x)], [x], [wf.ones_like(x)], create_graph=True)
    found = wf.gradients(g.sum(), x).numpy()
    t = np.tanh(x.detach().numpy())
    np.testing.assert_allclose(found, -2 * t * (1 - t * t), rtol=1e-10, atol=1e-12)
