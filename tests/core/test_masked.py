"""Masked arrays are refused at every door: their mask would be lost without a word."""

import tempfile

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentError, WeftError

MASKED = np.ma.array([1.0, 2.0, 3.0], np.float32, mask=[False, True, False])
WHOLE = np.ma.array([1.0, 2.0, 3.0], np.float32, mask=False)


def run_graph(x):
    with wf.Graph() as graph:
        fed = wf.placeholder((3,), wf.float32)
        y = fed * 2.0
    return wf.Session(graph).run(y, {fed: x}) / 2


def assigned(x):
    y = wf.zeros(3)
    y[...] = x
    return y


def copied(x):
    y = wf.zeros(3)
    y.copy_(x)
    return y


def fitted(x):
    net = wf.nn.Linear(1, 1)
    net.compile("sgd", "mse")
    net.fit(x[:, None], np.ones((3, 1), np.float32), epochs=1, verbose=0)
    return [1.0, 2.0, 3.0]


def predicted(x):
    return wf.nn.Identity().predict(x[:, None])[:, 0]


def measured(x):
    metric = wf.train.metrics.MSE()
    metric.update(x, np.zeros(3))
    return [1.0, 2.0, 3.0]


def saved(x):
    with tempfile.TemporaryDirectory() as folder:
        wf.save(f"{folder}/x.safetensors", {"x": x})
        return wf.load(f"{folder}/x.safetensors")["x"]


def loaded(x):
    module = wf.nn.Module()
    module.w = wf.nn.Parameter(wf.zeros(3))
    module.load_state_dict({"w": x})
    return module.w.detach()


DOORS = {
    "tensor": wf.tensor,
    "tensor of a dtype": lambda x: wf.tensor(x, dtype=wf.float32),
    "rows": lambda x: wf.tensor([x, x])[0],
    "rows of a dtype": lambda x: wf.tensor([x, x], dtype=wf.float32)[0],
    "asarray": wf.asarray,
    "shared": lambda x: wf.asarray(x, copy=False),
    "from_numpy": wf.from_numpy,
    "parameter": lambda x: wf.nn.Parameter(x).detach(),
    "function": lambda x: wf.exp(x).log(),
    "left of an operator": lambda x: x * wf.ones(3),
    "right of an operator": lambda x: wf.ones(3) * x,
    "list of operands": lambda x: wf.stack([x, x])[0],
    "feed": run_graph,
    "compiled": wf.compile(lambda y: y * 1.0, wf.ones(3)),
    "assigned": assigned,
    "copied": copied,
    "state": loaded,
    "fit": fitted,
    "predict": predicted,
    "metric": measured,
    "save": saved,
    "dataset": lambda x: wf.data.TensorDataset(x).tensors[0],
    "item": lambda x: next(iter(wf.data.DataLoader([x], batch_size=1)))[0],
    "collated": lambda x: wf.data.default_collate([{"a": x}])["a"][0],
}


@pytest.mark.parametrize("door", DOORS)
def test_masked_elements_are_refused(door):
    with pytest.raises(WeftError, match=r"1 masked element|2 masked elements"):
        DOORS[door](MASKED)


@pytest.mark.parametrize("door", DOORS)
def test_masked_arrays_without_masked_elements_are_arrays(door):
    found = DOORS[door](WHOLE)
    np.testing.assert_allclose(np.asarray(found), [1.0, 2.0, 3.0], rtol=1e-6)
    assert not isinstance(np.asarray(found), np.ma.MaskedArray)


def test_masked_number_is_refused():
    with pytest.raises(ArgumentError, match=r"data has 1 masked element, .*filled"):
        wf.tensor(np.ma.masked)
    with pytest.raises(ArgumentError, match="1 masked element"):
        wf.tensor([1.0, np.ma.masked])


def test_filled_is_what_the_error_says():
    assert wf.tensor(MASKED.filled(0)).tolist() == [1.0, 0.0, 3.0]
    assert wf.tensor(MASKED.compressed()).tolist() == [1.0, 3.0]
