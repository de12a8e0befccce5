"""What is a number and what a size in the shapes of feeds, by the shapes seen before."""

from __future__ import annotations

from weft.core.dim import run_time_size, unknown_size
from weft.graph.size_patterns import (
    pattern_of,
    sizes_in,
    told_pattern,
    with_numbers,
    with_one_size,
)

n0, n1 = run_time_size("n0"), run_time_size("n1")
BATCH = [(unknown_size("a"), 3), (unknown_size("b"),)]


def test_the_first_shapes_have_no_sizes():
    assert pattern_of(BATCH, ((4, 3), (4,)), []) is None


def test_numbers_that_changed_together_are_one_size():
    found = pattern_of(BATCH, ((5, 3), (5,)), [((4, 3), (4,))])
    assert found == ((n0, 3), (n0,))


def test_numbers_that_changed_apart_are_two():
    found = pattern_of(BATCH, ((5, 3), (6,)), [((4, 3), (4,))])
    assert found == ((n0, 3), (n1,))


def test_a_number_that_did_not_change_stays_one():
    found = pattern_of(BATCH, ((5, 3), (4,)), [((4, 3), (4,))])
    assert found == ((n0, 3), (4,))


def test_what_was_declared_as_a_number_is_no_size():
    assert pattern_of([(3, 3)], ((3, 3),), [((4, 3),)]) is None


def test_zero_and_one_are_numbers():
    assert pattern_of(BATCH, ((1, 3), (1,)), [((4, 3), (4,))]) is None
    assert pattern_of(BATCH, ((5, 3), (5,)), [((1, 3), (1,)), ((0, 3), (0,))]) is None
    assert pattern_of(BATCH, ((1, 3), (7,)), [((1, 3), (9,)), ((4, 3), (4,))]) == ((1, 3), (n0,))


def test_sizes_are_found_in_shapes_of_the_pattern_only():
    pattern = ((n0, 3), (n0,))
    (variable,) = n0.variables()
    assert sizes_in(pattern, ((7, 3), (7,))) == {variable: 7}
    assert sizes_in(pattern, ((7, 3), (8,))) is None
    assert sizes_in(pattern, ((7, 4), (7,))) is None
    assert sizes_in(pattern, ((1, 3), (1,))) is None


def test_one_size_can_be_left_of_several():
    pattern, shapes = ((n0, n1), (n0,)), ((5, 6), (5,))
    assert list(with_one_size(pattern, shapes)) == [((n0, 6), (n0,)), ((5, n1), (5,))]
    assert list(with_one_size(((n0, 6), (n0,)), shapes)) == []


def test_some_sizes_can_be_numbers_again():
    pattern, shapes = ((n0, n1), (n0,)), ((5, 1), (5,))
    (variable,) = n0.variables()
    assert with_numbers(pattern, shapes, {variable}) == ((5, n1), (5,))
    assert with_numbers(pattern, shapes, (), small=True) == ((n0, 1), (n0,))


def test_run_time_sizes_that_were_declared_are_sizes_at_once():
    assert told_pattern([(n0, 3), (n0,)], ((4, 3), (4,))) == ((n0, 3), (n0,))
    assert told_pattern([(n0, n1)], ((4, 1),)) == ((n0, 1),)
    assert told_pattern(BATCH, ((4, 3), (4,))) is None
    assert told_pattern([(4, 3)], ((4, 3),)) is None


def test_declared_sizes_that_are_all_one_are_no_pattern():
    types = ((run_time_size("n"), 3),)
    assert told_pattern(types, ((1, 3),)) is None
