"""Unknown sizes: their arithmetic is that of integers, and what they decide is always true."""

from __future__ import annotations

import math
import operator
import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from weft.core.dim import (
    Dim,
    SizeVar,
    bounds,
    broadcast_sizes,
    deciding,
    differ_unless_empty,
    evaluate,
    floor_divide,
    is_known,
    is_told,
    known_size,
    leaving_open,
    may_equal,
    parse,
    run_time_size,
    size_max,
    size_min,
    surely_less,
    typical,
    unknown_size,
    variables,
)
from weft.core.dim.number import RealDim, check_expression, number_value, size_sqrt
from weft.core.errors import ArgumentTypeError, ShapeError, UnknownSizeError

NAMES = ("n", "m", "k")
n, m, k = map(unknown_size, NAMES)


class Paired:
    """A size, and a function that computes it from integers in the way the program wrote it."""

    def __init__(self, size, compute):
        self.size, self.compute = size, compute


def combined(fn):
    return lambda a, b: Paired(
        fn(a.size, b.size), lambda sizes: fn(a.compute(sizes), b.compute(sizes))
    )


def leaf(name):
    return Paired(unknown_size(name), lambda sizes: sizes[SizeVar(name)])


def constant(value):
    return Paired(value, lambda sizes: value)


def divided(a, by):
    return Paired(a.size // by, lambda sizes: a.compute(sizes) // by)


def _grown(children):
    arithmetic = [operator.add, operator.sub, operator.mul, size_min, size_max]
    divisors = st.integers(-4, 6).filter(bool)
    return st.one_of(
        *(st.builds(combined(fn), children, children) for fn in arithmetic),
        st.builds(divided, children, divisors),
        st.builds(combined(lambda a, b: a % b), children, divisors.map(constant)),
    )


leaves = st.one_of(st.sampled_from(NAMES).map(leaf), st.integers(-6, 6).map(constant))
paired = st.recursive(leaves, _grown, max_leaves=8)
known_sizes = st.fixed_dictionaries({SizeVar(name): st.integers(0, 12) for name in NAMES})


# -- arithmetic ------------------------------------------------------------------------------------


@given(paired, known_sizes)
def test_the_normal_form_has_the_value_of_the_expression(pair, sizes):
    assert evaluate(pair.size, sizes) == pair.compute(sizes)


@given(paired, known_sizes)
def test_bounds_contain_the_value(pair, sizes):
    low, high = bounds(pair.size)
    assert low <= pair.compute(sizes) <= high


@given(paired)
def test_text_reads_back_as_the_same_size(pair):
    again = parse(repr(pair.size))
    assert again == pair.size
    assert type(again) is type(pair.size)
    assert pickle.loads(pickle.dumps(pair.size)) == pair.size


@given(paired, known_sizes, st.dictionaries(st.sampled_from(NAMES), leaves))
def test_sizes_may_be_put_in_one_after_another(pair, sizes, replaced):
    first = {SizeVar(name): by.size for name, by in replaced.items()}
    rest = {SizeVar(name): unknown_size(name) for name in NAMES} | first
    values = {var: evaluate(size, sizes) for var, size in rest.items()}
    assume(all(value >= 0 for value in values.values()))
    assert evaluate(evaluate(pair.size, rest), sizes) == pair.compute(values)


@given(paired, paired)
def test_equal_sizes_have_equal_hashes(a, b):
    total, turned = a.size + b.size, b.size + a.size
    assert total == turned
    assert hash(total) == hash(turned)


@given(st.sampled_from([n, n + 1, 2 * n, n * m]), st.integers(1, 5), st.integers(1, 5))
def test_a_division_twice_is_one_division(size, a, b):
    assert (size // a) // b == size // (a * b)


def test_equal_expressions_have_one_form():
    assert (2 * n) // 2 == n
    assert (n + 4) // 2 == n // 2 + 2
    assert (4 * n + 6) // 4 == n + 1 + 0 * (2 // 4)
    assert (2 * n + 4 * m) // 6 == (n + 2 * m) // 3
    assert (n * m + 3 * m) // m == n + 3
    assert n // n == 1
    assert n - n == 0
    assert type(n - n) is int
    assert n % 1 == 0
    assert (n + m) ** 2 == n * n + 2 * n * m + m * m
    assert n**0 == 1
    assert divmod(2 * n + 1, 2) == (n, 1)
    assert abs(-n) == n
    assert +n is n


def test_a_size_takes_the_integers_of_numpy():
    assert np.int64(2) + n == n + 2
    assert n * np.int32(3) == 3 * n
    with pytest.raises(TypeError):
        np.ones(3) * n


def test_sizes_do_not_divide_by_zero():
    with pytest.raises(ShapeError, match="cannot be divided by zero"):
        n // 0
    with pytest.raises(ShapeError, match="divided by zero"):
        evaluate(m // n, {SizeVar("n"): 0, SizeVar("m"): 3})


# -- questions -------------------------------------------------------------------------------------


@given(paired, paired, known_sizes)
def test_comparisons_never_contradict_the_values(a, b, sizes):
    x, y = a.compute(sizes), b.compute(sizes)
    if isinstance(a.size, Dim) or isinstance(b.size, Dim):
        assert not (a.size == b.size and x != y)
        assert not (a.size != b.size and x == y)
    assert may_equal(a.size, b.size) or x != y
    assert not surely_less(a.size, b.size) or x < y
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        try:
            answer = compare(a.size, b.size)
        except UnknownSizeError:
            continue
        assert answer == compare(x, y)


@given(paired, known_sizes)
def test_a_truth_value_is_that_of_the_number(pair, sizes):
    try:
        answer = bool(pair.size)
    except UnknownSizeError:
        return
    assert answer == bool(pair.compute(sizes))


def test_what_is_not_decided_raises():
    for question in (bool, int, float, operator.index, lambda x: x < 3, lambda x: x >= 1, range):
        with pytest.raises(UnknownSizeError, match="n is not known until the graph runs"):
            question(n)


def test_what_is_decided():
    assert n >= 0
    assert n + 1 > 0
    assert bool(n + 1)
    assert n > -0.5
    assert n < math.inf
    assert not n > math.inf
    assert n + 1 != 0
    assert n != -0.5
    assert n != "n"
    assert not (n == 3)  # noqa: SIM201  (neither surely equal nor surely different)
    assert not (n != 3)  # noqa: SIM202  (as above)
    assert surely_less(n, n + 1)
    assert not surely_less(n, 1)
    assert differ_unless_empty(3 * n, 4 * n)
    assert differ_unless_empty(3 * n * m, 2 * n * m)
    assert not differ_unless_empty(3 * n, 4 * m)
    assert not differ_unless_empty(n, 1)
    assert not differ_unless_empty(n, 0)
    assert differ_unless_empty(2, 3)
    assert surely_less(2, 3)


def test_none_stands_for_any_unknown_size():
    assert n == None  # noqa: E711  (what a user writes for an unknown size)
    assert (n, 3) == (None, 3)
    assert not (n != None)  # noqa: E711, SIM202  (as above)


def test_shapes_may_be_equal():
    assert may_equal((n, 3), (m, 3))
    assert may_equal((n, 3), [4, 3])
    assert not may_equal((n, 3), (n, 4))
    assert not may_equal((n,), (n, 1))
    assert not may_equal((n,), (n + 1,))
    assert is_known((2, 3))
    assert not is_known((2, n))


# -- calls -----------------------------------------------------------------------------------------


def test_minimum_and_maximum():
    assert size_min(n, n + 1) == n
    assert size_max(n, 0) == n
    assert size_max(2, 3) == 3
    assert size_min(n, 3) == size_min(3, n)
    assert repr(size_min(n, 3)) == "min(3, n)"


def test_broadcast_of_sizes():
    assert broadcast_sizes(n, 1) == n
    assert broadcast_sizes(1, n) == n
    assert broadcast_sizes(n, 3) == 3
    assert broadcast_sizes(n, m) == broadcast_sizes(m, n)
    both = broadcast_sizes(n, m)
    assert both.evaluate({SizeVar("n"): 1, SizeVar("m"): 4}) == 4
    with pytest.raises(ShapeError, match="sizes 4 and 2 do not broadcast"):
        both.evaluate({SizeVar("n"): 2, SizeVar("m"): 4})


def test_a_size_that_nothing_tells():
    with pytest.raises(UnknownSizeError, match="the size m is not known here"):
        (n + m).evaluate({SizeVar("n"): 1})


def test_variables():
    assert set(variables(n + m // 2)) == {SizeVar("n"), SizeVar("m")}
    assert list(variables(3)) == []
    assert n.variable() == SizeVar("n")
    assert (n + 1).variable() is None
    assert (2 * n).variable() is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "n +",
        "n ** 2",
        "n.m",
        "[n]",
        "f(n, m)",
        "n // 0",
        "1.5",
        "True",
        "min(n)",
        "n if m else 1",
    ],
)
def test_text_that_is_no_size(text):
    with pytest.raises(ValueError, match=r"expression of a size|divided by zero"):
        parse(text)


# -- numbers that are no integers ------------------------------------------------------------------


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: 1.0 / x,
        lambda x: x / 3,
        lambda x: 3 / x,
        lambda x: (x - 1) / x,
        lambda x: x * 0.1 + 0.7,
        lambda x: 0.7 - x * 0.1,
        lambda x: 2.0 * x - 1.0,
        lambda x: x**-0.5,
        lambda x: 0.9**x,
        lambda x: -(x / 7) + abs(x / -3),
        lambda x: (x / 3) // 2 + (x / 3) % 2 + 7.5 // x + 7.5 % x,
        lambda x: (1.0 / x) ** 2 / (2 / x),
        lambda x: 1 / size_sqrt(x),
    ],
)
def test_a_real_number_is_computed_as_the_program_wrote_it(compute):
    number = compute(n)
    assert isinstance(number, RealDim)
    for value in (1, 3, 7, 10**6 + 3):
        resolved = _with(number.expression, value)
        assert number_value(resolved) == compute(value)
        assert check_expression(resolved) == resolved


def _with(expression, value):
    if isinstance(expression, tuple):
        return tuple(_with(item, value) for item in expression)
    return evaluate(expression, {SizeVar("n"): value})


def test_a_real_number_decides_nothing():
    number = 1.0 / n
    assert number == 1.0 / n
    for question in (bool, int, float, lambda x: x < 1, lambda x: x == 1, lambda x: x != 0.5):
        with pytest.raises(UnknownSizeError, match="is not known until the graph runs"):
            question(number)
    with pytest.raises(ArgumentTypeError, match="not an integer"):
        operator.index(number)
    assert pickle.loads(pickle.dumps(number)) == number
    assert repr(number) == "truediv(1.0, n)"


def test_known_sizes_stay_numbers():
    assert size_sqrt(9) == 3.0
    assert floor_divide(7, 2) == 3
    assert evaluate(5, {}) == 5


@pytest.mark.parametrize("bad", ["n", ("pow", 1), ("sqrt", 1, 2), (), ("exec", 1, 2), True, None])
def test_bad_expressions(bad):
    with pytest.raises(ArgumentTypeError, match="not an expression of sizes"):
        check_expression(bad)


# -- sizes that every run is told ------------------------------------------------------------------


def test_a_run_time_size_is_at_least_two():
    n = run_time_size("n")
    assert n != 1
    assert n > 1
    assert not n == unknown_size("n")  # noqa: SIM201  (of sizes, != means surely different)
    assert is_told((n, n * 2 + 1, 3))
    assert not is_told((n, unknown_size("n")))


def test_questions_are_answered_by_sizes_at_hand_and_noted():
    n = run_time_size("n")
    (variable,) = n.variables()
    with deciding({variable: 64}) as decisions:
        assert n < 100
        assert n != 7
        assert not surely_less(n, 10)
        assert n * 2 > n
    assert len(decisions.conditions) == 3
    assert decisions.hold({variable: 12})
    assert not decisions.hold({variable: 7})
    assert not decisions.hold({variable: 9})
    assert not decisions.hold({variable: 100})
    with pytest.raises(UnknownSizeError):
        assert n < 100


def test_numbers_are_given_where_they_are_asked_for_and_noted():
    n = run_time_size("n")
    (variable,) = n.variables()
    with deciding({variable: 6}, numbers=True) as decisions:
        assert int(n // 2) == 3
        assert float(n) == 6.0
        assert known_size(n + 1, "test") == 7
    assert decisions.pinned == {variable}
    assert not decisions.hold({variable: 7})
    with deciding({variable: 6}), pytest.raises(UnknownSizeError):
        int(n)
    with deciding({variable: 6}), pytest.raises(UnknownSizeError):
        float(n / 2)


def test_typical_sizes_are_those_at_hand_and_nothing_is_noted():
    n = run_time_size("n")
    (variable,) = n.variables()
    with deciding({variable: 5}) as decisions:
        assert typical(n * 3) == 15
        with leaving_open(), pytest.raises(UnknownSizeError):
            assert n < 100
    assert not decisions.conditions
    assert typical(n) == 32


def test_run_time_sizes_broadcast_only_with_their_like():
    n, m = run_time_size("n"), run_time_size("m")
    ((a,), (b,)) = n.variables(), m.variables()
    with deciding({a: 4, b: 4}) as decisions:
        assert broadcast_sizes(n, m) in (n, m)
        with pytest.raises(ShapeError, match="broadcast"):
            broadcast_sizes(n, 5)
    assert not decisions.hold({a: 4, b: 6})
