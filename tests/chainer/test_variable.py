"""Variables: arrays and gradients as Chainer shows them."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft import chainer
from weft.chainer import Parameter, Variable


def variable(*numbers: float) -> Variable:
    return Variable(np.array(numbers, "f"))


def test_the_first_listing() -> None:
    x = variable(5)
    y = x**2 + x
    y.backward()
    np.testing.assert_array_equal(x.grad, [11])
    np.testing.assert_array_equal(y.grad, [1])


def test_gradients_add_up_until_they_are_cleared() -> None:
    x = variable(1, 2)
    y = chainer.functions.sum(x * 3)
    y.backward()
    y.backward()
    np.testing.assert_array_equal(x.grad, [6, 6])
    x.cleargrad()
    assert x.grad is None
    x.zerograd()
    np.testing.assert_array_equal(x.grad, [0, 0])


def test_a_result_of_many_elements_starts_from_its_gradient() -> None:
    x = variable(1, 2)
    y = x * x
    with pytest.raises(ValueError, match=r"set y\.grad"):
        y.backward()
    y.grad = np.array([1, 10], "f")
    y.backward()
    np.testing.assert_array_equal(x.grad, [2, 40])


def test_gradients_of_results_are_kept_when_asked_for() -> None:
    x = variable(3)
    z = x * 2
    (z * z).backward()
    assert z.grad is None
    (z * z).backward(retain_grad=True)
    np.testing.assert_array_equal(z.grad, [12])


def test_second_derivatives() -> None:
    x = variable(3)
    y = x**3
    (gx,) = chainer.grad([y], [x], enable_double_backprop=True)
    (ggx,) = chainer.grad([gx], [x])
    np.testing.assert_allclose(ggx.array, [18])
    assert chainer.grad([y], [variable(1)]) == [None]


def test_arrays_are_shared_as_in_chainer() -> None:
    array = np.array([1, 2], "f")
    x = Variable(array)
    x.array[0] = 7
    np.testing.assert_array_equal((x * 1).array, [7, 2])
    x.data -= 1
    np.testing.assert_array_equal(x.array, [6, 1])
    x.array = np.zeros(3, "f")
    assert x.shape == (3,)


def test_an_array_that_was_handed_out_shows_updates() -> None:
    link = chainer.links.Linear(2, 1)
    held = link.W.array
    optimizer = chainer.optimizers.SGD(0.5).setup(link)
    for _ in range(3):
        optimizer.update(lambda x: chainer.functions.sum(link(x)), np.ones((1, 2), "f"))
        np.testing.assert_array_equal(held, link.W.array)


def test_what_is_no_array_is_refused() -> None:
    with pytest.raises(TypeError, match=r"numpy\.ndarray is expected, but got a list"):
        Variable([1.0])
    with pytest.raises(NotImplementedError, match="truth value"):
        bool(variable(1))
    with pytest.raises(NotImplementedError, match="compared by =="):
        _ = variable(1) == variable(1)
    with pytest.raises(ValueError, match="shape of data and grad mismatch"):
        variable(1).grad = np.zeros(2, "f")
    with pytest.raises(RuntimeError, match="CUDA environment is not correctly set up"):
        variable(1).to_gpu()


def test_integers_have_no_gradients() -> None:
    x = Variable(np.array([1, 2], "i"))
    assert not x.requires_grad
    assert x.grad is None


def test_operators_with_arrays_and_numbers_on_either_side() -> None:
    x, a = variable(1, 2), np.array([10, 20], "f")
    for found, wanted in (
        (x + a, [11, 22]),
        (a + x, [11, 22]),
        (a - x, [9, 18]),
        (2 / x, [2, 1]),
        (2**x, [2, 4]),
        (-x, [-1, -2]),
        (x @ a, 50),
        (a @ x, 50),
    ):
        assert isinstance(found, Variable)
        np.testing.assert_allclose(found.array, wanted)


def test_histories_can_be_cut() -> None:
    x = variable(2)
    y = x * x
    y.unchain()
    assert y.creator is None
    assert y.rank == 0
    assert ((x * 2) * 3).rank == 2


def test_tensors_pass_through_both_faces() -> None:
    t = wf.tensor([2.0], requires_grad=True)
    y = chainer.functions.square(Variable(t)) * 3
    y.backward()
    assert t.grad.tolist() == [12]
    assert wf.exp(y._tensor).shape == (1,)


def test_parameters_take_their_shape_later() -> None:
    p = Parameter(chainer.initializers.Constant(2.0))
    assert not p.is_initialized
    assert repr(p) == "variable (uninitialized)"
    p.initialize((2, 3))
    assert p.is_initialized
    assert p.array.tolist() == [[2.0] * 3] * 2


def test_texts() -> None:
    x = Variable(np.array([1.5], "f"), name="x")
    assert repr(x) == "variable x([1.5])"
    assert x.label == "x: (1,), float32"
    assert "shape: (1,)" in x.debug_print()
