"""Convolution kernels give the same values however the work is cut into tiles."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.references import conv as reference
from weft.ops.conv import kernels

CASES = [
    ((3, 4, 7, 5), (6, 2, 3, 2), {"stride": (1, 1), "groups": 2}),
    ((3, 2, 8, 6), (4, 2, 3, 3), {"stride": (2, 1), "groups": 1}),
    ((2, 1, 5, 4, 3), (12, 1, 2, 2, 2), {"stride": (1, 1, 1), "groups": 1}),
    ((5, 3, 9), (3, 1, 3), {"stride": (2,), "groups": 3}),
]


@pytest.mark.parametrize("width", [1, 4, 11, 40, 10_000])
@pytest.mark.parametrize(("x_shape", "w_shape", "options"), CASES)
def test_tiles_make_no_difference(monkeypatch, width, x_shape, w_shape, options):
    monkeypatch.setattr(kernels, "TILE_ELEMENTS", 1)
    monkeypatch.setattr(kernels, "TILE_WIDTH", width)
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=x_shape), rng.normal(size=w_shape)
    spatial = x.ndim - 2
    pairs, ones = ((1, 1),) * spatial, (1,) * spatial
    settings = (options["stride"], pairs, ones, options["groups"])
    named = {"padding": 1, **options}
    y = kernels.correlate(x, w, *settings)
    np.testing.assert_allclose(y, reference.conv(x, w, **named), atol=1e-12)
    g = rng.normal(size=y.shape)
    np.testing.assert_allclose(
        kernels.correlate_input(g, w, x_shape[2:], *settings),
        reference.conv_input_grad(g, w, x_shape[2:], **named),
        atol=1e-12,
    )
    np.testing.assert_allclose(
        kernels.correlate_weight(x, g, w_shape[2:], *settings),
        reference.conv_weight_grad(x, g, w_shape[2:], **named),
        atol=1e-12,
    )


@pytest.mark.parametrize("width", [4, 10_000])
def test_both_forms_of_the_input_gradient_agree(monkeypatch, width):
    """With stride 1 the adjoint runs as a flipped correlation or by scattering products."""
    monkeypatch.setattr(kernels, "TILE_ELEMENTS", 1)
    monkeypatch.setattr(kernels, "TILE_WIDTH", width)
    rng = np.random.default_rng(1)
    y, w = rng.normal(size=(2, 6, 5, 4)), rng.normal(size=(6, 2, 3, 2))
    size, pairs, dilation, groups = (6, 5), ((1, 2), (2, 0)), (2, 3), 3
    scattered = kernels._scatter_products(y, w, size, (1, 1), pairs, dilation, groups)
    flipped = kernels._correlate_flipped(y, w, pairs, dilation, groups)
    np.testing.assert_allclose(flipped, scattered, atol=1e-12)


def test_halves_are_summed_in_single_precision():
    x = np.full((1, 4096, 1), 1.0, np.float16)
    out = kernels.correlate(x, np.ones((1, 4096, 1), np.float16), (1,), ((0, 0),), (1,), 1)
    assert out.dtype == np.float16
    assert out.item() == 4096.0
