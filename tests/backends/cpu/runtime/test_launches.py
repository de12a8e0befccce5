"""Lists of launches: copies of rows, and programs between them."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.backends.cpu.runtime import launches
from weft.backends.cpu.runtime.launches import LaunchList, address_of, array_at
from weft.core.errors import GraphError
from weft.graph.call import ProgramCall
from weft.graph.frontend import placeholder
from weft.graph.run import Program

pytestmark = pytest.mark.skipif(not launches.launches_work(), reason="needs native calls")
WIDTHS = (1, 7, 8, 19)


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return np.dtype(request.param)


def numbers(shape, dtype):
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_are_gathered_and_the_last_one_fills_up(dtype, width):
    source, rows = numbers((6, width), dtype), np.array([4, 0, 4])
    target = np.zeros((5, width), dtype)
    nbytes = width * dtype.itemsize
    todo = LaunchList()
    todo.gather(address_of(target), address_of(source), address_of(rows), 3, nbytes)
    end = address_of(target) + 3 * nbytes
    todo.fill(end, end - nbytes, 2, nbytes)
    assert todo
    assert todo.run()
    assert not todo
    np.testing.assert_array_equal(target, source[[4, 0, 4, 4, 4]])


@pytest.mark.parametrize("width", WIDTHS)
def test_lines_of_rows_are_added_at_once(dtype, width):
    rows, given = np.array([[4, 0], [4, 4]]), numbers((2, 2, width), dtype)
    target = numbers((6, width), dtype)
    expected = target.copy()
    np.add.at(expected, rows.ravel(), given.reshape(-1, width))
    launches.add_rows(target, rows, given)
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_are_put_where_they_belong(dtype, width):
    source, rows, target = numbers((3, width), dtype), np.array([4, 0, 2]), numbers((6, 1), dtype)
    target = np.repeat(target, width, 1)
    expected = target.copy()
    expected[rows] = source
    todo = LaunchList()
    nbytes = width * dtype.itemsize
    todo.scatter(address_of(target), address_of(source), address_of(rows), 3, nbytes)
    todo.run()
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_are_added_as_often_as_they_are_named(dtype, width):
    source, rows, target = numbers((3, width), dtype), np.array([4, 0, 4]), numbers((6, 1), dtype)
    target = np.repeat(target, width, 1)
    expected, letter = target.copy(), dtype.char
    np.add.at(expected, rows, source)
    todo = LaunchList()
    where = address_of(target), address_of(source)
    todo.scatter_add(letter, *where, address_of(rows), 3, width)
    todo.run()
    np.testing.assert_array_equal(target, expected)
    todo.add(letter, *where, 3 * width)
    todo.run()
    expected[:3] += source
    np.testing.assert_array_equal(target, expected)
    todo.copy(*where, source.nbytes)
    todo.run()
    np.testing.assert_array_equal(target[:3], source)


def program():
    """Return tanh(x) @ w, x of 3 rows, with its code."""
    with wf.Graph("cell") as graph:
        x, w = placeholder((3, 40), wf.float32), placeholder((40, 40), wf.float32)
        y = wf.tanh(x) @ w
    call = ProgramCall(Program(graph, [y.value], [x.value, w.value]), "cell")
    return call.code_for(((3, 40), (40, 40)))


def test_a_program_runs_on_addresses():
    code = program()
    native = code.native
    x, w = numbers((3, 40), np.float32), numbers((40, 40), np.float32)
    y = np.empty((3, 40), np.float32)
    given = [address_of((x, w)[i]) for i in native.feeds]
    todo = LaunchList()
    todo.program(native, [*given, address_of(y)])
    todo.copy(address_of(x), address_of(y), y.nbytes)
    todo.program(native, [*given, address_of(y)])
    before = x.copy()
    todo.run()
    (first,) = code.run([before, w])
    (second,) = code.run([first, w])
    np.testing.assert_array_equal(x, first)
    np.testing.assert_array_equal(y, second)


def test_nobody_enters_a_program_twice():
    code = program()
    todo = LaunchList()
    todo.program(code.native, [])
    with code._run_lock.inside(), pytest.raises(GraphError, match="inside its own run"):
        todo.run()


def test_memory_as_an_array():
    x = numbers((2, 3), np.float64)
    found = array_at(address_of(x), (2, 3), x.dtype)
    np.testing.assert_array_equal(found, x)
    x[0, 0] = 7
    assert found[0, 0] == 7
