"""Layers that move, join, cut and choose."""

import numpy as np
import pytest

import weft as wf
from weft.caffe.catalogue import LAYERS
from weft.caffe.errors import CaffeError

from .checking import check, layer, normal

X = normal(2, 4, 3)


def test_joining_and_cutting():
    check('type: "Concat"', X, normal(2, 1, 3), reference=lambda *xs: np.concatenate(xs, 1))
    text = 'type: "Concat" concat_param { axis: -1 }'
    check(text, X, X.copy(), reference=lambda *xs: np.concatenate(xs, 2))
    text = 'type: "Concat" concat_param { concat_dim: 0 }'
    check(text, X, X.copy(), reference=lambda *xs: np.concatenate(xs, 0))
    check('type: "Slice" top: "a" top: "b"', X, reference=lambda x: (x[:, :2], x[:, 2:]))
    text = 'type: "Slice" top: "a" top: "b" top: "c" slice_param { axis: 1 slice_point: [1, 3] }'
    check(text, X, reference=lambda x: (x[:, :1], x[:, 1:3], x[:, 3:]))


def test_split_and_silence():
    check('type: "Split" top: "a" top: "b"', X, reference=lambda x: (x, x))
    param = layer('type: "Split"', X).param.copy()
    param.type = "Silence"
    param.clear("top")
    assert LAYERS["Silence"](param, [(2,)], 0)(wf.ones(2)) == ()


@pytest.mark.parametrize(
    ("options", "shape"),
    [("", (2, 12)), ("axis: 0 end_axis: 1", (8, 3)), ("axis: -1", (2, 4, 3))],
)
def test_flatten(options, shape):
    check(f'type: "Flatten" flatten_param {{ {options} }}', X, reference=lambda x: x.reshape(shape))


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ("shape { dim: 0 dim: -1 }", (2, 12)),
        ("shape { dim: 0 dim: 2 dim: 2 dim: 3 }", (2, 2, 2, 3)),
        ("shape { dim: 2 dim: 2 } axis: 1 num_axes: 1", (2, 2, 2, 3)),
        ("shape { dim: 1 } axis: 1 num_axes: 0", (2, 1, 4, 3)),
        ("shape { dim: 1 } axis: -1 num_axes: 0", (2, 4, 3, 1)),
        ("shape { dim: -1 } axis: 1", (2, 12)),
    ],
)
def test_reshape(options, shape):
    check(f'type: "Reshape" reshape_param {{ {options} }}', X, reference=lambda x: x.reshape(shape))


def test_tiles():
    check('type: "Tile" tile_param { tiles: 3 }', X, reference=lambda x: np.tile(x, (1, 3, 1)))


def test_crops():
    like = normal(1, 1, 2, 3)
    x = normal(2, 2, 5, 6)
    text = 'type: "Crop" crop_param { axis: 2 offset: 1 offset: 2 }'
    check(text, x, like, reference=lambda x, _: x[:, :, 1:3, 2:5], differentiable=(0,))
    text = 'type: "Crop" crop_param { axis: 1 offset: 1 }'
    check(text, x, like, reference=lambda x, _: x[:, 1:2, 1:3, 1:4], differentiable=(0,))


def test_filters_keep_examples():
    made = layer('type: "Filter" top: "a" top: "b"', normal(4, 2), normal(4), normal(4))
    a, b = normal(4, 2), normal(4)
    found = made(wf.tensor(a), wf.tensor(b), wf.tensor([0.0, 1.0, 0.0, 2.0]))
    np.testing.assert_array_equal(found[0].numpy(), a[[1, 3]])
    np.testing.assert_array_equal(found[1].numpy(), b[[1, 3]])


def test_examples_by_number():
    def reference(x, index):
        return x[np.rint(index).astype(int)]

    check('type: "BatchReindex"', X, [1, 0, 1], reference=reference, differentiable=(0,))


@pytest.mark.parametrize(
    ("text", "bottoms", "message"),
    [
        ('type: "Concat"', (X, normal(3, 4, 3)), "same shape, except at concat_axis"),
        ('type: "Slice" top: "a" top: "b" top: "c"', (X,), "should evenly divide"),
        ('type: "Slice" top: "a" top: "b" slice_param { slice_point: 9 }', (X,), "must grow"),
        ('type: "Reshape" reshape_param { shape { dim: 5 } }', (X,), "output count must match"),
        ('type: "Reshape" reshape_param { shape { dim: -1 dim: -1 } }', (X,), "multiple -1"),
        ('type: "Reshape" reshape_param { shape { dim: -1 dim: 5 } }', (X,), "must be divisible"),
        ('type: "Tile"', (X,), "tiles must be positive"),
        ('type: "Crop"', (X, X), None),
        ('type: "Crop" crop_param { offset: 1 }', (X, X), "out-of-bounds"),
        ('type: "Filter"', (X, normal(3)), "same 0th dimension"),
    ],
)
def test_what_is_refused(text, bottoms, message):
    shapes = [b.shape for b in bottoms]
    if message is None:
        assert layer(text, *bottoms).shapes_for(shapes) == [(2, 4, 3)]
        return
    with pytest.raises(CaffeError, match=message):
        layer(text, *bottoms).shapes_for(shapes)
