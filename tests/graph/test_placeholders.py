"""Placeholders: shapes and dtypes in either order, and shapes that say too little."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import weft as wf


@pytest.mark.parametrize(
    "make",
    [
        lambda: wf.placeholder((None, 3), wf.int32, name="x"),
        lambda: wf.placeholder(shape=(None, 3), dtype=wf.int32, name="x"),
        lambda: wf.placeholder(wf.int32, (None, 3), name="x"),
        lambda: wf.placeholder(wf.int32, [None, 3], name="x"),
        lambda: wf.placeholder(wf.int32, shape=[None, 3], name="x"),
        lambda: wf.placeholder(np.int32, shape=[None, 3], name="x"),
        lambda: wf.placeholder("int32", (None, 3), name="x"),
        lambda: wf.placeholder(dtype="int32", shape=(None, 3), name="x"),
    ],
)
def test_shape_and_dtype_in_either_order(make):
    with wf.Graph():
        x = make()
    assert repr(x) == "symbol('x', shape=(x_0, 3), dtype=int32)"


def test_bfloat16_stands_in_front_too():
    with wf.Graph():
        assert wf.placeholder("bfloat16", ()).dtype == wf.bfloat16


@pytest.mark.parametrize(
    "make",
    [
        lambda: wf.placeholder(None, wf.float32),
        lambda: wf.placeholder(None),
        lambda: wf.placeholder(shape=None, dtype=wf.float32),
        lambda: wf.placeholder(wf.float32),
        lambda: wf.placeholder(wf.float32, None),
        lambda: wf.placeholder(wf.float32, name="keep"),
        lambda: wf.placeholder(float),
    ],
)
def test_the_number_of_dimensions_must_be_known(make):
    message = r"must be known: write the shape \(\) for a number, \(None,\) for a vector"
    with wf.Graph() as graph:
        with pytest.raises(ValueError, match=message):
            make()
        assert len(graph) == 0


def test_what_is_given_twice_is_refused():
    with wf.Graph():
        with pytest.raises(TypeError, match="multiple values for argument 'shape'"):
            wf.placeholder(wf.float32, (3,), shape=(3,))
        with pytest.raises(TypeError, match="shape must be a tuple"):
            wf.placeholder(wf.float32, dtype=wf.float32)
        with pytest.raises(TypeError, match="positional arguments"):
            wf.placeholder(wf.float32, (3,), "x")


def test_names_of_sizes_and_defaults_stay():
    with wf.Graph():
        assert wf.placeholder().shape == ()
        assert str(wf.placeholder("n").shape) == "(n,)"
        assert wf.placeholder(4).shape == (4,)
    assert list(inspect.signature(wf.placeholder).parameters) == ["shape", "dtype", "name"]
