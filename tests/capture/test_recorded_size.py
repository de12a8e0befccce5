"""Sizes that know their number: they follow sizes, and say where they cannot."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

import weft as wf
from weft.capture.recorded import RecordedNumber
from weft.capture.recorded_size import (
    is_recorded_size,
    plain_attrs,
    plain_size,
    recorded_shape,
    recorded_size,
)
from weft.capture.recorder import RecordingGraph
from weft.core.dim import deciding, evaluate, run_time_size

N = run_time_size("n")
(VARIABLE,) = N.variables()


@pytest.fixture
def at_six():
    with deciding({VARIABLE: 6}, numbers=True) as decisions:
        yield decisions


FOLLOW = {
    "add": lambda n: 3 + n + n,
    "sub": lambda n: 2 * n - 1,
    "floordiv": lambda n: (n + 1) // 2,
    "floordiv of a number": lambda n: 100 // n,
    "mod": lambda n: n % 4,
    "pow": lambda n: n**3,
    "divmod": lambda n: divmod(n, 4)[1],
    "neg": lambda n: -n,
    "abs": lambda n: abs(-n),
    "bool": lambda n: n + True,
    "round": round,
    "copies": lambda n: copy.deepcopy(copy.copy(n)),
}


@pytest.mark.parametrize("name", FOLLOW)
def test_arithmetic_follows_the_size(at_six, name):
    made = FOLLOW[name](recorded_size(N))
    assert is_recorded_size(made)
    assert not at_six.conditions
    assert [evaluate(plain_size(made), {VARIABLE: k}) for k in (2, 6, 9)] == [
        FOLLOW[name](k) for k in (2, 6, 9)
    ]


ASKED = {
    "less": (lambda n: n < 7, 9),
    "less, the other way": (lambda n: n > 7, 9),
    "at most": (lambda n: n <= 6, 7),
    "at least": (lambda n: n >= 6, 5),
    "not equal": (lambda n: n == 7, 7),
    "equal": (lambda n: n == 6, 5),
    "in": (lambda n: n in (7, 8), 8),
    "shape": (lambda n: (n, 3) == (7, 3), 7),
    "smaller": (lambda n: min(n, 7) == n, 9),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_is_found_out_by_comparing_is_a_condition(at_six, name):
    ask, other = ASKED[name]
    assert ask(recorded_size(N)) is ask(6)
    assert not at_six.pinned
    assert at_six.hold({VARIABLE: 6})
    assert not at_six.hold({VARIABLE: other})


def test_what_all_sizes_have_in_common_is_no_condition(at_six):
    n = recorded_size(N)
    assert n > 0
    assert n != 1
    assert n == recorded_size(N)
    assert n != "six"
    assert n is not None
    assert n != None  # noqa: E711  (what programs write)
    assert n
    assert not at_six.conditions


NEEDED = {
    "index": lambda n: list(range(9))[n],
    "range": lambda n: list(range(n)),
    "int": int,
    "float": float,
    "hash": lambda n: {6: "six"}[n],
    "text": lambda n: f"{n:03}" + str(n) + repr(n),
    "percent": lambda n: "%d" % n,  # noqa: UP031  (what programs write)
    "bits": lambda n: (n & 3, 1 << n, ~n, n ^ 1),
    "attribute": lambda n: n.bit_length(),
    "root": math.sqrt,
    "power": lambda n: 2**n,
    "sequence": lambda n: ("a" * n, [0] * n),
    "fraction": lambda n: Fraction(1, 3) * n,
    "numpy": lambda n: (np.float32(2) * n, np.zeros(n).tolist()),
    "float comparison": lambda n: n < 6.5,
    "pickle": lambda n: pickle.loads(pickle.dumps(n)),
}


@pytest.mark.parametrize("name", NEEDED)
def test_who_needs_the_number_gets_it_and_it_is_the_only_one(at_six, name):
    assert NEEDED[name](recorded_size(N)) == NEEDED[name](6)
    assert at_six.pinned == {VARIABLE}
    assert at_six.hold({VARIABLE: 6})
    assert not at_six.hold({VARIABLE: 5})


def test_division_by_zero_is_python_s_error(at_six):
    n = recorded_size(N)
    for divide in (lambda: n // 0, lambda: n % 0, lambda: n / 0.0):
        with pytest.raises(ZeroDivisionError):
            divide()


def test_it_has_the_attributes_of_an_int_and_no_others(at_six):
    assert not hasattr(recorded_size(N), "shape")
    assert not at_six.conditions


def test_what_is_no_integer_is_a_number_of_the_graph(at_six):
    graph = RecordingGraph("test", at_six.sizes)
    with graph:
        n = recorded_size(N)
        for made, expected in ((1 / n, 1 / 6), (n / 4, 1.5), (n**0.5, 6**0.5), (n * 0.5, 3.0)):
            assert type(made) is RecordedNumber
            assert graph.tracer.evaluate(made.value).item() == expected
        number = wf.tensor([2.0]).sum().item()
        for made in (number * n, n * number):
            assert type(made) is RecordedNumber
            assert graph.tracer.evaluate(made.value).item() == 12.0
        assert type(wf.tensor([2.0]) * n) is not RecordedNumber


def test_attributes_of_operators_have_sizes_as_graphs_do():
    n = recorded_size(N)
    assert recorded_shape((N, 3))[1] == 3
    (made, three), dtype = plain_attrs(((n, 3), "float32"))
    assert not is_recorded_size(made)
    assert (made, three, dtype) == (N, 3, "float32")
