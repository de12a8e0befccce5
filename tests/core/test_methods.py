"""Methods of tensors that are composites: they take arrays, and bad arguments are named."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentTypeError, WeftError


def test_methods_take_arrays():
    x = wf.tensor(np.ones(3))
    for found in (
        x.addcmul(np.arange(3.0), np.arange(3.0)),
        x.outer(np.arange(3.0)),
        x.expand_as(np.zeros((2, 3))),
        x.clip(np.zeros(3), np.ones(3)),
    ):
        assert isinstance(found, wf.Tensor)
        assert found.dtype == wf.float64


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("expand_as", (3,)),
        ("reshape_as", (None,)),
        ("type_as", (3,)),
        ("prelu", ("a",)),
        ("outer", (wf.float32,)),
    ],
)
def test_bad_arguments_are_named(method, args):
    with pytest.raises(ArgumentTypeError, match=f"{method}.*Received: "):
        getattr(wf.tensor([1.0, 2.0]), method)(*args)


@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack"])
@pytest.mark.parametrize("tensors", [3, "a", b"x", None, slice(1)])
def test_joins_need_a_sequence(name, tensors):
    with pytest.raises(ArgumentTypeError, match=rf"{name}: tensors must be .*Received: "):
        getattr(wf, name)(tensors)


def test_multi_dot_needs_a_sequence():
    with pytest.raises(ArgumentTypeError, match="multi_dot: tensors must be"):
        wf.linalg.multi_dot(2)


def test_joins_of_the_rows_of_one_tensor():
    x = wf.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert wf.vstack(x).tolist() == x.tolist()
    assert wf.hstack(x).tolist() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("name", ["rand_like", "randn_like"])
def test_random_like_needs_a_tensor(name):
    with pytest.raises(WeftError, match=f"^{name}: x .*Received: str"):
        getattr(wf, name)("a")
    assert getattr(wf, name)(np.zeros((2, 3))).shape == (2, 3)


@pytest.mark.parametrize(
    ("name", "args"), [("rand", ("a",)), ("randn", (-1,)), ("randperm", (-1,)), ("rand", (2.5,))]
)
def test_random_errors_name_the_function(name, args):
    with pytest.raises(WeftError, match=rf"^{name}: "):
        getattr(wf, name)(*args)


def test_a_trailing_underscore_writes_in_place():
    x = wf.tensor([1.0, -2.0])
    alias = x
    assert x.mul_(3) is alias
    assert alias.tolist() == [3.0, -6.0]
    assert x.clamp_(0.0, 2.0).tolist() == [2.0, 0.0]
    with pytest.raises(ValueError, match="cannot change the shape"):
        x.add_(wf.ones(2, 2))
    with pytest.raises(AttributeError, match="no attribute 'nothing_'"):
        x.nothing_()


def test_t_transposes_matrices_only():
    assert wf.ones(2, 3).t().shape == (3, 2)
    assert wf.ones(2).t().shape == (2,)
    with pytest.raises(ValueError, match=r"Received: shape \(1, 2, 3\)"):
        wf.ones(1, 2, 3).t()


def test_methods_of_operators_declared_later_are_there_from_the_start():
    program = """
import weft as wf
from weft.core.methods import attach_methods
from weft.core.op import load_all
from weft.ops import LATER_METHODS
before = set(dir(wf.Tensor))
stubs = {name: getattr(wf.Tensor, name) for name in LATER_METHODS}
assert wf.eye(2).det().item() == 1.0
load_all()
attach_methods()
assert set(dir(wf.Tensor)) == before, set(dir(wf.Tensor)) ^ before
assert all(getattr(wf.Tensor, name) is not stub for name, stub in stubs.items())
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])
