"""Segments whose number is not given: it is read from the ids, where these have values."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf

from .references.segment import REFERENCES


@pytest.mark.parametrize("name", REFERENCES)
def test_segments_are_counted(name):
    values, ids = np.arange(8.0).reshape(4, 2), np.array([1, 0, 1, 3])
    found = getattr(wf, name)(values, ids)
    np.testing.assert_allclose(found.numpy(), REFERENCES[name](values, ids, 4))


@pytest.mark.parametrize("name", REFERENCES)
def test_ids_without_values_need_the_number(name):
    with wf.Graph():
        ids = wf.placeholder((4,), wf.int64)
        with pytest.raises(ValueError, match=f"{name}: num_segments must be given"):
            getattr(wf, name)(wf.ones(4), ids)
        assert getattr(wf, name)(wf.ones(4), ids, 3).shape == ((4,) if "soft" in name else (3,))
