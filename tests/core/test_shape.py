"""Shapes: broadcasting, axes, sizes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import ArgumentTypeError, AxisError, ShapeError
from weft.core.shape import (
    TensorType,
    as_int,
    as_shape,
    broadcast,
    broadcast_axes,
    normalize_axes,
    normalize_axis,
    reduced_shape,
    size_of,
    type_of,
)

shapes = st.lists(st.integers(0, 3), max_size=4).map(tuple)


@given(st.lists(shapes, max_size=3))
def test_broadcast_is_numpy_s(many):
    try:
        expected = np.broadcast_shapes(*many)
    except ValueError:
        with pytest.raises(ShapeError, match="do not broadcast"):
            broadcast(*many)
    else:
        assert broadcast(*many) == expected


def test_broadcast_errors_name_sizes_axis_and_a_likely_fix():
    with pytest.raises(ShapeError, match=r"\(2, 3\) and \(2, 4\).*\[3, 4\] differ at axis -1"):
        broadcast((2, 3), (2, 4))
    with pytest.raises(ShapeError, match=r"x\[..., None\], to \(4,\)"):
        broadcast((4, 3), (4,))


@given(shapes, shapes)
def test_broadcast_axes_undo_broadcasting(shape, other):
    try:
        whole = np.broadcast_shapes(shape, other)
    except ValueError:
        return
    axes = broadcast_axes(shape, whole)
    ones = np.ones(whole).sum(axis=axes, keepdims=True).reshape(shape)
    assert ones.shape == shape
    assert all(i < len(whole) - len(shape) or whole[i] != 1 for i in axes)


def test_axes_are_counted_from_the_front():
    assert normalize_axis(-1, 3) == 2
    assert normalize_axis(np.int64(1), 3) == 1
    assert normalize_axes(None, 3) == (0, 1, 2)
    assert normalize_axes(-1, 3) == (2,)
    assert normalize_axes([2, -3], 3) == (0, 2)
    assert normalize_axes((), 3) == ()


@pytest.mark.parametrize(
    ("axis", "ndim", "message"),
    [
        (3, 3, r"axis 3 is out of range for 3 dimension\(s\); use -3..2"),
        (-4, 3, "axis -4"),
        (0, 0, "0-d and has no axes"),
    ],
)
def test_axes_out_of_range(axis, ndim, message):
    with pytest.raises(AxisError, match=message) as caught:
        normalize_axis(axis, ndim)
    assert isinstance(caught.value, (ValueError, IndexError))


def test_repeated_axes():
    with pytest.raises(AxisError, match=r"\(0, -2\) names a dimension more than once"):
        normalize_axes((0, -2), 2)


@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_integers_are_integers(value):
    with pytest.raises(ArgumentTypeError, match="n must be an integer"):
        as_int(value, "n")
    assert as_int(np.int32(3), "n") == 3


def test_shapes():
    assert as_shape(3) == as_shape(np.int64(3)) == (3,)
    assert as_shape([2, np.int64(3)]) == (2, 3)
    assert as_shape(()) == ()
    with pytest.raises(ShapeError, match=r"negative sizes. Received: \(2, -1\)"):
        as_shape((2, -1))
    with pytest.raises(ArgumentTypeError, match=r"sequence of ints. Received: 1.5"):
        as_shape(1.5)
    with pytest.raises(ArgumentTypeError, match=r"each size in shape .* Received: 'a'"):
        as_shape((2, "a"))


def test_reduced_shape():
    assert reduced_shape((2, 3, 4), (0, 2), False) == (3,)
    assert reduced_shape((2, 3, 4), (0, 2), True) == (1, 3, 1)


def test_types():
    kind = type_of(np.zeros((2, 3), np.int32))
    assert kind == TensorType((2, 3), np.dtype("int32"))
    assert (kind.ndim, kind.size) == (2, 6)
    assert size_of(()) == 1
    assert size_of((2, 0)) == 0
