"""Results that are plain numbers: constants, or made of values that were read."""

from __future__ import annotations

import math

import numpy as np
import pytest

import weft as wf
from weft.core.errors import DTypeError, GradientError
from weft.core.reads import readers
from weft.torch import func, tensor

TRANSFORMS = {
    "grad": lambda fn, x: wf.grad(fn)(x),
    "value_and_grad": lambda fn, x: wf.value_and_grad(fn)(x)[1],
    "vjp": lambda fn, x: wf.vjp(fn, x)[1](wf.tensor(1.0))[0],
    "jvp": lambda fn, x: wf.jvp(fn, (x,), (x,))[1],
    "jacfwd": lambda fn, x: wf.jacfwd(fn)(x),
    "jacrev": lambda fn, x: wf.jacrev(fn)(x),
    "jacobian": lambda fn, x: wf.jacobian(fn)(x),
    "hessian": lambda fn, x: wf.hessian(fn)(x),
    "hvp": lambda fn, x: wf.hvp(fn, (x,), (x,)),
    "linearize": lambda fn, x: wf.linearize(fn, x)[1](x),
    "grad of grad": lambda fn, x: wf.grad(wf.grad(fn))(x),
    "jvp of grad": lambda fn, x: wf.jvp(wf.grad(fn), (x,), (x,))[1],
}

READS = {
    "float": lambda x: float(x * 2),
    "item": lambda x: x.item() * 2 + 1,
    "numpy": lambda x: x.numpy(),
    "an array": lambda x: np.sin(np.asarray(x)),
    "tolist": lambda x: x.tolist(),
    "int": lambda x: 0.5 * int(x),
    "read, then a constant": lambda x: 3.0 if x.item() > 0 else 2.0,
}

CONSTANTS = {
    "a number": lambda x: 3.0,
    "NumPy's": lambda x: np.float32(3.0),
    "by a truth": lambda x: 3.0 if x > 0 else 2.0,
    "shown": lambda x: float(len(f"{x} {x:.2f} {x!r}")),
    "cut off": lambda x: x.detach().item(),
    "made a tensor": lambda x: wf.tensor(x.numpy()),
    "its size": lambda x: x.ndim + 1.0,
}

X = wf.tensor(0.5)


@wf.no_grad()
def without_gradients(x):
    return (x * 2).item()


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_numbers_that_were_read_have_no_gradient(transform):
    with pytest.raises(GradientError, match=r"sin returned a number, 0\.479.* Use wf\.sin"):
        transform(math.sin, X)
    for fn in READS.values():
        with pytest.raises(GradientError, match="<lambda> returned a number"):
            transform(fn, X)
    assert not readers


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_constants_have_zeros(transform):
    for fn in CONSTANTS.values():
        assert transform(fn, X).tolist() == 0.0
        assert transform(wf.sin, X).tolist() != 0.0


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_captured_functions_say_the_same(transform):
    for fn in (math.sin, READS["item"], READS["numpy"]):
        with pytest.raises(GradientError, match="a number that was read has no gradient"):
            wf.jit(lambda x, fn=fn: transform(fn, x))(X)
    for name in ("a number", "by a truth"):
        captured = wf.jit(lambda x, fn=CONSTANTS[name]: x + transform(fn, x))
        assert [captured(X).tolist(), captured(X).tolist()] == [0.5, 0.5]


def test_what_was_read_outside_of_the_arguments_is_a_constant():
    w = wf.tensor(2.0, requires_grad=True)
    assert wf.grad(lambda x: float(w * w))(X).item() == 0.0
    assert wf.grad(lambda x: wf.grad(lambda z: x.item())(w))(X).item() == 0.0
    with pytest.raises(GradientError, match="read"):
        wf.grad(lambda x: float(w * x))(X)


def test_nothing_is_read_where_nothing_is_recorded():
    assert wf.grad(without_gradients)(X).item() == 0.0


def test_numbers_beside_the_result_may_have_been_read():
    gradient, seen = wf.grad(lambda x: (x * x, {"loss": float(x * x)}), has_aux=True)(X)
    assert (gradient.item(), seen) == (1.0, {"loss": 0.25})
    with pytest.raises(GradientError, match="read"):
        wf.vjp(lambda x: (x * x, float(x)), X)
    assert wf.vjp(lambda x: (x * x, int(x)), X)[0][1].item() == 0


def test_linear_transposes_and_the_face_of_pytorch():
    with pytest.raises(GradientError, match="returned a number"):
        wf.linear_transpose(float, X)
    with pytest.raises(RuntimeError, match="sin returned a number"):
        func.grad(math.sin)(tensor(0.5))


def test_reading_for_long_keeps_nothing():
    def fn(x):
        y = x
        for _ in range(50):
            y = y * 0.5 + x
            assert y.item() > 0
        return y

    assert wf.grad(fn)(X).item() == pytest.approx(2.0)


def test_jacobians_of_integers_say_so():
    with pytest.raises(DTypeError, match="jacfwd of <lambda>: the result holds int64"):
        wf.jacfwd(lambda x: 3)(X)
