"""Factorisations of matrices that are too large to be left to np.linalg."""

import threading

import numpy as np
import pytest

import weft as wf

SIDES = (32, 45, 100)


def normal(*shape, dtype="float64"):
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype)


def regular(n, dtype, *batch):
    return normal(*batch, n, n, dtype=dtype) + np.sqrt(n) * np.eye(n, dtype=dtype) * 2


def assert_near(found, expected, scale=1.0):
    tolerance = scale * (2e-4 if found.numpy().dtype == np.float32 else 1e-11)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param


@pytest.mark.parametrize("n", SIDES)
def test_systems_and_inverses(n, dtype):
    a, b = regular(n, dtype), normal(n, 3, dtype=dtype)
    t, s = wf.tensor(a), wf.tensor(b)
    assert_near(wf.linalg.solve(t, s), np.linalg.solve(a, b))
    assert_near(wf.linalg.solve(t.T, s[:, 0]), np.linalg.solve(a.T, b[:, 0]))
    assert_near(wf.linalg.inv(t), np.linalg.inv(a))


@pytest.mark.parametrize("shapes", [((2, 1), (3,)), ((2,), ()), ((), (2,)), ((0,), (0,))], ids=str)
def test_stacks_of_systems(shapes, dtype):
    a, b = regular(40, dtype, *shapes[0]), normal(*shapes[1], 40, 2, dtype=dtype)
    assert_near(wf.linalg.solve(wf.tensor(a), wf.tensor(b)), np.linalg.solve(a, b))


def test_a_small_matrix_with_many_right_hand_sides(dtype):
    a, b = regular(5, dtype), normal(5, 4000, dtype=dtype)
    assert_near(wf.linalg.solve(wf.tensor(a), wf.tensor(b)), np.linalg.solve(a, b))


@pytest.mark.parametrize("n", SIDES)
def test_determinants(n, dtype):
    a = regular(n, dtype, 2) / np.sqrt(n).astype(dtype) / 2
    a[1, [0, 1]] = a[1, [1, 0]]  # of the other sign
    assert_near(wf.linalg.det(wf.tensor(a)), np.linalg.det(a), 10)
    for found, expected in zip(wf.linalg.slogdet(wf.tensor(a)), np.linalg.slogdet(a), strict=True):
        assert_near(found, expected, 10)


def test_the_determinant_of_a_singular_matrix(dtype):
    sign, logarithm = wf.linalg.slogdet(wf.zeros((40, 40), dtype=dtype))
    assert (sign.item(), logarithm.item()) == (0, -np.inf)
    assert wf.linalg.det(wf.zeros((2, 40, 40), dtype=dtype)).tolist() == [0, 0]


@pytest.mark.parametrize("n", SIDES)
def test_cholesky(n, dtype):
    a = regular(n, dtype)
    s = a @ a.T
    assert_near(wf.linalg.cholesky(wf.tensor(s)), np.linalg.cholesky(s), n)


@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", [(45, 45), (90, 40), (40, 90), (500, 2), (2, 500), (2, 50, 40)])
def test_qr(shape, mode, dtype):
    x = normal(*shape, dtype=dtype)
    for found, expected in zip(
        wf.linalg.qr(wf.tensor(x), mode=mode), np.linalg.qr(x, mode), strict=True
    ):
        assert_near(found, expected, 10)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", [(45, 45), (90, 40), (40, 90), (300, 2), (2, 300), (2, 50, 40)])
def test_singular_values(shape, full, dtype):
    x = normal(*shape, dtype=dtype)
    u, s, vh = wf.linalg.svd(wf.tensor(x), full_matrices=full)
    expected = np.linalg.svd(x, full)
    assert (u.shape, vh.shape) == (expected[0].shape, expected[2].shape)
    assert_near(s, expected[1])
    k = s.shape[-1]
    assert_near(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x, 10)
    assert_near(wf.linalg.svdvals(wf.tensor(x)), expected[1])


@pytest.mark.parametrize("n", SIDES)
def test_eigenvalues(n, dtype):
    a = normal(n, n, dtype=dtype)
    s = a + a.T
    values, vectors = wf.linalg.eigh(wf.tensor(s))
    assert_near(values, np.linalg.eigvalsh(s), 10)
    assert_near(wf.linalg.eigvalsh(wf.tensor(s)), np.linalg.eigvalsh(s), 10)
    assert_near(vectors * values @ vectors.T, s, 20)


FAILURES = {
    "solve": lambda x: wf.linalg.solve(x, x[0]),
    "inv": wf.linalg.inv,
    "cholesky": lambda x: wf.linalg.cholesky(x - wf.eye(40)),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_say_which_matrix(name, dtype):
    with pytest.raises(ValueError, match=r"singular|not positive definite"):
        FAILURES[name](wf.zeros((40, 40), dtype=dtype))


def test_failures_in_a_stack_say_where(dtype):
    stack = wf.tensor(np.stack([np.eye(40), np.zeros((40, 40))]).astype(dtype))
    with pytest.raises(ValueError, match=r"singular at batch index \(1,\)"):
        wf.linalg.inv(stack)


@pytest.mark.parametrize("name", ["svd", "pinv", "svdvals"])
def test_nan_is_named(name):
    with pytest.raises(ValueError, match="NaN or infinity"):
        getattr(wf.linalg, name)(wf.full((40, 40), np.nan))


def test_threads_factorise_at_the_same_time():
    x = wf.tensor(regular(90, "float64"))
    expected, found = wf.linalg.inv(x).numpy(), []
    threads = [
        threading.Thread(target=lambda: found.extend(wf.linalg.inv(x).numpy() for _ in range(5)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    assert all(np.array_equal(one, expected) for one in found)
