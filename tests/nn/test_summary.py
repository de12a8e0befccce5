"""The summary table and the counting of floating-point operations."""

import json
import operator

import numpy as np
import pytest

import weft as wf
from weft import nn


def net():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 4 * 4, 10),
    )


def test_rows_and_totals():
    summary = net().summary((2, 3, 8, 8))
    assert [row.layer for row in summary.rows] == [
        "Sequential",
        "Conv2d",
        "BatchNorm2d",
        "ReLU",
        "MaxPool2d",
        "Flatten",
        "Linear",
    ]
    conv, pool, linear = summary.rows[1], summary.rows[4], summary.rows[6]
    assert conv.outputs == [(2, 8, 8, 8)]
    assert conv.parameters == 8 * 27 + 8
    assert conv.flops == 2 * (2 * 8 * 64) * 27 + 2 * 8 * 64
    assert conv.memory == 2 * 8 * 64 * 4
    assert pool.flops == 2 * 8 * 16 * 4
    assert linear.flops == 2 * 20 * 128 + 20
    assert summary.parameters == summary.trainable == 224 + 16 + 1290
    assert summary.parameter_bytes == 4 * summary.parameters
    assert summary.buffer_bytes == 2 * 8 * 4 + 8
    assert summary.flops == sum(row.flops for row in summary.rows[1:])
    assert summary.activation_bytes == sum(row.memory for row in summary.rows[1:])


def test_running_it_changes_nothing():
    model = net()
    model[1].eval()
    before = {n: t.numpy().copy() for n, t in model.state_dict().items()}
    rng = wf.get_rng_state()
    model.summary(wf.randn(2, 3, 8, 8))
    assert model.training
    assert not model[1].training
    assert not any(m._hooks for m in model.modules())
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])
    assert rng != wf.get_rng_state()  # the example itself was drawn, nothing else
    with pytest.raises(ValueError, match="conv2d"):
        model.summary((2, 5, 8, 8))
    assert not any(m._hooks for m in model.modules())


def test_text():
    text = str(net().summary((2, 3, 8, 8)))
    lines = text.splitlines()
    assert lines[0].split() == ["Layer", "Output", "shape", "Parameters", "FLOPs", "Memory"]
    assert any(line.split()[:2] == ["Conv2d", "(0)"] and "(2, 8, 8, 8)" in line for line in lines)
    assert "Parameters: 1,530 (1,530 trainable, 0 frozen)" in text
    assert "FLOPs, forward: " in text
    assert "activations" in text
    assert max(map(len, lines)) <= 100


def test_without_input_only_parameters():
    summary = net().summary()
    assert not summary.ran
    assert "Output shape" not in str(summary)
    assert summary.parameters == 1530


def test_depth_frozen_shared_and_repeated_layers():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 3)
            self.b = nn.Linear(3, 3)
            self.b.weight = self.a.weight
            self.unused = nn.Linear(3, 3)
            self.a.requires_grad_(False)

        def forward(self, x):
            return self.b(self.a(self.a(x)))

    summary = Twice().summary((1, 3))
    by_name = {row.name: row for row in summary.rows}
    assert by_name["a"].calls == 2
    assert by_name["a"].flops == 2 * (2 * 9 + 3)
    assert by_name["b"].reused
    assert by_name["unused"].calls == 0
    assert summary.parameters == 9 + 3 + 3 + 12
    assert summary.parameters - summary.trainable == 12
    text = str(summary)
    for part in ("Linear (a) x2", "(shared)", "not run", "12 frozen"):
        assert part in text
    nested = nn.Sequential(nn.Sequential(nn.ReLU())).summary((2,), depth=1)
    assert [row.depth for row in nested.rows] == [0, 1]


def test_inputs_of_every_kind():
    two = nn.Bilinear(2, 3, 4)
    for given in (((5, 2), (5, 3)), ([(5, 2), (5, 3)],), (wf.zeros(5, 2), wf.zeros(5, 3))):
        assert two.summary(*given).rows[0].outputs == [(5, 4)]
    words = nn.Sequential(nn.Embedding(7, 2))
    assert words.summary((4, 6), dtype=wf.int64).rows[0].outputs == [(4, 6, 2)]
    assert net().double().summary((1, 3, 8, 8)).rows[0].memory == 80
    with pytest.raises(TypeError, match=r"tensors or shapes such as \(1, 3, 32, 32\)"):
        two.summary("image", "image")
    with pytest.raises(ValueError, match="depth must be at least 0"):
        two.summary((5, 2), (5, 3), depth=-1)


def test_open_layers_take_the_size_of_the_example():
    model = nn.Sequential(nn.LazyLinear(4))
    with pytest.raises(ValueError, match="give an example input"):
        model.summary()
    assert model.summary((2, 3)).parameters == 16


def open_net():
    wf.manual_seed(3)
    return nn.Sequential(
        nn.LazyConv2d(2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(None, 4), nn.LazyBatchNorm1d()
    )


def test_open_layers_are_left_open():
    x = np.random.default_rng(0).normal(size=(5, 3, 8, 8)).astype(np.float32)
    expected = open_net()
    result = expected(wf.tensor(x)).numpy()
    model = open_net()
    parameters, shown = list(model.parameters()), repr(model)
    assert model.summary((1, 8, 8)).parameters  # an image without its batch, as others ask for
    assert model.summary((5, 1, 8, 8)).rows[0].outputs == [(5, 4)]
    assert repr(model) == shown
    with pytest.raises(ValueError, match="no shape yet"):
        model.state_dict()
    np.testing.assert_array_equal(model(wf.tensor(x)).numpy(), result)
    assert repr(model) == repr(expected)
    assert all(map(operator.is_, model.parameters(), parameters))
    assert list(model.state_dict()) == list(expected.state_dict())


def test_open_layers_are_left_open_by_an_example_that_does_not_fit():
    model = nn.Sequential(nn.Linear(None, 4), nn.Linear(5, 2))
    with pytest.raises(ValueError, match="5"):
        model.summary((2, 3))
    model[1] = nn.Linear(4, 2)
    assert model(wf.ones(2, 7)).shape == (2, 2)


def test_nested_outputs():
    class Pair(nn.Module):
        def forward(self, x):
            return {"a": x, "b": [x[0], "text"]}

    assert Pair().summary((2, 3)).rows[0].outputs == [(2, 3), (3,)]


def test_plain_data():
    data = net().summary((2, 3, 8, 8)).to_dict()
    again = json.loads(json.dumps(data))
    assert again["rows"][1]["outputs"] == [[2, 8, 8, 8]]
    assert again["parameters"] == 1530


@pytest.mark.parametrize(
    ("run", "flops"),
    [
        (lambda: wf.ones(2, 3) @ wf.ones(3, 4), 48),
        (lambda: wf.ones(5, 2, 3) @ wf.ones(5, 3, 4), 240),
        (lambda: wf.ones(2, 3) + wf.ones(3), 6),
        (lambda: wf.ones(2, 3).sum(axis=0), 6),
        (lambda: wf.ones(2, 3).reshape(6).to(wf.float64), 0),
        (lambda: nn.functional.conv_transpose2d(wf.ones(1, 2, 3, 3), wf.ones(2, 4, 2, 2)), 576),
        (lambda: nn.functional.conv2d(wf.ones(1, 4, 3, 3), wf.ones(4, 2, 2, 2), groups=2), 256),
    ],
)
def test_counting(run, flops):
    with nn.CountFlops() as counter:
        run()
    run()
    assert counter.total == flops


def test_counting_nests_and_differentiates():
    x = wf.ones(3, requires_grad=True)
    with nn.CountFlops() as outer:
        with nn.CountFlops() as inner:
            y = (x * x).sum()
        y = y * 2.0
    assert (inner.total, outer.total) == (6, 7)
    y.backward()
    assert x.grad.tolist() == [4.0, 4.0, 4.0]
