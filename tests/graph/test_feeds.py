"""Feeds: cast within a kind where the values fit, refused with advice otherwise."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf

FLOATS = ["float16", "float32", "float64", "bfloat16"]
INTEGERS = ["uint8", "int32", "int64"]
WAYS = ["interpreted", "compiled", "function", "graph"]


def runner(dtype, way):
    """Return what doubles three numbers of a dtype in one of the ways in which code is run."""
    if way == "function":
        double = wf.compile(lambda x: x + x, wf.zeros(3, dtype=dtype))
        return lambda given: double(given).numpy()
    with wf.Graph() as graph:
        x = wf.placeholder((3,), dtype, name="x")
        y = x + x
    if way == "graph":
        double = wf.compile(graph, fetches=y)
        return double
    session = wf.Session(graph, compiled=way == "compiled")
    return lambda given: session.run(y, {x: given})


def kinds(*names):
    return [(a, b) for a in names for b in names if a != b]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("given", "wanted"), kinds(*FLOATS) + kinds(*INTEGERS))
def test_feeds_are_cast_within_a_kind(way, given, wanted):
    given, wanted = wf.zeros(1, dtype=given).dtype, wf.zeros(1, dtype=wanted).dtype
    numbers = [1.0 / 3, 2.5, 100.25] if given.name in FLOATS else [1, 2, 60]
    array = np.array(numbers).astype(given)
    run = runner(wanted, way)
    expected = array.astype(wanted) + array.astype(wanted)
    for fed in (array, wf.tensor(array), array[::-1].copy()[::-1]):
        found = run(fed)
        assert found.dtype == wanted
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(run(array.astype(wanted)), expected)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("wanted", "given", "message"),
    [
        ("int8", np.array([1, -129, 3]), r"x must be fed with int8\[3\]. Received: -129, which"),
        ("uint8", np.array([1, 256, 3]), r"Received: 256, which does not fit in uint8; clip"),
        ("int64", np.array([1, 2**63, 3], np.uint64), r"Received: 9223372036854775808, which"),
        ("uint64", [1, -2, 3], r"Received: -2, which does not fit in uint64"),
        ("float32", np.array([1.0, -1e39, 3.0]), r"Received: -1e\+39, which does not fit in float"),
        ("float16", [1.0, 70000, 3], r"Received: 70000.0, which does not fit in float16"),
        ("float16", [1, 70000, 3], r"Received: 70000, which does not fit in float16"),
        ("bfloat16", np.array([1.0, 2.0, 3.4e38], "f"), r"which does not fit in bfloat16"),
        ("int64", np.ones(3, "f"), r"dtype float32; say how .* np.round\(value\).astype\('int64'"),
        ("int64", [1.5, 2.0, 3.0], r"Received: \[1.5, 2.0, 3.0\], which is float32; say how"),
        ("int32", np.ones(3, bool), r"Received: dtype bool; say how"),
        ("float32", np.ones(3, int), r"dtype int64; convert it, e.g. value.astype\('float32'\)"),
        ("float32", np.ones(3, bool), r"Received: dtype bool; convert it"),
        ("float32", [True, False, True], r"which is bool; convert it"),
        ("float32", np.ones(3, complex), r"Received: dtype complex128; convert it"),
        ("bool", np.ones(3, int), r"Received: dtype int64; say which values are true, e.g. value"),
        ("bool", [1, 0, 1], r"Received: \[1, 0, 1\], which is int64; say which values"),
    ],
)
def test_feeds_that_do_not_fit(way, wanted, given, message):
    run = runner(wanted, way)
    with pytest.raises(TypeError, match=message):
        run(given)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_infinite_already_fits(way):
    found = runner("float16", way)(np.array([np.inf, -np.inf, np.nan]))
    np.testing.assert_array_equal(found, np.array([np.inf, -np.inf, np.nan], np.float16))


@pytest.mark.parametrize("way", WAYS)
def test_python_integers_are_fed_for_floats(way):
    assert runner("float32", way)([1, 2, 2**60]).tolist() == [2.0, 4.0, 2.0**61]
    assert runner("float64", way)([0.1, 2, 3]).tolist() == [0.2, 4.0, 6.0]  # all digits of 0.1


def test_empty_lists_have_no_kind():
    with wf.Graph() as graph:
        x = wf.placeholder((None,), wf.int64)
        total = x.sum()
    assert wf.Session(graph).run(total, {x: []}) == 0


def test_a_feed_that_is_cast_is_not_changed():
    given = np.array([1.0, 2.0, 3.0])
    runner("float32", "compiled")(given)
    assert given.dtype == np.float64
    np.testing.assert_array_equal(given, [1, 2, 3])


def test_examples_and_profiles_take_what_runs_take():
    with wf.Graph() as graph:
        x = wf.placeholder((None,), wf.float32)
        y = x * 2
    double = wf.compile(graph, np.ones(3), fetches=y)
    assert double(np.ones(3)).dtype == np.float32
    assert len(double.executable.profile([np.ones(3)], runs=1).runs) == 1
