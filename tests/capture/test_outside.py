"""What recordings refer to outside of themselves."""

from __future__ import annotations

import numpy as np

import weft as wf
from weft.capture.outside import (
    ArgumentWrite,
    Escaped,
    GradWrite,
    KeptGrad,
    Outside,
    TensorArgument,
)


def test_a_thing_is_found_by_its_position_or_is_itself():
    assert Outside(1)(["a", "b"]) == TensorArgument(1)(["a", "b"]) == "b"
    assert Outside(None, "c")(["a", "b"]) == "c"


def test_a_result_is_one_of_the_values_or_none():
    assert Escaped(0)(["a"], [], {}) == "a"
    assert Escaped(-1)(["a"], [], {}) is None


def test_gradients_are_read_and_written():
    weight, grad = wf.tensor([1.0, 2.0], requires_grad=True), wf.tensor([3.0, 4.0])
    GradWrite(Outside(0), 1)([None, grad], [], [weight])
    assert weight.grad is grad
    assert KeptGrad(Outside(None, weight))([]) is grad
    GradWrite(Outside(None, weight), -1)([], [], [])
    assert weight.grad is None


def test_an_argument_takes_a_fetch_as_its_value():
    tensor, array = wf.zeros(2), np.ones(2, np.float32)
    ArgumentWrite(Outside(0), 0)([], [array], [tensor])
    assert tensor.tolist() == [1, 1]
