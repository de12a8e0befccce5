"""Data of a library: what is equal lies in one place, and all is where it was said to be."""

from __future__ import annotations

import numpy as np

from weft.backends.cpu.export.data import CONSTANTS, LibraryData, in_lines
from weft.backends.cpu.export.image import Address, Image


def test_equal_texts_and_numbers_are_kept_once():
    data = LibraryData()
    assert data.text("a") == data.text("a") != data.text("ab")
    assert data.numbers([1, 2]) == data.numbers([1, 2]) != data.numbers([2, 1])
    assert data.records([1]) != data.records([1])


def test_constants_begin_at_cache_lines():
    data, arrays = LibraryData(), [np.arange(n, dtype=np.float32) for n in (3, 20, 1)]
    places = [data.constant(array) for array in arrays]
    assert places == [Address(CONSTANTS, at) for at in (0, 64, 192)]
    assert data.constant(arrays[1]) == places[1]
    content = b"".join(in_lines(arrays))
    for place, array in zip(places, arrays, strict=True):
        assert content[place.further :][: array.nbytes] == array.tobytes()


def test_everything_is_in_the_image():
    data, image = LibraryData(), Image()
    text, row = data.text("model"), data.numbers([5, 6, 7])
    record = data.records([text, row])
    data.add_to(image)
    image.reserve(0)
    image.lay_out(0)
    image.link()
    found = {r.at: r.value for r in image.dynamic}
    at = image.address(record.name) + record.further
    assert found[at] == image.address(text.name) + text.further
    assert found[at + 8] == image.address(row.name) + row.further
