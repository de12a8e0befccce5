"""Matrix products of arrays, whoever computes them."""

import numpy as np
import pytest

import weft as wf
from weft.core.products import LEAST, SMALL, THIN, product, products

SHAPES = (
    ((1, 9001), (9001, 1)),
    ((1, 3000), (3000, 77)),
    ((77, 3000), (3000, 1)),
    ((2, 20_001), (20_001, 9)),
    ((THIN, 1100), (1100, THIN)),
    ((THIN - 1, 2300), (2300, 129)),
    ((129, 2300), (2300, THIN - 1)),
    ((LEAST, 300), (300, 130)),
    ((LEAST - 1, 300), (300, 130)),
    ((130, 300), (300, LEAST)),
    ((130, 300), (300, LEAST - 1)),
    ((65, 65), (65, 65)),
    ((300, 7), (7, 300)),
    ((131, 1), (1, 4000)),
    ((97, 1000), (1000, 48)),
    ((2, 40, 180), (2, 180, 50)),
    ((40, 180), (3, 180, 50)),
    ((2, 1, 40, 180), (3, 180, 50)),
    ((9000,), (9000,)),
    ((9000,), (9000, 20)),
    ((20, 9000), (9000,)),
    ((2, 3, 5000), (5000,)),
)


@pytest.fixture(params=[True, False], ids=["own", "blocks"], autouse=True)
def _kernels(request, monkeypatch):
    monkeypatch.setattr(wf.config, "eager_kernels", request.param)


def lying(x, how):
    """Return an array of the same values that lies in another way."""
    if how == "turned" and x.ndim > 1:
        return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    if how == "spread":
        room = np.zeros([3 * size for size in x.shape], x.dtype)
        spread = room[(slice(None, None, 3),) * x.ndim]
        spread[...] = x
        return spread
    if how == "unaligned":
        raw = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
        raw[...] = x
        return raw
    return x


@pytest.mark.parametrize("how", ["plain", "turned", "spread", "unaligned"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_large_products_are_right(shapes, dtype, how):
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    expected = np.matmul(x.astype(np.float64), y.astype(np.float64))
    scale = np.sqrt(x.shape[-1]) * (8e-6 if dtype == "float32" else 1e-14)
    for a, b in ((lying(x, how), y), (x, lying(y, how))):
        found = products(a, b)
        assert found.dtype == dtype
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=0, atol=scale)
        if x.ndim == y.ndim == 2:
            np.testing.assert_array_equal(product(a, b), found)


@pytest.mark.parametrize("rows", [40, 10])
def test_a_product_goes_where_it_is_wanted(rows):
    x, y = np.ones((2, rows, 300), np.float32), np.ones((2, 300, 50), np.float32)
    whole = np.zeros((2, rows, 90), np.float32)
    products(x, y, out=whole[:, :, 20:70])
    assert (whole[:, :, 20:70] == 300).all()
    assert whole.sum() == 2 * rows * 50 * 300


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_row(special):
    x, y = np.ones((67, 90), np.float32), np.ones((90, 71), np.float32)
    x[66, 89] = special
    with np.errstate(all="ignore"):  # as operations run: some BLAS flag numbers that are valid
        found = product(x, y)
    np.testing.assert_array_equal(found[:66], 90)
    np.testing.assert_array_equal(found[66], special)


def test_an_empty_inner_dimension_gives_zeros():
    assert (product(np.ones((700, 0)), np.ones((0, 700))) == 0).all()
    assert product(np.ones((0, 700)), np.ones((700, 700))).shape == (0, 700)


def test_integers_are_exact():
    x = np.arange(70 * 70).reshape(70, 70)
    assert x.size * 70 > SMALL
    np.testing.assert_array_equal(product(x, x.T), x @ x.T)
    assert products(x > 3, x.T > 3).dtype == bool


@pytest.mark.parametrize("shapes", [((70, 71), (70, 72)), ((2, 70, 71), (3, 71, 72))])
def test_operands_that_do_not_fit_are_refused(shapes):
    with pytest.raises(ValueError, match="mismatch"):
        products(*map(np.ones, shapes))


@pytest.mark.parametrize("dtype", [wf.float16, wf.bfloat16])
def test_halves_are_added_up_in_float32(dtype):
    ones = wf.ones((70, 5000)).to(dtype)
    rounded = wf.tensor(5000.0).to(dtype).item()
    np.testing.assert_array_equal((ones @ ones.T).to(wf.float32).numpy(), rounded)
