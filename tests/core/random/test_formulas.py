"""The formulas of random numbers: SciPy is the oracle."""

import numpy as np
from scipy import special

from weft.core.random import formulas
from weft.core.scalar.arrays import on_arrays

normal_magnitude = on_arrays(formulas.normal_magnitude)
normal_quantile = on_arrays(formulas.normal_quantile)


def test_normal_quantile_agrees_with_scipy() -> None:
    p = np.concatenate([10.0 ** np.linspace(-300, -0.31, 5000), np.linspace(0.4, 1 - 1e-12, 5000)])
    np.testing.assert_allclose(normal_quantile(p), special.ndtri(p), rtol=2e-14)


def test_normal_magnitude_in_float32_agrees_with_scipy() -> None:
    tail = np.linspace(2.0**-33, 0.499, 10001).astype(np.float32)
    z = normal_magnitude(np.float32(0.5) - tail, tail)
    np.testing.assert_allclose(z, -special.ndtri(tail.astype(np.float64)), rtol=1e-6, atol=1e-7)
