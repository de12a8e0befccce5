"""Memory for rows."""

from __future__ import annotations

import numpy as np
import pytest

from weft.core.dtype import float32
from weft.dynamic.cell_kernels import filling
from weft.dynamic.room import room_for, zeros_for


@pytest.mark.parametrize("rows", [1, 100, 3000])
def test_there_is_room_for_rows_and_what_fills_up(rows):
    used = room_for(rows, (64,), float32)
    used[:] = np.nan
    del used  # the next one may get this memory
    room = room_for(rows, (64,), float32)
    assert len(room) >= rows + filling(rows)
    assert not room[rows:].any()
    assert not zeros_for(rows, (64,), float32).any()


def test_calls_of_about_as_many_rows_have_the_same_size():
    sizes = {len(room_for(rows, (64,), float32)) for rows in range(4000, 5000, 7)}
    assert len(sizes) < 6
