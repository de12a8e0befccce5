"""Loops of a kernel: which axes are joined, and in which order they run."""

import pytest

from weft.lower.loops import collapse


@pytest.mark.parametrize(
    ("strides", "loops"),
    [
        ([(20, 5, 1), (20, 5, 1)], (60,)),
        ([(20, 5, 1), (5, 15, 1)], (3, 4, 5)),
        ([(20, 5, 1), (1, 3, 12)], (4, 3, 5)),
        ([(20, 5, 1), (8, 1, 24)], (3, 4, 5)),
        ([(20, 5, 1), (1, 3, 0)], (3, 4, 5)),
    ],
    ids=["one piece", "outer exchanged", "all reversed", "transposed", "repeated"],
)
def test_the_loop_before_the_last_is_that_of_turned_operands(strides, loops):
    found, _ = collapse((3, 4, 5), strides, None)
    assert found == loops


def test_loops_of_rows_keep_their_order():
    loops, strides = collapse((3, 4, 5), [(20, 5, 1), (1, 3, 12)], 2)
    assert loops == (3, 4, 5)
    assert strides == [(20, 5, 1), (1, 3, 12)]
