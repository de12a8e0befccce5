"""Operations on tensors of a device: one launch each, equal results, and no copy unasked for."""

from __future__ import annotations

import copy
import gc
import os
import pickle

import numpy as np
import pytest

import weft as wf
from tests.opaque import no_copies, opaque, there  # noqa: F401  (opaque is a fixture)
from tests.ops import conformance as c
from weft.backends.device_memory import memory_of
from weft.core.device_array import DeviceArray, DeviceError
from weft.core.modes import modes
from weft.eager.on_devices import HostRunWarning, host_operators

F = wf.nn.functional
PLACE = "opaque:0"
TRIED = os.environ.get("WEFT_BACKEND", PLACE)  # any device by name, for the whole registry

pytestmark = pytest.mark.usefixtures("opaque")

KEEPING = (
    lambda x: x * 2 + 1,
    lambda x: 3 - x,
    lambda x: x + np.ones(3, np.float32),
    lambda x: wf.exp(x)[1:],
    lambda x: wf.concat([x, x]),
    lambda x: wf.split(x, 1)[2],
    lambda x: x.detach(),
    lambda x: x.clone(),
    lambda x: x.to(wf.float64),
    wf.tensor,
    wf.zeros_like,
    wf.nn.Parameter,
    copy.deepcopy,
    lambda x: F.one_hot(x.to(wf.int64), 4),
    lambda x: F.cross_entropy(x, wf.tensor(1, device=PLACE)),
    lambda x: wf.grad(lambda y: (y * x).sum())(x),
    lambda x: wf.jvp(lambda y: y * x, (x,), (x,))[1],
    wf.vmap(lambda y: y * 2),
    lambda x: wf.checkpoint(lambda y: y * x)(x),
    lambda x: next(iter(x)),
    lambda x: x.reshape(3, 1).T @ x,
    lambda x: wf.where(x > 1, x, 0.0),
    lambda x: F.softmax(x, 0),
    lambda x: F.dropout(x, 0.5),
    lambda x: wf.cumsum(x, 0),
    lambda x: x.to(wf.int64) / 2,
    lambda x: x.to(wf.float64) + np.float32(2),
    lambda x: x.to(wf.int64) * [1.0, 2.0, 3.0],
)


@pytest.mark.parametrize("function", KEEPING)
def test_results_are_where_the_operands_are(function):
    x = [1.0, 2.0, 3.0]
    wf.manual_seed(3)
    expected = function(wf.tensor(x)) if function is not KEEPING[14] else None  # names the device
    wf.manual_seed(3)
    given = there(x)
    with no_copies():
        found = function(given)
    assert found.device == PLACE
    if expected is not None:
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)


def test_a_tensor_there_has_no_array():
    x = there([1.0, 2.0])
    assert isinstance(x._value, DeviceArray)
    assert (x.shape, x.ndim, x.dtype, x.numel(), x.nbytes) == ((2,), 1, wf.float32, 2, 8)
    with pytest.raises(DeviceError, match=r"float32.2. on 'opaque:0'.*about to be copied"):
        np.asarray(x._value)
    with pytest.raises(TypeError):
        np.add(x._value, 1)


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.numpy(),
        lambda x: x.tolist(),
        np.asarray,
        lambda x: x[0].item(),
        lambda x: bool(x[0]),
        lambda x: float(x[0]),
        repr,
        lambda x: x.to("cpu"),
        lambda x: x.cpu(),
        lambda x: x.to("opaque:1"),
        lambda x: pickle.loads(pickle.dumps(x)),
    ],
)
def test_reading_copies_once(read):
    x = there([1.0, 2.0])
    with no_copies(out=1):
        read(x)


def test_what_is_read_is_what_is_there():
    x = there([1.0, 2.0])
    assert x.tolist() == x.cpu().tolist() == np.asarray(x).tolist() == [1, 2]
    assert repr(x) == "tensor([1., 2.])"
    assert pickle.loads(pickle.dumps(x)).device == PLACE
    assert x.to("opaque:1").to(PLACE).tolist() == [1, 2]


def test_writes_give_the_tensor_another_value():
    x = there([1.0, 2.0, 3.0])
    before = x.detach()
    with no_copies():
        x += 1
        x[0] = 7.0
        x.mul_(2)
    assert x.tolist() == [14, 6, 8]
    assert before.tolist() == [1, 2, 3]
    x.zero_()
    x.copy_(wf.ones(3, device=PLACE))
    assert x.tolist() == [1, 1, 1]


def test_gradients_are_where_their_tensors_are():
    w = there([1.0, 2.0], requires_grad=True)
    hooked = []
    y = w * w
    y.register_hook(lambda g: hooked.append(g.device))
    with no_copies():
        (y.sum() + y[0]).backward()
        (w * 3).sum().backward()
    assert w.grad.device == PLACE
    assert w.grad.tolist() == [7, 7]
    assert hooked == [PLACE]
    w.grad = None
    (wf.split(w, 1)[1] * 2).sum().backward()
    assert w.grad.tolist() == [0, 2]


def test_gradients_where_other_models_exchange_theirs():
    handle = wf.distributed.parallel(wf.nn.Linear(1, 1))
    try:
        test_gradients_are_where_their_tensors_are()
    finally:
        handle.close()


def test_gradients_of_gradients():
    def third(x):
        y = (x**3).sum()
        (g,) = wf.gradients(y, [x], create_graph=True)
        (h,) = wf.gradients((g * g).sum(), [x], create_graph=True)
        return wf.gradients(h.sum(), x)

    x = np.array([1.0, 2.0], np.float32)
    here, away = (wf.tensor(x, requires_grad=True, device=p) for p in ("cpu", PLACE))
    np.testing.assert_allclose(third(away).numpy(), third(here).numpy(), rtol=1e-6)


def test_a_tensor_that_is_moved_is_a_step_of_the_tape():
    w = wf.tensor([1.0, 2.0], requires_grad=True)
    far = w.to(PLACE)
    (far * far).sum().to("opaque:1").cpu().backward()
    assert w.grad.tolist() == [2, 4]
    assert w.grad.device == "cpu"
    v = there([1.0, 2.0], requires_grad=True)
    (v.cpu() ** 2).sum().backward()
    assert v.grad.tolist() == [2, 4]
    assert v.grad.device == PLACE


def test_devices_do_not_mix():
    message = r"add: operands are on device\('opaque:0'\) and device\('cpu'\).*x.to\('cpu'\)"
    with pytest.raises(ValueError, match=message):
        there([1.0]) + wf.ones(1)
    with pytest.raises(ValueError, match=r"'opaque:0'\) and device\('opaque:1'\)"):
        there([1.0]) * wf.ones(1, device="opaque:1")


def test_the_same_numbers_are_drawn_there():
    wf.manual_seed(0)
    here = [wf.rand(3), F.dropout(wf.ones(8), 0.5)]
    wf.manual_seed(0)
    away = [wf.rand(3, device=PLACE), F.dropout(wf.ones(8, device=PLACE), 0.5)]
    for a, b in zip(here, away, strict=True):
        assert b.device == PLACE
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_kernels_are_kept():
    counts = memory_of(PLACE).counts
    x = there([1.0, 2.0, 3.0, 4.0, 5.0])
    wf.exp(x)
    launches, allocations = counts["launches"], counts["allocations"]
    for _ in range(3):
        y = wf.exp(x)
    assert counts["launches"] == launches + 3
    assert counts["allocations"] <= allocations + 1  # freed memory is used again
    assert y.shape == (5,)


def test_the_host_computes_what_the_device_cannot_and_says_so():
    x = there([[4.0, 2.0], [2.0, 3.0]])
    runs = {(run.operator, run.device) for run in host_operators()}
    if ("cholesky", PLACE) in runs:
        found = wf.linalg.cholesky(x)
    else:
        with pytest.warns(HostRunWarning, match="cholesky of float32.*computed by the host"):
            found = wf.linalg.cholesky(x)
    with no_copies(out=1):
        wf.linalg.cholesky(x)  # said once
    assert found.device == PLACE
    np.testing.assert_allclose(found.numpy(), np.linalg.cholesky(x.numpy()), rtol=1e-6)
    stats = wf.device(PLACE).stats()
    (run,) = [run for run in stats["host"] if run.operator == "cholesky"]
    assert "library of the host" in run.reason
    assert stats["host runs"] >= 2
    assert run in host_operators()


def test_what_the_host_refuses_it_has_not_computed():
    x = there([1.0])
    before = [run for run in host_operators() if run.operator == "bitwise_and"]
    with pytest.raises(TypeError, match="bits are defined for integers"):  # and no warning
        x & x
    assert [run for run in host_operators() if run.operator == "bitwise_and"] == before


def test_cpu_tensors_go_their_own_way_when_nothing_is_there():
    x = there([1.0]) * 2
    assert modes.base is not None
    del x
    gc.collect()
    assert modes.base is None


def _square():
    class Square(wf.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 * x

    return Square


def _gradient(function):
    def found(x):
        function(x).sum().backward()
        return x.grad

    return found


PROGRAMS = {
    "cond": lambda x: wf.cond(x.sum() > 0, lambda: x * 2, lambda: x * 3),
    "while": lambda x: wf.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 1.5), (wf.zeros_like(x).sum(), x)
    )[1],
    "scan": _gradient(lambda x: wf.scan(lambda c, r: (c * r + r, c), wf.ones_like(x[0]), x)[0]),
    "hessian": wf.hessian(lambda x: (x**3).sum()),
    "gradients of examples": wf.vmap(wf.grad(lambda r: (r**2).sum())),
    "linearize": lambda x: wf.linearize(lambda y: y**3 * 2, x)[1](wf.ones_like(x)),
    "linearize to no direction": lambda x: wf.linearize(wf.tanh, x)[1](None),
    "linearize, of gradients": _gradient(lambda x: wf.linearize(wf.tanh, x)[1](wf.ones_like(x))),
    "linear transpose": lambda x: wf.linear_transpose(lambda y: y * 2, x)(x)[0],
    "checkpoint": _gradient(wf.checkpoint(lambda y: wf.tanh(y) * y)),
    "function": _gradient(_square().apply),
    "where": _gradient(lambda x: wf.where(x > 0, wf.log(x), 0.0)),
    "einsum": _gradient(lambda x: wf.einsum("ij,kj->ik", x, x)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_control_flow_and_transforms(name):
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    here, away = (wf.tensor(x, requires_grad=True, device=place) for place in ("cpu", PLACE))
    reads = 1 if name == "cond" else 4 if name == "while" else 0  # Python decides by a value
    with no_copies(out=reads):
        found = PROGRAMS[name](away)
    assert found.device == PLACE
    np.testing.assert_allclose(found.numpy(), PROGRAMS[name](here).numpy(), rtol=1e-5, atol=1e-6)


LAYERS = {
    "lstm": (lambda: wf.nn.LSTM(3, 4), (5, 2, 3)),
    "convolution": (
        lambda: wf.nn.Sequential(wf.nn.Conv2d(2, 3, 3), wf.nn.BatchNorm2d(3), wf.nn.MaxPool2d(2)),
        (2, 2, 6, 6),
    ),
    "transformer": (lambda: wf.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1), (3, 2, 8)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    make, shape = LAYERS[name]
    x = np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    grads = []
    for place in ("cpu", PLACE):
        wf.manual_seed(0)
        net = make().to(place)
        with no_copies():
            y = net(wf.tensor(x, device=place))
            ((y[0] if isinstance(y, tuple) else y) ** 2).mean().backward()
        grads.append([p.grad.numpy() for p in net.parameters()])
    for a, b in zip(*grads, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-3, atol=1e-5)


# -- errors ----------------------------------------------------------------------------------------


def test_a_device_of_no_such_number():
    with pytest.raises(ValueError, match=r"'opaque:0', 'opaque:1'.*Received: 'opaque:2'"):
        wf.device("opaque:2")
    assert wf.device("opaque") == "opaque:0"
    with pytest.raises(ValueError, match="opaque:x"):
        wf.ones(2, device="opaque:x")


def test_no_more_memory(opaque):  # noqa: F811  (the fixture)
    x = there(np.ones(100, np.float32))
    memory_of(PLACE).release()
    opaque.room = opaque.used + 600
    y = x + 1
    with pytest.raises(MemoryError, match=r"opaque:0 has no room for float32.100.*move tensors"):
        y * 2 + x
    assert y.tolist() == [2] * 100
    opaque.room = None
    assert (y * 2).sum().item() == 400


def test_a_lost_device(opaque):  # noqa: F811  (the fixture)
    x = there([1.0, 2.0])
    opaque.lost = True
    with pytest.raises(DeviceError, match="opaque:0 does not answer"):
        x + 1
    with pytest.raises(DeviceError, match="does not answer"):
        x.numpy()
    opaque.lost = False
    assert (x + 1).tolist() == [2, 3]


def test_no_double_precision(opaque):  # noqa: F811  (the fixture)
    opaque.doubles = False
    x = there(np.ones(7))
    with pytest.raises(RuntimeError, match=r"no double precision.*wf.float32"):
        wf.tanh(x)
    assert wf.tanh(there(np.ones(7, np.float32))).shape == (7,)


# -- the whole registry ----------------------------------------------------------------------------


def _one_of_each():
    first = {}
    for case in c.cases():
        if any(a.size for a in c.Arguments.of(case.sample).arrays()):
            first.setdefault(case.name, case)
    return list(first.values())


def _agree(case):
    given = c.Arguments.of(case.drawn())
    here = given.map(c.to_tensor).call(case.function)
    with wf.device(TRIED):
        found = given.map(lambda a: c.to_tensor(a).to(TRIED)).call(case.function)
    for a, b in zip(c.outputs_of(found), c.outputs_of(here), strict=True):
        exact = case.is_random or c.as_array(b).dtype.kind != "f"
        if isinstance(a, wf.Tensor) and not case.name.startswith("transfer"):
            assert a.device == TRIED, case.id
        np.testing.assert_allclose(
            c.as_array(a), c.as_array(b), *((0, 0) if exact else (2e-5, 1e-6)), err_msg=case.id
        )


@pytest.mark.filterwarnings("ignore::weft.eager.on_devices.HostRunWarning")
def test_one_sample_of_every_operator():
    """All operators at once: a test for each would take longer than what they compute."""
    cases = _one_of_each()
    for case in cases[::4]:
        _agree(case)
    assert len(cases) > 300


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::weft.eager.on_devices.HostRunWarning")
def test_all_samples_of_every_operator():
    for case in c.cases():
        _agree(case)
