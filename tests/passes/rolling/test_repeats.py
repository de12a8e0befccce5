"""Repeats in sequences, against a search that tries everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.passes.rolling.repeats import Repeat, apart_from_one_another, find_repeats


def letters(text):
    return np.array([ord(c) for c in text], np.int64)


def longest(text, trips):
    """Return the first and longest stretch that repeats, with its shortest period."""
    best = Repeat(0, 0, 1)
    for period in range(1, len(text) // trips + 1):
        start = 0
        for i in range(period, len(text) + 1):
            if i == len(text) or text[i] != text[i - period]:
                if i - start >= trips * period and i - start > best.length:
                    best = Repeat(start, i, period)
                start = i - period + 1
    return best


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("aaaaaaaa", Repeat(0, 8, 1)),
        ("xabababababy", Repeat(1, 11, 2)),
        ("aabbaabbaabbaabb", Repeat(0, 16, 4)),
        ("abcd", None),
        ("", None),
        ("bcabcabcabcabcab", Repeat(0, 16, 3)),
    ],
)
def test_the_longest_comes_first(text, found):
    repeats = find_repeats(letters(text), 4)
    assert (repeats[0] if repeats else None) == found


def test_nested_repeats_are_all_found():
    text = "x" + "paaaaaq" * 5 + "y"
    found = find_repeats(letters(text), 4)
    assert found[0] == Repeat(1, 36, 7)
    inner = sorted(repeat for repeat in found if repeat.period == 1)
    assert inner == [Repeat(2 + 7 * i, 7 + 7 * i, 1) for i in range(5)]


def test_repeats_that_do_not_overlap():
    free = np.ones(100, np.bool_)
    long, inner, beside = Repeat(10, 60, 10), Repeat(12, 20, 1), Repeat(58, 90, 4)
    chosen, left = apart_from_one_another([long, beside, inner], free, 4)
    assert chosen == [long, Repeat(60, 90, 4)]
    assert left == [inner]
    assert free.all()


def test_repeats_where_letters_are_taken():
    free = np.ones(100, np.bool_)
    free[30:33] = False
    chosen, left = apart_from_one_another([Repeat(10, 60, 5), Repeat(29, 35, 1)], free, 4)
    assert chosen == [Repeat(33, 60, 5)]
    assert left == []


@given(
    st.text("ab", max_size=6),
    st.text("abc", min_size=1, max_size=7),
    st.integers(1, 9),
    st.text("ab", max_size=6),
)
def test_as_long_as_any(before, body, count, after):
    text = before + body * count + after
    found = find_repeats(letters(text), 4)
    expected = longest(text, 4)
    assert (found[0].length if found else 0) == expected.length
    for repeat in found:
        part = text[repeat.start : repeat.stop]
        assert part[repeat.period :] == part[: -repeat.period]
        assert repeat.trips >= 4


def test_long_sequences_take_no_time_to_speak_of():
    body = np.arange(20)
    sequence = np.concatenate([np.tile(body, 2500), np.arange(100), np.tile(body[:7], 1000)])
    found = find_repeats(sequence.astype(np.int64), 8)
    assert found[0] == Repeat(0, 50_000 + 20, 20)
    assert Repeat(50_100, 57_100, 7) in found
