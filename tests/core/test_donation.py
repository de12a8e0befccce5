"""What stands in the place of an array that a call took."""

from __future__ import annotations

import copy
import operator
import pickle

import numpy as np
import pytest

from weft.core.donation import DonatedMemory
from weft.core.errors import DonatedError

GONE = DonatedMemory(np.zeros((2, 3), np.float32), "gone: step at a.py:3 took it")

USES = {
    "ufunc": lambda x: np.add(x, 1),
    "function": lambda x: np.concatenate([x, x]),
    "asarray": np.asarray,
    "attribute": lambda x: x.ctypes,
    "method": lambda x: x.reshape(6),
    "item": lambda x: x[0],
    "write": lambda x: operator.setitem(x, 0, 1.0),
    "operator": lambda x: 1.0 - x,
    "float": float,
    "truth": bool,
    "length": len,
    "iteration": list,
    "out": lambda x: np.add(1, 1, out=x),
    "pickle": pickle.dumps,
    "copy": copy.deepcopy,
}


@pytest.mark.parametrize("use", USES)
def test_each_use_says_what_took_it(use):
    with pytest.raises(DonatedError, match=r"step at a\.py:3 took it"):
        USES[use](GONE)


def test_its_type_can_still_be_read():
    assert (GONE.shape, GONE.ndim, GONE.size, GONE.dtype) == ((2, 3), 2, 6, np.float32)
    assert repr(GONE) == "<memory of float32[2, 3], donated>"
