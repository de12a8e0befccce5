"""Forward mode: jvp, dual numbers, nesting."""

import tracemalloc

import numpy as np
import pytest

import weft as wf
from weft.autodiff.check import check_grads
from weft.autodiff.forward import Dual, jvp
from weft.core.errors import ArgumentTypeError, DTypeError, GradientError, ShapeError
from weft.core.tree import TreeMismatchError


def array(*values):
    return np.array(values)


def scalar(value):
    return wf.tensor(np.float64(value))


def derivative(fn):
    """Return the derivative of a function of one number."""
    return lambda x: jvp(fn, (x,), (scalar(1.0),))[1]


# -- one level ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (wf.exp, [array(0.5, -1.0)]),  # partials
        (lambda x, y: x + y, [array(1.0, 2.0), np.float64(3.0).reshape(())]),  # linear, broadcast
        (lambda x, y: x * y, [np.ones((2, 1)), np.ones((1, 3))]),  # multilinear
        (lambda x, y: x / y, [array(1.0, 2.0), array(3.0, 4.0)]),
        (wf.matmul, [np.ones((2, 3)), np.ones((3, 2))]),
        (lambda x: wf.sum(x, axis=0), [np.ones((2, 3))]),
        (lambda x: wf.prod(x, axis=1), [np.arange(1.0, 7.0).reshape(2, 3)]),  # transposed vjp
        (lambda x: wf.concat([x, x * x], axis=0), [np.ones((2, 3))]),  # variadic
        (lambda x: wf.reshape(x, (3, 2)), [np.ones((2, 3))]),
        (lambda x: x[1:] * x[:-1], [np.arange(4.0)]),
    ],
)
def test_agrees_with_differences_to_second_order(fn, args):
    check_grads(fn, args, order=2)


def test_trees_in_and_out():
    def fn(params, x):
        return {"y": params["w"] * x, "constant": wf.tensor([1.0, 2.0]), "n": wf.argmax(x)}

    primals = ({"w": array(2.0, 3.0)}, array(4.0, 5.0))
    y, ty = jvp(fn, primals, ({"w": array(1.0, 0.0)}, None))
    assert y["y"].tolist() == [8.0, 15.0]
    assert ty["y"].tolist() == [4.0, 0.0]
    assert ty["constant"].tolist() == [0.0, 0.0]
    assert ty["n"] is None


def test_numbers_and_values_can_be_read():
    def fn(x):
        assert isinstance(x, Dual)
        assert (x.shape, x.ndim, x.size, x.dtype) == ((), 0, 1, wf.float64)
        assert float(x) == x.item() == 3.0
        assert int(x) == 3
        assert x.numpy() == np.array(x) == 3.0
        assert "tangent" in repr(x)
        return x * x if x > 2 else x

    assert derivative(fn)(scalar(3.0)).item() == 6.0


def test_detach_stops_the_derivative():
    assert derivative(lambda x: x * x.detach())(scalar(3.0)).item() == 3.0


def test_writing_in_place_changes_value_and_tangent():
    def fn(x):
        y = x * 1.0
        y += x
        y *= y
        return y

    assert derivative(fn)(scalar(3.0)).item() == 24.0


def test_integer_operations_have_no_tangent():
    y, ty = jvp(lambda x: wf.floor(x) * x, (array(1.5),), (array(1.0),))
    assert (y.tolist(), ty.tolist()) == ([1.5], [1.0])


def test_tangents_keep_float32():
    x = wf.tensor([1.0, 2.0])
    assert jvp(lambda x: wf.exp(x) * 2, (x,), (x,))[1].dtype == wf.float32


def test_independent_of_grad_mode():
    with wf.no_grad():
        assert derivative(lambda x: wf.prod(x * x))(scalar(3.0)).item() == 6.0


# -- several levels -------------------------------------------------------------------------------


def test_perturbations_do_not_mix():
    # d/dx [x * d/dy (x + y)] = 1, and not 2 as with untagged perturbations (Siskind & Pearlmutter)
    def inner(x):
        return derivative(lambda y: x + y)(scalar(1.0))

    assert derivative(lambda x: x * inner(x))(scalar(1.0)).item() == 1.0


def test_higher_derivatives():
    fourth = wf.exp
    for _ in range(4):
        fourth = derivative(fourth)
    assert fourth(scalar(1.0)).item() == pytest.approx(np.e)


def test_nested_through_transposed_rules():
    third = derivative(derivative(derivative(lambda x: wf.prod(wf.stack([x, x, x, x])))))
    assert third(scalar(2.0)).item() == pytest.approx(48.0)


def test_outer_variable_inside_inner_function():
    # f(x) = d/dy (y * exp(x * y)) at y = x
    def f(x):
        return derivative(lambda y: y * wf.exp(x * y))(x)

    x, h = 0.7, 1e-6

    def plain(x):
        return np.exp(x * x) * (1 + x * x)

    expected = (plain(x + h) - plain(x - h)) / (2 * h)
    assert derivative(f)(scalar(x)).item() == pytest.approx(expected, rel=1e-6)


def test_reverse_over_forward():
    x = wf.tensor(array(1.0, 2.0), requires_grad=True)
    _, t = jvp(lambda x: wf.sum(x * x * x), (x,), (array(1.0, 0.0),))
    assert wf.gradients(t, x).tolist() == [6.0, 0.0]


# -- mistakes -------------------------------------------------------------------------------------


def test_a_dual_that_escaped_is_explained():
    kept = []
    jvp(lambda x: kept.append(x) or x, (array(1.0),), (array(1.0),))
    with pytest.raises(GradientError, match="belongs to a jvp that has ended"):
        kept[0] + 1


@pytest.mark.parametrize(
    ("primals", "tangents", "error", "message"),
    [
        (np.ones(2), (np.ones(2),), ArgumentTypeError, "primals must be a list or tuple"),
        ((np.ones(2),), np.ones(2), ArgumentTypeError, "tangents must be a list or tuple"),
        ((np.ones(2),), (np.ones(3),), ShapeError, r"float64\[2\].*Received: float64\[3\]"),
        ((np.ones(2, int),), (np.ones(2),), DTypeError, "int64 and has no derivative"),
        ((np.ones(2),), ("text",), ArgumentTypeError, "Received: str"),
        (({"a": np.ones(2)},), ({"b": np.ones(2)},), TreeMismatchError, "missing"),
        ((np.ones(2),), (), TreeMismatchError, "tangents must be"),
    ],
)
def test_mistakes_are_explained(primals, tangents, error, message):
    with pytest.raises(error, match=message):
        jvp(lambda *xs: xs, primals, tangents)


# -- memory ---------------------------------------------------------------------------------------


def peak_of_chain(length):
    def chain(x):
        for _ in range(length):
            x = wf.tanh(x)
        return x

    x = np.full(50_000, 0.5)
    tracemalloc.start()
    jvp(chain, (x,), (x,))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_memory_does_not_grow_with_depth():
    peak_of_chain(2)  # operators are compiled on first use
    assert peak_of_chain(100) < 1.2 * peak_of_chain(10)


# -- writing into plain tensors -------------------------------------------------------------------


def filled_by_index(x):
    out = wf.zeros(2, 3, dtype=x.dtype)
    alias = out
    out[0] = x * x
    out[1, 0] = 5.0
    return alias * 2.0


def filled_by_operator(x):
    out = wf.zeros(3, dtype=x.dtype)
    for _ in range(2):
        out += x * x
    return out


def filled_by_copy(x):
    out = wf.zeros(2, 3, dtype=x.dtype)
    out.copy_(x * x)
    return out[1] * x


@pytest.mark.parametrize("fn", [filled_by_index, filled_by_operator, filled_by_copy])
def test_a_plain_tensor_takes_a_dual_value(fn):
    check_grads(fn, [array(0.5, -1.0, 2.0)], order=2)


def test_a_leaf_cannot_take_a_dual_value():
    weight = wf.tensor([1.0], requires_grad=True)

    def write(x):
        with wf.no_grad():
            weight.copy_(x)
        return weight

    with pytest.raises(GradientError, match="inside jvp"):
        jvp(write, (wf.tensor([2.0]),), (wf.tensor([1.0]),))
    assert weight.tolist() == [1.0]
    assert weight.requires_grad
