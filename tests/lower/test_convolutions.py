"""Which kernels convolutions and their adjoints become, and what these compute."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.lower.test_epilogues import array, compiled
from weft.core.op import F
from weft.lower.kernels import CallKernel, GemmKernel

CASES = {
    "plain": ((2, 3, 8, 9), (4, 3, 3, 3), {}),
    "padded": ((2, 3, 28, 28), (8, 3, 3, 3), {"padding": 1}),
    "small images": ((2, 4, 4, 4), (6, 4, 3, 3), {"padding": 1}),
    "images of a window": ((1, 4, 4, 4), (1, 4, 4, 4), {}),
    "a window an image": ((5, 4, 4, 3), (6, 4, 4, 3), {"stride": 2}),
    "groups of a window an image": ((5, 4, 4, 3), (6, 2, 4, 3), {"groups": 2}),
    "a window an image, of one output": ((5, 4, 4, 4), (1, 4, 4, 4), {}),
    "points": ((2, 4, 19, 21), (6, 4, 1, 1), {}),
    "strided points": ((2, 4, 19, 21), (6, 4, 1, 1), {"stride": 2}),
    "points with padding": ((2, 4, 5, 6), (6, 4, 1, 1), {"padding": 1}),
    "groups": ((2, 4, 9, 11), (6, 2, 3, 2), {"padding": ((1, 0), (2, 1)), "groups": 2}),
    "strided groups": ((2, 4, 9, 11), (6, 2, 3, 2), {"padding": 1, "groups": 2, "stride": 2}),
    "a group for each channel": ((2, 8, 5, 6), (8, 1, 3, 3), {"padding": 1, "groups": 8}),
    "dilated": ((1, 3, 17, 17), (5, 3, 3, 3), {"dilation": 3}),
    "strided": ((2, 4, 19, 21), (6, 4, 3, 3), {"padding": 2, "stride": (2, 3), "dilation": (1, 2)}),
    "steps with common divisors": (
        (2, 4, 19, 21),
        (6, 4, 3, 3),
        {"padding": 4, "stride": (2, 4), "dilation": (2, 3)},
    ),
    "steps over elements": ((2, 3, 11, 11), (4, 3, 2, 2), {"stride": 5}),
    "much padding": ((2, 3, 3, 3), (4, 3, 2, 2), {"padding": 7}),
    "sequences": ((3, 5, 33), (7, 5, 5), {"padding": 2}),
    "cropped": ((3, 5, 33), (7, 5, 5), {"padding": ((-1, 2),)}),
    "cropped and strided": ((3, 5, 33), (7, 5, 5), {"padding": ((-1, -2),), "stride": 7}),
    "volumes": ((2, 3, 5, 6, 7), (4, 3, 2, 3, 2), {"padding": 1}),
    "strided volumes": ((2, 3, 5, 6, 7), (4, 3, 2, 3, 2), {"padding": 1, "stride": (1, 2, 1)}),
    "many images of one channel": ((64, 1, 28, 28), (32, 1, 3, 3), {"padding": 1}),
    "one long image": ((1, 4, 40001), (8, 4, 3), {}),
    "deep": ((2, 70, 9, 9), (130, 70, 3, 3), {"padding": 1}),
    "many channels": ((3, 17, 12, 20), (5, 17, 3, 2), {"padding": ((1, 0), (0, 2))}),
    "many channels of small images": ((4, 16, 7, 7), (3, 16, 3, 3), {}),
    "many channels, strided groups": (
        (2, 36, 9, 17),
        (4, 18, 2, 3),
        {"padding": 1, "groups": 2, "stride": (2, 3), "dilation": (1, 2)},
    ),
    "many channels of points": ((2, 20, 5, 16), (6, 20, 1, 1), {"stride": (1, 2)}),
}


def products(kernels):
    """Return the products, of which all is made."""
    assert not any(isinstance(k, CallKernel) for k in kernels)
    return [k for k in kernels if isinstance(k, GemmKernel)]


def result_shape(x, weight, settings):
    with wf.Graph():
        return tuple(F.conv(wf.placeholder(x), wf.placeholder(weight), **settings).shape)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_convolution(name, dtype):
    x, weight, settings = CASES[name]
    arrays = array(*x, dtype=dtype), array(*weight, dtype=dtype)
    assert len(products(compiled(lambda x, w: F.conv(x, w, **settings), *arrays))) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_adjoint_in_the_input(name, dtype):
    x, weight, settings = CASES[name]
    y = result_shape(x, weight, settings)
    arrays = array(*y, dtype=dtype), array(*weight, dtype=dtype)
    size = x[2:]
    assert products(compiled(lambda y, w: F.conv_input_grad(y, w, size, **settings), *arrays))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_adjoint_in_the_weight(name, dtype):
    x, weight, settings = CASES[name]
    y = result_shape(x, weight, settings)
    arrays = array(*x, dtype=dtype), array(*y, dtype=dtype)
    size = weight[2:]
    assert products(compiled(lambda x, y: F.conv_weight_grad(x, y, size, **settings), *arrays))


def test_gradients_of_many_channels_are_read_along_these():
    x, y = array(4, 32, 10, 20), array(4, 8, 8, 18)
    (product,) = products(compiled(lambda x, y: F.conv_weight_grad(x, y, (3, 3)), x, y))
    assert product.windows.columns == ((3, 20 * 32), (3 * 32, 1))


def test_kernels_of_one_element_read_the_places_alone_that_they_see():
    x, y = array(4, 32, 16, 17), array(4, 8, 8, 9)
    settings = {"stride": (2, 2)}
    kernels = compiled(lambda x, y: F.conv_weight_grad(x, y, (1, 1), **settings), x, y)
    (product,) = products(kernels)
    assert product.windows.columns[-1] == (32, 1)
    assert product.y.strides[0] == 8 * 9 * 32  # of the 16 * 17 places of an image


LAYOUTS = {
    "channels last": lambda x: x.permute((0, 3, 1, 2)),
    "flipped": lambda x: x.flip((2,)),
    "every other row": lambda x: x[:, :, ::2],
    "part of each row": lambda x: x[..., 1:-2],
    "repeated": lambda x: x[:1].broadcast_to(x.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_of_any_layout(layout):
    x = array(4, 6, 8, 10)
    view = LAYOUTS[layout]
    channels = view(wf.tensor(x)).shape[1]
    weight = array(3, 2, 4, channels)  # channels last
    products(compiled(lambda x, w: F.conv(view(x), w.permute((0, 3, 1, 2)), padding=1), x, weight))


def test_bias_and_activation_belong_to_the_product():
    def layer(x, weight, bias):
        return wf.relu(F.conv(x, weight, padding=1) + bias[:, None, None])

    kernels = compiled(layer, array(2, 3, 12, 12), array(8, 3, 3, 3), array(8))
    (product,) = products(kernels)
    assert product.outputs


def test_windows_beside_values_that_are_not_numbers():
    x = array(3, 2, 5, 6)
    x[1] = np.nan
    x[2, 0, 2, 3] = np.inf
    graph = wf.compile(lambda x, w: F.conv(x, w, padding=1), x, weight := array(4, 2, 3, 3))
    found = np.asarray(graph(x, weight))
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).all()
    assert np.isfinite(found[2]).sum() == 4 * (5 * 6 - 9)


def test_images_of_one_window_are_rows_of_a_matrix():
    x, y, weight = array(8, 4, 3, 3), array(8, 6, 1, 1), array(6, 4, 3, 3)
    forward = products(compiled(F.conv, x, weight))
    back = products(compiled(lambda y, w: F.conv_input_grad(y, w, (3, 3)), y, weight))
    for (product,) in (forward, back):
        assert product.windows is None
        assert product.operations == 2 * x.size * 6


@pytest.mark.parametrize("shape", [(0, 3, 8, 8), (2, 0, 8, 8)])
def test_empty_operands_stay_with_the_reference(shape):
    kernels = compiled(F.conv, array(*shape), array(4, shape[1], 3, 3))
    assert any(isinstance(k, CallKernel) for k in kernels)


def test_operations_of_a_convolution_are_counted_once():
    y, weight = array(2, 4, 6, 6), array(4, 3, 3, 3)
    settings = {"stride": 2, "padding": ((1, 0), (1, 0))}
    kernels = compiled(lambda y, w: F.conv_input_grad(y, w, (12, 12), **settings), y, weight)
    made = products(kernels)
    assert len(made) == 4
    assert sum(k.operations for k in made) == 2 * y.size * 3 * 3 * 3


def test_long_sums_are_divided():
    x, y = array(1, 4, 40001), array(1, 8, 39999)
    made = products(compiled(lambda x, y: F.conv_weight_grad(x, y, (3,)), x, y))
    assert [(p.batch[0], p.k) for p in made] == [(8, 4999), (1, 7)]
