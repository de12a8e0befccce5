"""`wf.export`: functions, modules, graphs and jitted steps."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import weft as wf
from tests.exported import Model, ModelError
from weft import nn
from weft.core.errors import ArgumentTypeError, GraphError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="libraries are for Linux")


def names(model, what):
    found = getattr(model.info, f"{what}s")[: getattr(model.info, f"{what}_count")]
    return [tensor.name.decode() for tensor in found]


def test_modules_have_a_method(tmp_path):
    net, x = nn.Linear(3, 2), np.arange(6, dtype=np.float32).reshape(2, 3)
    net.export(tmp_path / "m.so", x)
    model = Model(str(tmp_path / "m.so"))
    assert model.info.name == b"Linear"
    assert names(model, "input") == ["x"]
    assert model(x)[0].tobytes() == wf.compile(net, x)(x).numpy().tobytes()


def test_it_is_what_a_call_would_do_now(tmp_path):
    net, x = nn.BatchNorm1d(3), np.arange(12, dtype=np.float32).reshape(4, 3)
    compiled = wf.compile(net, x)
    net.eval()
    compiled.export(tmp_path / "m.so")
    model = Model(str(tmp_path / "m.so"))
    before = model.states
    np.testing.assert_allclose(model(x)[0], x, rtol=1e-4)
    assert all(np.array_equal(model.states[name], before[name]) for name in before)


def test_functions_and_their_nests(tmp_path):
    def pair(batch, scale):
        return {"sum": batch["x"] + batch["y"], "more": [batch["x"] * scale, None]}

    batch = {"x": wf.ones(2), "y": wf.ones(2)}
    wf.export(pair, tmp_path / "m.so", batch, 2.5)
    model = Model(str(tmp_path / "m.so"))
    assert names(model, "input") == ["batch['x']", "batch['y']", "scale"]
    assert sorted(names(model, "output")) == ["more_0", "sum"]
    ones = np.ones(2, np.float32)
    found = dict(zip(names(model, "output"), model(ones, ones, np.array(3.0)), strict=True))
    assert found["more_0"].tolist() == [3, 3]
    assert found["sum"].tolist() == [2, 2]


def test_graphs(tmp_path):
    with wf.Graph("plus") as graph:
        x = wf.placeholder((2,), wf.float32, name="x")
        y = x + 1
    wf.export(graph, tmp_path / "m.so", fetches=y)
    assert Model(str(tmp_path / "m.so"))(np.zeros(2, np.float32))[0].tolist() == [1, 1]


def step_of(momentum=0.9):
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1, momentum=momentum)

    @wf.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return {"loss": loss}

    x = wf.asarray(np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32))
    return step, x, wf.asarray(np.arange(6) % 2)


def test_jitted_steps_go_on_as_they_would_in_python(tmp_path):
    step, x, y = step_of()
    for _ in range(3):
        step(x, y)
    wf.export(step, tmp_path / "m.so", x, y)
    model = Model(str(tmp_path / "m.so"))
    assert names(model, "output") == ["loss"]
    for _ in range(4):
        found = model(x.numpy(), y.numpy())[0]
        assert found.tobytes() == step(x, y)["loss"].detach().numpy().tobytes()


def test_the_last_call_of_a_jitted_function(tmp_path):
    step, x, y = step_of()
    step(x, y)
    step.export(tmp_path / "m.so")
    found = Model(str(tmp_path / "m.so"))(x.numpy(), y.numpy())[0]
    assert found.tobytes() == step(x, y)["loss"].detach().numpy().tobytes()


def test_a_jitted_function_of_several_paths(tmp_path):
    @wf.jit
    def either(x):
        return x * 2 if x.sum() > 0 else x - 1

    for sign in (1, -1, 1):
        either(wf.full((3,), float(sign)))
    with pytest.raises(GraphError, match="give arguments that say which to export"):
        either.export(tmp_path / "m.so")
    either.export(tmp_path / "m.so", wf.ones(3))
    model = Model(str(tmp_path / "m.so"))
    assert model(np.ones(3, np.float32))[0].tolist() == [2, 2, 2]
    with pytest.raises(ModelError, match="out of range"):
        model(-np.ones(3, np.float32))


def test_jitted_functions_that_were_not_called(tmp_path):
    step, x, y = step_of(0.0)
    step.export(tmp_path / "m.so", x, y)
    found = Model(str(tmp_path / "m.so"))(x.numpy(), y.numpy())[0]
    np.testing.assert_allclose(found, step(x, y)["loss"].detach().numpy(), rtol=1e-6)


def test_what_jit_cannot_give_away(tmp_path):
    step, x, y = step_of()
    with pytest.raises(ArgumentTypeError, match=r"batches, give wf\.export the function itself"):
        step.export(tmp_path / "m.so", x, y, batches=[2])
    same = wf.jit(lambda x: (x + 1, x))
    with pytest.raises(GraphError, match="returns its argument 0 itself"):
        same.export(tmp_path / "m.so", x)


def test_what_is_no_function(tmp_path):
    with pytest.raises(ArgumentTypeError, match=r"expected a function or a wf\.Graph"):
        wf.export(3, tmp_path / "m.so")
    assert list(tmp_path.iterdir()) == []
