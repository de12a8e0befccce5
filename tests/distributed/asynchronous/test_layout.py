"""Where parameters and gradients lie in the memory of servers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from weft.distributed.asynchronous.layout import WORDS, Key, lay_out, share_keys

KEYS = [
    Key(0, (1000, 8), np.dtype("float32")),
    Key(1, (8,), np.dtype("float64")),
    Key(2, (), np.dtype("float32")),
    Key(3, (50, 50), np.dtype("float32")),
]


def regions(layout):
    yield layout.final
    for place in layout.places.values():
        yield from (place.versions, place.values, place.row_versions)
    yield from layout.words
    yield from layout.rates
    for gradient in layout.gradients:
        for place in gradient.values():
            yield from (place.form, place.rows, place.values)


def test_nothing_overlaps_and_all_is_aligned():
    layout = lay_out(KEYS, workers=3, groups=2)
    spans = sorted(region for region in regions(layout) if region.size)
    for before, after in pairwise(spans):
        assert before.start + before.size <= after.start
    assert all(region.start % 64 == 0 for region in spans)
    assert spans[-1].start + spans[-1].size <= layout.size
    assert layout.words[0].size == 8 * len(WORDS)


def test_servers_share_all_parameters():
    shares = share_keys(KEYS, 2)
    assert sorted(key.number for own in shares for key in own) == [0, 1, 2, 3]
    assert [key.number for key in shares[0]] == [0]
    with pytest.raises(ValueError, match="5 servers would share 4 parameters"):
        share_keys(KEYS, 5)
