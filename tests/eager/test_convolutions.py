"""Large convolutions in eager mode run on machine code, with their gradients."""

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from tests.threads import num_threads
from weft.core.large import LARGE
from weft.eager.composite_kernel import CompositeKernel
from weft.eager.products import LARGE_PRODUCT

IMAGES, FILTERS = (16, 16, 40, 40), (48, 16, 3, 3)
MULTIPLICATIONS = 16 * 40 * 40 * np.prod(FILTERS)
assert MULTIPLICATIONS >= LARGE_PRODUCT


@pytest.fixture(autouse=True)
def _switched_on(monkeypatch):
    monkeypatch.setattr(wf.config, "eager_kernels", True)


def normal(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def with_gradients(dtype=np.float32, filters=FILTERS, **settings):
    """Return a convolution of images and its gradients by images and filters."""
    x = wf.tensor(normal(0, *IMAGES, dtype=dtype), requires_grad=True)
    weight = wf.tensor(normal(1, *filters, dtype=dtype), requires_grad=True)
    y = F.conv2d(x, weight, **settings)
    y.backward(wf.tensor(normal(2, *y.shape, dtype=dtype)))
    return [y.numpy(), x.grad.numpy(), weight.grad.numpy()]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "settings",
    [{"padding": 1}, {}, {"padding": 2, "dilation": 2}, {"stride": (1, 1), "padding": (2, 0)}],
    ids=str,
)
def test_convolutions_and_their_gradients(settings, dtype, monkeypatch):
    found = with_gradients(dtype, **settings)
    monkeypatch.setattr(wf.config, "eager_kernels", False)
    expected = with_gradients(dtype, **settings)
    for a, b in zip(found, expected, strict=True):
        scale = np.abs(b).max() * (1e-5 if dtype == np.float32 else 1e-13)
        np.testing.assert_allclose(a, b, rtol=0, atol=scale)
        assert a.dtype == b.dtype


def test_a_convolution_and_its_gradients_are_one_node():
    x = wf.tensor(normal(0, *IMAGES), requires_grad=True)
    y = F.conv2d(x, wf.tensor(normal(1, *FILTERS)), wf.tensor(normal(2, FILTERS[0])), padding=1)
    assert isinstance(y.grad_fn.op, CompositeKernel)
    assert y.grad_fn.op.name == "conv2d"


def test_few_channels_of_many_images_are_large_too():
    x = wf.tensor(normal(0, 64, 1, 28, 28), requires_grad=True)
    assert x.numel() < LARGE
    y = F.conv2d(x, wf.tensor(normal(1, 32, 1, 3, 3)))
    assert isinstance(y.grad_fn.op, CompositeKernel)


def test_small_convolutions_run_by_numpy():
    x = wf.tensor(normal(0, 2, 3, 8, 8), requires_grad=True)
    assert not isinstance(F.conv2d(x, wf.ones(4, 3, 3, 3)).grad_fn.op, CompositeKernel)


@pytest.mark.parametrize("size", [(0, 3, 8, 8), (2, 0, 8, 8)])
def test_empty_images(size):
    weight = wf.ones(4, size[1], 3, 3)
    assert F.conv2d(wf.zeros(*size), weight).shape == (size[0], 4, 6, 6)


def test_threads_do_not_change_a_bit():
    found = []
    for threads in (1, 2, 2):
        with num_threads(threads):
            found.append(with_gradients(padding=1))
    for arrays in zip(*found, strict=True):
        np.testing.assert_array_equal(arrays[0], arrays[1])
        np.testing.assert_array_equal(arrays[1], arrays[2])


def test_half_precision_is_computed_in_float32(monkeypatch):
    found = with_gradients(np.float16, padding=1)
    monkeypatch.setattr(wf.config, "eager_kernels", False)
    for a, b in zip(found, with_gradients(np.float16, padding=1), strict=True):
        assert a.dtype == b.dtype == np.float16
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3 * np.abs(b).max())
