"""What stands for arguments of any size: it is the caller's tensor in all that can be seen."""

from __future__ import annotations

import pytest

import weft as wf
from weft.capture.stand_in import can_stand_in


def after_two_sizes(function, *others):
    """Return a jitted function that has a recording for many sizes, or tried to make one."""
    jitted = wf.jit(function)
    for n in (3, 4):
        jitted(wf.ones(n, 2), *others)
    return jitted


def test_plain_tensors_can_be_stood_for_and_others_cannot():
    assert can_stand_in(wf.ones(2))
    assert not can_stand_in(wf.ones(2, requires_grad=True))
    assert not can_stand_in(wf.nn.Parameter(wf.ones(2)))
    assert not can_stand_in([1.0])


def test_the_argument_itself_is_returned():
    jitted = after_two_sizes(lambda x: (x, [x]))
    x = wf.ones(6, 2)
    same, (again,) = jitted(x)
    assert same is x
    assert again is x
    assert jitted.stats()["recordings"] == 2


def test_the_argument_itself_is_written():
    def add(x):
        x += x.shape[0]
        return x.sum()

    jitted, x = after_two_sizes(add), wf.ones(6, 2)
    assert jitted(x).item() == 84.0
    assert x.tolist() == [[7.0, 7.0]] * 6
    assert jitted.stats()["recordings"] == 2


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 if x.grad is None else x,
        lambda x: (x * x.requires_grad_(False)).sum(),
    ],
)
def test_what_only_the_tensor_knows_is_asked_of_it(function):
    jitted = after_two_sizes(function)
    assert (jitted(wf.ones(6, 2)).numpy() == function(wf.ones(6, 2)).numpy()).all()
    assert jitted.stats()["eager_calls"] == 0


@pytest.mark.filterwarnings("ignore:jit")
def test_an_argument_that_is_found_elsewhere_too_keeps_its_sizes():
    kept = [wf.ones(3, 2)]

    @wf.jit
    def step(x):
        return x.sum() + kept[0].shape[0]

    for n in (3, 4, 5, 6):
        kept[0] = x = wf.ones(n, 2)
        assert step(x).item() == 3.0 * n
