"""Decompositions of low rank: exact where the rank is as low as asked for."""

import numpy as np
import pytest

import weft as wf


def low_rank(*shape):
    rng = np.random.default_rng(0)
    m, n = shape
    return wf.tensor(rng.normal(size=(m, 3)) @ rng.normal(size=(3, n)))


@pytest.mark.parametrize("shape", [(12, 8), (8, 12)])
def test_a_matrix_of_that_rank_is_found_again(shape):
    x = low_rank(*shape)
    u, s, v = wf.linalg.svd_lowrank(x, 3)
    np.testing.assert_allclose((u * s @ v.mT).numpy(), x.numpy(), atol=1e-10)
    expected = np.linalg.svd(x.numpy(), compute_uv=False)[:3]
    np.testing.assert_allclose(s.numpy(), expected, rtol=1e-10)


def test_principal_components_are_those_of_centred_rows():
    x = low_rank(12, 8) + 5.0
    _, s, _ = wf.linalg.pca_lowrank(x, 3)
    centred = x.numpy() - x.numpy().mean(0)
    expected = np.linalg.svd(centred, compute_uv=False)[:3]
    np.testing.assert_allclose(s.numpy(), expected, rtol=1e-10)


def test_a_rank_that_is_too_high_is_named():
    with pytest.raises(ValueError, match=r"q must be from 0 to 3.*4"):
        wf.linalg.svd_lowrank(wf.ones((5, 3)), 4)
