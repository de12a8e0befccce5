"""grad, value_and_grad and vjp: by value, over trees, nested, in graphs."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import weft as wf
from weft.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    GradientError,
    ShapeError,
)
from weft.core.tree import TreeMismatchError


def scalar(value):
    return wf.tensor(np.float64(value))


def forward(fn):
    """Return the derivative of a function of one number by forward mode."""
    return lambda x: wf.jvp(fn, (x,), (scalar(1.0),))[1]


def in_graph(fn, value):
    """Return fn of a number, computed by a graph."""
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float64, name="x")
        y = fn(x)
    return float(wf.Session(graph).run(y, {x: value}))


# -- values ---------------------------------------------------------------------------------------


class Point(NamedTuple):
    x: wf.Tensor
    y: wf.Tensor


@dataclass
class Layer:
    weight: wf.Tensor
    bias: wf.Tensor


def test_trees_of_every_kind():
    def fn(tree):
        point, layer = tree["point"], tree["more"][0]
        return point.x * point.y + (layer.weight * 2).sum() + tree["more"][1] * layer.bias

    tree = {
        "point": Point(scalar(2.0), scalar(3.0)),
        "more": [Layer(wf.tensor([1.0, 2.0]), scalar(4.0)), scalar(5.0)],
    }
    value, grads = wf.value_and_grad(fn)(tree)
    assert value.item() == 6 + 6 + 20
    assert isinstance(grads["point"], Point)
    assert (grads["point"].x.item(), grads["point"].y.item()) == (3.0, 2.0)
    assert grads["more"][0].weight.tolist() == [2.0, 2.0]
    assert (grads["more"][0].bias.item(), grads["more"][1].item()) == (5.0, 4.0)


def test_argnums_aux_and_keywords():
    def fn(x, y, *, scale):
        return x * y * scale, {"seen": x, "name": "aux"}

    x, y = scalar(2.0), scalar(3.0)
    gradient, aux = wf.grad(fn, argnums=1, has_aux=True)(x, y, scale=10)
    assert gradient.item() == 20.0
    assert aux["name"] == "aux"
    assert not aux["seen"].requires_grad
    (value, aux), grads = wf.value_and_grad(fn, argnums=(0, -1), has_aux=True)(x, y, scale=1)
    assert (value.item(), [g.item() for g in grads]) == (6.0, [3.0, 2.0])


def test_numbers_and_arrays_are_arguments():
    assert wf.grad(lambda x: x * x)(3.0).item() == 6.0
    assert wf.grad(lambda x: (x * x).sum())(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]


def test_unused_arguments_have_zeros_and_constants_are_functions():
    assert wf.grad(lambda x: 1.0)(wf.tensor([1.0, 2.0])).tolist() == [0.0, 0.0]
    assert wf.grad(lambda x: x)(scalar(2.0)).item() == 1.0
    x = wf.tensor([1.0])
    assert wf.grad(lambda a, b: b.sum(), argnums=(0, 1))(x, x)[0].tolist() == [0.0]


def test_the_same_tensor_twice_is_two_arguments():
    x = scalar(3.0)
    first, second = wf.grad(lambda a, b: a * a * b, argnums=(0, 1))(x, x)
    assert (first.item(), second.item()) == (18.0, 9.0)


def test_arguments_may_be_written_in_place():
    def fn(x):
        x += 1
        x *= x
        return x

    x = scalar(2.0)
    assert wf.grad(fn)(x).item() == 6.0
    assert wf.grad(wf.grad(fn))(x).item() == 2.0
    assert forward(wf.grad(fn))(x).item() == 2.0
    assert x.item() == 2.0


def test_empty_and_no_grad_inside():
    assert wf.grad(lambda x: x.sum())(wf.zeros((0, 3))).shape == (0, 3)

    def half_constant(x):
        with wf.no_grad():
            y = x * x
        return x * y

    assert wf.grad(half_constant)(scalar(3.0)).item() == 9.0
    assert forward(wf.grad(half_constant))(scalar(3.0)).item() == 6.0


# -- what is around -------------------------------------------------------------------------------


def test_leaves_outside_are_untouched_but_still_linked():
    w = wf.tensor([1.0, 2.0], requires_grad=True)
    x = wf.tensor([3.0, 4.0], requires_grad=True)
    gradient = wf.grad(lambda x: (w * x * x).sum())(x)
    assert w.grad is None
    assert x.grad is None
    gradient.sum().backward()
    assert w.grad.tolist() == [6.0, 8.0]
    assert x.grad.tolist() == [2.0, 4.0]


def test_nothing_around_means_nothing_recorded():
    assert not wf.grad(lambda x: x * x)(scalar(1.0)).requires_grad
    value, pull = wf.vjp(lambda x: x * x, scalar(1.0))
    assert not value.requires_grad
    assert not pull(scalar(1.0))[0].requires_grad


def test_under_no_grad_gradients_are_values():
    w = wf.tensor(2.0, requires_grad=True)
    with wf.no_grad():
        value, gradient = wf.value_and_grad(lambda x: w * x * x)(wf.tensor(3.0))
    assert gradient.item() == 12.0
    assert not gradient.requires_grad
    assert not value.requires_grad


def test_vjp_functions_are_differentiable_in_their_cotangent():
    _, pull = wf.vjp(lambda x: x * x, scalar(3.0))
    assert wf.grad(lambda g: pull(g)[0])(scalar(1.0)).item() == 6.0
    assert forward(lambda g: pull(g)[0])(scalar(1.0)).item() == 6.0


def test_the_value_of_a_gradient_call_stays_differentiable():
    x = wf.tensor(3.0, requires_grad=True)
    value, gradient = wf.value_and_grad(lambda x: x**3)(x)
    (value + gradient).backward()
    assert x.grad.item() == 27 + 18


# -- vjp ------------------------------------------------------------------------------------------


def test_vjp_many_times_over_trees():
    def fn(params, n):
        return {"y": params["w"] * 2, "n": n + 1}

    value, pull = wf.vjp(fn, {"w": wf.tensor([1.0, 2.0])}, wf.tensor(3))
    assert value["n"].item() == 4
    for factor in (1.0, 5.0):
        grads = pull({"y": [factor, 0.0], "n": None})
        assert grads[0]["w"].tolist() == [2 * factor, 0.0]
        assert grads[1] is None
    assert pull(None)[0]["w"].tolist() == [0.0, 0.0]


def test_vjp_with_aux():
    value, pull, aux = wf.vjp(lambda x: (x * x, [x, "word"]), scalar(3.0), has_aux=True)
    assert (value.item(), pull(scalar(1.0))[0].item()) == (9.0, 6.0)
    assert (aux[0].item(), aux[1]) == (3.0, "word")


@pytest.mark.parametrize(
    ("cotangent", "error"),
    [
        (lambda: wf.tensor([1.0]), ShapeError),
        (lambda: wf.tensor(np.ones(2)), ShapeError),
        (lambda: [wf.tensor(1.0)], ShapeError),
        (lambda: "g", ArgumentTypeError),
    ],
)
def test_wrong_cotangents_are_named(cotangent, error):
    _, pull = wf.vjp(lambda x: x * 2, wf.tensor([1.0, 2.0]))
    with pytest.raises(error, match=r"float32\[2\]|a cotangent must be"):
        pull(cotangent())


def test_a_cotangent_of_another_structure_is_refused():
    _, pull = wf.vjp(lambda x: (x, x), scalar(1.0))
    with pytest.raises(TreeMismatchError, match="the cotangent must be"):
        pull(scalar(1.0))


# -- nesting --------------------------------------------------------------------------------------


DERIVATIVES = {"grad": wf.grad, "forward": forward}
ORDERS = [
    (a, b, c)
    for a in DERIVATIVES.values()
    for b in DERIVATIVES.values()
    for c in DERIVATIVES.values()
]


@pytest.mark.parametrize("order", ORDERS)
def test_three_levels_in_every_order(order):
    def fn(x):
        return wf.exp(2 * x) * wf.prod(wf.stack([x, x]))

    third = fn
    for derivative in order:
        third = derivative(third)
    x = 0.7
    expected = np.exp(2 * x) * (8 * x * x + 24 * x + 12)
    assert third(scalar(x)).item() == pytest.approx(expected, rel=1e-12)
    assert in_graph(third, x) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("inner", DERIVATIVES.values())
@pytest.mark.parametrize("outer", DERIVATIVES.values())
def test_perturbations_do_not_mix(outer, inner):
    # d/dx [x * d/dy (x + y)] = 1 at x = 1 (Siskind & Pearlmutter)
    def fn(x):
        return x * inner(lambda y: x + y)(scalar(1.0))

    assert outer(fn)(scalar(1.0)).item() == 1.0
    assert in_graph(outer(fn), 1.0) == 1.0


@pytest.mark.parametrize("inner", DERIVATIVES.values())
@pytest.mark.parametrize("outer", DERIVATIVES.values())
def test_the_inner_function_sees_the_outer_variable(outer, inner):
    # f(x) = d/dy (y exp(x y)) at y = x = exp(x^2) (1 + x^2)
    def fn(x):
        return inner(lambda y: y * wf.exp(x * y))(x)

    x = 0.7
    expected = np.exp(x * x) * (4 * x + 2 * x**3)
    assert outer(fn)(scalar(x)).item() == pytest.approx(expected, rel=1e-12)
    assert in_graph(outer(fn), x) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("outer", DERIVATIVES.values())
def test_a_function_that_returns_a_closure_over_its_argument(outer):
    # D(x -> D(y -> x * y)(2)) with the inner function built outside (Manzyuk et al.)
    def shifted(x):
        return wf.grad(lambda y: (x + y) ** 3)(scalar(2.0))

    assert outer(shifted)(scalar(1.0)).item() == 18.0


def test_through_loops_in_graphs_and_eagerly():
    def fn(x):
        return wf.scan(lambda c, _: (wf.sin(c) * x, None), x, length=3)[0]

    second = wf.grad(wf.grad(fn))
    assert second(scalar(0.5)).item() == pytest.approx(in_graph(second, 0.5), rel=1e-12)
    mixed = forward(wf.grad(fn))
    assert mixed(scalar(0.5)).item() == pytest.approx(in_graph(mixed, 0.5), rel=1e-12)


def test_compiled():
    fn = wf.compile(wf.value_and_grad(lambda x: (x * x).sum()), wf.tensor([1.0, 2.0]))
    value, gradient = fn(wf.tensor([3.0, 4.0]))
    assert (value.item(), gradient.tolist()) == (25.0, [6.0, 8.0])


def test_detects_anomalies():
    with wf.detect_anomaly(), pytest.raises(wf.WeftError, match="NaN"):
        wf.grad(lambda x: wf.sqrt(x) * 0)(wf.tensor(0.0))


# -- mistakes -------------------------------------------------------------------------------------


def test_mistakes_are_explained():
    x = wf.tensor([1.0, 2.0])
    with pytest.raises(GradientError, match=r"one number.*shape \(2,\).*jacrev"):
        wf.grad(lambda x: x)(x)
    with pytest.raises(ArgumentTypeError, match="has_aux=True"):
        wf.grad(lambda x: (x.sum(), x))(x)
    with pytest.raises(DTypeError, match="only floating-point"):
        wf.grad(lambda x: x.sum())(wf.tensor([1, 2]))
    with pytest.raises(DTypeError, match="has no gradient"):
        wf.grad(wf.argmax)(x)
    with pytest.raises(ArgumentError, match="1 positional"):
        wf.grad(lambda x: x.sum(), argnums=1)(x)
    with pytest.raises(ArgumentError, match="different arguments"):
        wf.grad(lambda x: x.sum(), argnums=(0, 0))(x)
    with pytest.raises(ArgumentTypeError, match="argnums must be"):
        wf.grad(lambda x: x.sum(), argnums="x")(x)
    with pytest.raises(ArgumentTypeError, match="takes a function"):
        wf.grad(3)
    with pytest.raises(ArgumentTypeError, match="must be a tensor or a number"):
        wf.grad(lambda x: x)("three")
    with pytest.raises(ArgumentTypeError, match="a pair"):
        wf.grad(lambda x: x.sum(), has_aux=True)(x)


def test_a_value_that_escaped_is_explained():
    kept = []
    forward(wf.grad(lambda x: kept.append(x) or x * x))(scalar(1.0))
    with pytest.raises(GradientError, match="has ended"):
        kept[0] + 1
