"""Parameters and buffers that are made while a graph is built have values, as anywhere."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft import nn

MAKERS = {
    "draw": lambda: nn.Parameter(wf.randn(2)),
    "expression": lambda: nn.Parameter(wf.randn(2) * 0.1 + 1.0),
    "zeros": lambda: nn.Parameter(wf.zeros(2)),
    "list": lambda: nn.Parameter([1.0, 2.0]),
    "array": lambda: nn.Parameter(np.ones(2, np.float32), requires_grad=False),
    "tensor": lambda: nn.Parameter(wf.tensor([1.0, 2.0])),
    "lazy": lambda: nn.UninitializedParameter().materialize((2,)),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_parameter_has_a_value_at_once(make):
    wf.manual_seed(0)
    expected = make()
    wf.manual_seed(0)
    with wf.Graph():
        found = make()
    assert type(found) is nn.Parameter
    assert found.requires_grad == expected.requires_grad
    assert found.shape == (2,)
    if make is not MAKERS["lazy"]:  # whose values are arbitrary
        np.testing.assert_array_equal(found.detach().numpy(), expected.detach().numpy())


def test_draws_follow_one_another_as_they_do_eagerly():
    def make():
        wf.manual_seed(3)
        drawn = [nn.Parameter(wf.randn(2)), nn.Parameter(wf.rand(3) - 0.5), wf.nn.Linear(2, 2)]
        return [drawn[0], drawn[1], drawn[2].weight]

    expected = make()
    with wf.Graph():
        found = make()
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


@pytest.mark.parametrize("compiled", [False, True])
def test_it_is_trained_like_any_other(compiled):
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32, name="x")
        w = nn.Parameter(wf.ones(3) * 2.0)
        loss = ((w * x) ** 2).sum()
        step = wf.optim.SGD([w], lr=0.25).minimize(loss)
    session = wf.Session(graph, compiled=compiled)
    assert session.run([loss, step], {x: [1.0, 1.0, 1.0]})[0] == 12.0
    np.testing.assert_array_equal(w.detach().numpy(), [1, 1, 1])


def test_it_starts_with_the_present_value_of_another():
    other = nn.Parameter(wf.tensor([1.0, 2.0]))
    with wf.Graph():
        double = nn.Parameter(other * 2)
    with wf.no_grad():
        other += 1
    np.testing.assert_array_equal(double.detach().numpy(), [2, 4])


def test_buffers_have_values_too():
    module = nn.Module()
    with wf.Graph():
        module.register_buffer("scale", wf.ones(2) * 3.0)
        module.register_buffer("none", None)
    np.testing.assert_array_equal(module.scale.numpy(), [3, 3])
    assert list(module.state_dict()) == ["scale"]


def test_what_is_fed_later_is_no_value():
    message = r"Parameter needs a value now, and mul has none .*placeholder x.*give numbers"
    with wf.Graph():
        x = wf.placeholder((2,), wf.float32, name="x")
        with pytest.raises(RuntimeError, match=message):
            nn.Parameter(x * 2)
        with pytest.raises(RuntimeError, match=r"register_buffer: 'b' needs a value now"):
            nn.Module().register_buffer("b", x)
    with pytest.raises(RuntimeError, match="needs a value now, and v has none"):
        wf.compile(lambda v: nn.Parameter(v) * 2, wf.ones(3))


def test_examples_of_vmap_are_no_value():
    with pytest.raises(TypeError, match="Parameter needs one value, and inside vmap"):
        wf.vmap(lambda v: nn.Parameter(v) * 2)(wf.ones(3))
