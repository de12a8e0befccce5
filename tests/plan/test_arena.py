"""Arenas: blocks alive together never overlap, and little room is wasted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.plan.arena import (
    ALIGNMENT,
    ArenaBlock,
    _in_order_of_time,
    _largest_first,
    most_alive,
    place_blocks,
)

BLOCKS = st.lists(
    st.builds(
        lambda size, birth, length: ArenaBlock(size * ALIGNMENT, birth, birth + length),
        st.integers(0, 20),
        st.integers(0, 40),
        st.integers(0, 25),
    ),
    max_size=60,
)


@given(blocks=BLOCKS)
@pytest.mark.parametrize("heuristic", [_in_order_of_time, _largest_first, place_blocks])
def test_blocks_alive_together_never_overlap(heuristic, blocks):
    offsets, total = heuristic(blocks)
    for i, a in enumerate(blocks):
        assert 0 <= offsets[i] <= offsets[i] + a.bytes <= max(total, offsets[i])
        assert offsets[i] % ALIGNMENT == 0
        for j, b in enumerate(blocks[:i]):
            together = a.birth <= b.death and b.birth <= a.death
            apart = offsets[i] >= offsets[j] + b.bytes or offsets[j] >= offsets[i] + a.bytes
            assert apart or not together or 0 in (a.bytes, b.bytes)
    assert total >= most_alive(blocks)


def test_largest_first_is_used_where_the_order_of_time_wastes_room():
    # In the order of time the large block cannot use the gaps that the small ones leave.
    unit = ALIGNMENT
    blocks = [
        ArenaBlock(unit, 0, 1),
        ArenaBlock(unit, 0, 9),
        ArenaBlock(unit, 0, 1),
        ArenaBlock(2 * unit, 2, 9),
    ]
    assert _in_order_of_time(blocks).bytes == 4 * unit
    assert place_blocks(blocks).bytes == 3 * unit
