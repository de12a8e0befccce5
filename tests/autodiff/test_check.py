"""The gradient checker itself: it passes what is right and names what is wrong."""

import numpy as np
import pytest

import weft as wf
from weft.autodiff.check import check_grads, numeric_gradient
from weft.core.errors import ArgumentError, ArgumentTypeError, GradientError


def wrong(factor, second=1.0):
    """Return x**2 with a derivative that is wrong by a factor, at first or second order."""

    class Wrong(wf.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            bent = x * second + (x * (1.0 - second)).detach()
            return 2 * g * bent * factor

    return Wrong.apply


X = np.array([[0.5, -1.5, 2.0]])


def test_accepts_right_derivatives():
    check_grads(wrong(1.0), [X], order=3)
    check_grads(wf.exp, [wf.tensor(X)], order=2)
    check_grads(wf.exp, [X.astype(np.float32)])


@pytest.mark.parametrize("modes", [("rev",), ("fwd",), ("fwd", "rev")])
def test_rejects_wrong_first_derivatives(modes):
    with pytest.raises(GradientError, match=r"order 1"):
        check_grads(wrong(1.001), [X], order=1, modes=modes)


def test_rejects_wrong_second_derivatives():
    fn = wrong(1.0, second=0.9)
    check_grads(fn, [X], order=1)
    with pytest.raises(GradientError, match="order 2"):
        check_grads(fn, [X], order=2)


def test_names_input_element_and_values():
    factor = wf.tensor(np.array([[1.0, 1.0, 1.5]]))

    def fn(x, y):
        return wf.sum(x + wrong(factor)(y))

    with pytest.raises(GradientError) as caught:
        check_grads(fn, [X, X], order=1, modes=("rev",))
    message = str(caught.value)
    assert "the gradient of input 1 at element (0, 2) (order 1) is 6, but" in message
    assert "differences give 4" in message


def test_searches_the_element_in_large_inputs():
    x = np.linspace(0.5, 1.5, 200)
    factor = np.ones(200)
    factor[123] = 2.0
    with pytest.raises(GradientError, match=r"element \(123,\)"):
        check_grads(wrong(wf.tensor(factor)), [x], order=1)


@pytest.mark.parametrize("fn", [wf.abs, lambda x: wf.maximum(x, 0.0), wf.floor])
def test_says_that_a_point_is_not_differentiable(fn):
    x = np.array([1.5, 0.0])
    with pytest.raises(GradientError, match=r"not differentiable in input 0 at element \(1,\)"):
        check_grads(fn, [x], order=1)


def test_constants_integers_and_trees():
    def fn(tree, k, name):
        assert name == "name"
        return {"a": tree["x"][0] * k, "index": wf.argmax(tree["x"][1])}

    check_grads(fn, [{"x": [X, X]}, np.array([1, 2, 3]), "name"])


def test_unconnected_inputs_have_zero_gradient():
    check_grads(lambda x, y: x * 2.0, [X, X])
    check_grads(lambda x: wf.tensor([1.0]), [X])


def test_nothing_to_check():
    check_grads(lambda x: x, [3])
    check_grads(wf.argmax, [X])
    check_grads(wf.exp, [np.zeros((0, 3))])


def test_infinite_outputs_are_left_out():
    check_grads(lambda x: wf.stack([x * 2.0, wf.tensor(np.inf)]), [np.array(1.0)])


def test_numeric_gradient():
    (found,) = numeric_gradient(lambda x: wf.sum(x * x * x), [X])
    np.testing.assert_allclose(found, 3 * X**2, rtol=1e-9)
    assert numeric_gradient(lambda x, y: x * y, [np.array(2.0), np.array(3.0)]) == [
        pytest.approx(3.0),
        pytest.approx(2.0),
    ]


def test_bad_options_are_explained():
    with pytest.raises(ArgumentTypeError, match=r"list or tuple of arguments. Received: ndarray"):
        check_grads(wf.exp, X)
    with pytest.raises(ArgumentError, match=r"at least 1. Received: 0"):
        check_grads(wf.exp, [X], order=0)
    with pytest.raises(ArgumentError, match="Received: 'rev'"):
        check_grads(wf.exp, [X], modes="rev")
    with pytest.raises(ArgumentError, match="backward"):
        check_grads(wf.exp, [X], modes=("backward",))
