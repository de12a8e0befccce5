"""Backwards of the user's in captured calls whose gradients are taken outside of them."""

from __future__ import annotations

import warnings

import pytest

import weft as wf
from weft.core.errors import GradientError


class Setting:
    factor = 1.0


SEEN = []


class Square(wf.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.two = 2
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.two * x * Setting.factor


class Noting(Square):
    @staticmethod
    def backward(ctx, g):
        SEEN.append(1)
        return Square.backward(ctx, g)


class Printing(Square):
    @staticmethod
    def backward(ctx, g):
        print("back")
        return Square.backward(ctx, g)


class Deciding(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return Square.backward(ctx, g) if x.sum() > 0 else g * 0


class Asking(Square):
    @staticmethod
    def backward(ctx, g):
        return Square.backward(ctx, g) if g.sum() > 0 else g * 0


@wf.custom_vjp
def square(x):
    return x * x


square.defvjp(lambda x: (x * x, x), lambda x, g: (g * 2 * x * Setting.factor,))


class Net(wf.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = wf.nn.Parameter(wf.tensor(1.0))

    def forward(self, x):
        return Square.apply(self.w * x).sum()


@pytest.fixture(autouse=True)
def fresh():
    Setting.factor = 1.0
    SEEN.clear()
    yield
    Setting.factor = 1.0


def gradient(call, x=3.0):
    given = wf.tensor(x, requires_grad=True)
    call(given).backward()
    return given.grad.item()


def in_a_body(x):
    return wf.scan(lambda c, _: (Square.apply(c), None), x, wf.arange(1))[0]


WAYS = {
    "a Function": Square.apply,
    "custom_vjp": square,
    "a module": Net(),
    "checkpointed": wf.checkpoint(Square.apply),
    "in a body": in_a_body,
}


@pytest.mark.parametrize("fn", WAYS.values(), ids=WAYS)
def test_what_a_backward_reads_is_that_of_each_call(fn):
    call = wf.jit(fn)
    for factor in (1.0, 1.0, 10.0, 10.0, 1.0):
        Setting.factor = factor
        assert gradient(call) == pytest.approx(6.0 * factor)


def test_a_step_with_a_body_reads_anew_too():
    @wf.jit
    def step(x):
        x.grad = None
        in_a_body(x).backward()
        return x.grad * 1

    x = wf.tensor(3.0, requires_grad=True)
    for factor in (1.0, 1.0, 10.0, 10.0):
        Setting.factor = factor
        assert step(x).item() == pytest.approx(6.0 * factor)


def test_pure_backwards_stay_compiled():
    call = wf.jit(Square.apply)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [gradient(call, x) for x in (1.0, 2.0, 3.0)] == [2.0, 4.0, 6.0]
    assert "1 program" in repr(call)


def test_what_changes_between_a_call_and_its_gradient_is_named():
    call = wf.jit(Square.apply)
    x = wf.tensor(3.0, requires_grad=True)
    y = call(x)
    Setting.factor = 2.0
    with pytest.raises(GradientError, match=r"factor was 1\.0, is 2\.0"):
        y.backward()
    assert gradient(call) == 12.0


@pytest.mark.parametrize(
    ("function", "why"),
    [(Noting, "changes SEEN"), (Printing, "calls print"), (Asking, "reads a gradient")],
)
def test_backwards_that_do_something_run_eagerly(function, why):
    call = wf.jit(function.apply)
    with pytest.warns(RuntimeWarning, match=why):
        assert gradient(call) == 6.0
    assert [gradient(call) for _ in range(2)] == [6.0, 6.0]
    assert len(SEEN) == (3 if function is Noting else 0)


def test_backwards_may_decide_by_values_of_the_call():
    call = wf.jit(Deciding.apply)
    assert [gradient(call, x) for x in (3.0, -3.0, 3.0, -1.0)] == [6.0, 0.0, 6.0, 0.0]
