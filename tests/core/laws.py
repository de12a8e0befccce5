"""What tests of distributions share: a stream to draw from, dtypes, and a test of laws."""

import math
from typing import Any

import ml_dtypes
import numpy as np
from scipy import stats

KEY, N = 20240229, 100_000
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(name) for name in ("float16", "float32", "float64")] + [BFLOAT16]
INTEGERS = [np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]


def assert_follows(sample: np.ndarray, law: Any) -> None:
    """Assert that a Kolmogorov-Smirnov test and the first two moments do not reject the law."""
    flat = sample.astype(np.float64).ravel()
    assert stats.kstest(flat, law.cdf).pvalue > 1e-3
    mean, variance, kurtosis = (float(v) for v in law.stats(moments="mvk"))
    assert abs(flat.mean() - mean) < 4 * math.sqrt(variance / flat.size)
    spread = variance * math.sqrt((kurtosis + 2) / flat.size)
    assert abs(flat.var() - variance) < 4 * spread
