"""Windows against SciPy's."""

import numpy as np
import pytest

import weft as wf

scipy_windows = pytest.importorskip("scipy.signal.windows")
windows = wf.signal.windows
CASES = {
    "bartlett": {},
    "blackman": {},
    "cosine": {},
    "exponential": {"tau": 2.5},
    "gaussian": {"std": 1.7},
    "general_cosine": {"a": [0.4, 0.5, 0.1]},
    "general_hamming": {"alpha": 0.7},
    "hamming": {},
    "hann": {},
    "kaiser": {"beta": 9.0},
    "nuttall": {},
}


@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("name", list(CASES))
def test_windows(name, sym):
    for size in (0, 1, 2, 7, 8):
        found = getattr(windows, name)(size, sym=sym, dtype=wf.float64, **CASES[name])
        expected = getattr(scipy_windows, name)(size, sym=sym, **CASES[name])
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


def test_options_and_bad_arguments():
    made = windows.hann(4, dtype=wf.float32, requires_grad=True)
    assert made.dtype == wf.float32
    assert made.requires_grad
    with pytest.raises(ValueError, match=r"general_cosine: M must not be negative.*-1"):
        windows.hann(-1)
    with pytest.raises(TypeError, match=r"floating-point.*int64"):
        windows.hann(4, dtype=wf.int64)
    with pytest.raises(TypeError, match="unexpected keywords shape"):
        windows.hann(4, shape=2)
    with pytest.raises(ValueError, match=r"std must be positive.*0"):
        windows.gaussian(4, std=0)
    with pytest.raises(ValueError, match="centre in the middle"):
        windows.exponential(4, center=1.0)
