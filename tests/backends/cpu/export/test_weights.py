"""States as a library keeps them: aligned, without gaps, and readable by others."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.backends.cpu.export.weights import read_weights
from weft.graph.state import tensor_state

ARRAYS = {
    "odd": np.arange(5, dtype=np.float32),
    "lines": np.arange(32, dtype=np.float32).reshape(2, 16),
    "flag": np.array(True),
    "wide": np.arange(3, dtype=np.float64),
    "none": np.zeros((0, 4), np.float32),
    "half": np.arange(3, dtype=np.float16),
    "turned": np.arange(6, dtype=np.int64).reshape(2, 3).T,
}


@pytest.fixture
def weights():
    states = [tensor_state(wf.asarray(array), name) for name, array in ARRAYS.items()]
    return read_weights(states, list(ARRAYS), {states[0].key})


def test_what_fills_lines_begins_at_one_and_others_at_their_elements(weights):
    for state in weights.states:
        whole = state.value.nbytes % 64 == 0
        assert state.offset % (64 if whole else state.value.itemsize) == 0, state.name
    assert weights.nbytes == sum(array.nbytes for array in ARRAYS.values())
    assert [state.name for state in weights.states if state.changes] == ["odd"]


def test_they_are_a_file_of_safetensors(weights, tmp_path):
    path = tmp_path / "w.safetensors"
    path.write_bytes(weights.header + b"".join(weights.data()))
    assert len(weights.header) % 64 == 0
    read = wf.io.load(path)
    assert read.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert np.array_equal(np.asarray(read[name]), array), name
        assert np.asarray(read[name]).dtype == array.dtype
