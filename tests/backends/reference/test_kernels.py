"""What each kind of kernel means, on kernels written by hand."""

from __future__ import annotations

import numpy as np
import pytest

from weft.backends.reference.kernels import run_kernels
from weft.backends.reference.memory import Memory
from weft.core.dtype import float32, float64, int64, uint32, uint64
from weft.core.rng import make_state, philox_bits
from weft.core.scalar.builder import ScalarBuilder
from weft.lower.kernels import (
    BranchKernel,
    ColumnKernel,
    GemmKernel,
    LoopKernel,
    Operand,
    Output,
    Prologue,
    RowKernel,
    ScanKernel,
    ScatterKernel,
    Windows,
)
from weft.lower.scans import ScanBuilder
from weft.lower.storage import Buffer, View, contiguous, window


class Lab:
    """Memory with arrays in it, and kernels that run on it."""

    def __init__(self):
        self.memory = Memory()
        self.b = ScalarBuilder()

    def put(self, array):
        """Return the view of an array in memory."""
        array = np.array(array)
        buffer = Buffer("arena", array.shape, array.dtype, "x")
        self.memory.put(buffer, array)
        return contiguous(buffer, array.shape)

    def room(self, *shape, dtype=float64):
        return self.put(np.zeros(shape, dtype))

    def run(self, *kernels):
        run_kernels(kernels, self.memory)

    def __getitem__(self, view):
        return self.memory.view(view).tolist()


@pytest.fixture
def lab():
    return Lab()


def whole(view):
    return Operand(view, view.strides)


# -- rows ------------------------------------------------------------------------------------------


def test_rows_are_reduced_and_elements_follow(lab):
    x, y, total = lab.put([[1.0, 2.0], [3.0, 5.0]]), lab.room(2, 2), lab.room(2)
    load = lab.b.load(0, float64)
    reduced = lab.b.reduce("sum", load)
    outputs = (Output(1, load / reduced), Output(2, reduced))
    operands = (whole(x), whole(y), Operand(total, (1, 0)))
    lab.run(RowKernel("k", (2, 2), operands, outputs))
    assert lab[total] == [3, 8]
    assert lab[y] == [[1 / 3, 2 / 3], [3 / 8, 5 / 8]]


def test_an_output_may_lie_where_an_operand_does(lab):
    x = lab.put([1.0, 2.0, 3.0])
    reverse = Operand(View(x.buffer, (3,), (-1,), 2), (-1,))
    value = lab.b.load(0, float64) + lab.b.load(1, float64)
    lab.run(RowKernel("k", (3,), (whole(x), reverse), (Output(0, value),)))
    assert lab[x] == [4, 4, 4]


def test_all_is_loaded_before_anything_is_stored(lab):
    x, y = lab.put([1.0, 2.0]), lab.put([3.0, 4.0])
    outputs = (Output(0, lab.b.load(1, float64)), Output(1, lab.b.load(0, float64)))
    lab.run(RowKernel("k", (2,), (whole(x), whole(y)), outputs))
    assert (lab[x], lab[y]) == ([3, 4], [1, 2])


def test_rows_are_combined_in_blocks(lab):
    x, sums = lab.put(np.arange(10.0).reshape(5, 2)), lab.room(3, 2)
    output = Output(1, lab.b.load(0, float64), "sum")
    lab.run(RowKernel("k", (5, 2), (whole(x), Operand(sums, (0, 1))), (output,), block=2))
    assert lab[sums] == [[2, 4], [10, 12], [8, 9]]


def test_empty_rows_give_what_changes_nothing(lab):
    x = lab.put(np.zeros((2, 0)))
    ways = ("sum", "prod", "max", "min")
    rooms = [lab.put([7.0, 7.0]) for _ in ways]
    outputs = tuple(
        Output(i + 1, lab.b.reduce(way, lab.b.load(0, float64))) for i, way in enumerate(ways)
    )
    operands = (whole(x), *(Operand(room, (1, 0)) for room in rooms))
    lab.run(RowKernel("k", (2, 0), operands, outputs))
    assert [lab[room][0] for room in rooms] == [0, 1, -np.inf, np.inf]


def test_elements_by_their_places(lab):
    """The places are 0, 10, 20, 30 of a row of 25: what a guard leaves out is not looked at."""
    x, y = lab.put(np.arange(25.0)), lab.room(4)
    offset = lab.b.iota(0)
    value = lab.b.load_at(0, float64, offset, offset < 25)
    operands = (Operand(x, (0,)), whole(y))
    lab.run(RowKernel("k", (4,), operands, (Output(1, value),), iotas=((10,),)))
    assert lab[y] == [0, 10, 20, 0]
    beyond = lab.b.load_at(0, float64, offset)
    with pytest.raises(IndexError, match="no element 0 or 30"):
        lab.run(RowKernel("k", (4,), operands, (Output(1, beyond),), iotas=((10,),)))


def test_no_view_leaves_its_buffer(lab):
    x, y = lab.put([1.0, 2.0]), lab.room(2)
    for strides, offset in (((2,), 0), ((1,), 1), ((-1,), 0)):
        operand = Operand(View(x.buffer, (2,), strides, offset), strides)
        kernel = RowKernel("k", (2,), (operand, whole(y)), (Output(1, lab.b.load(0, float64)),))
        with pytest.raises((TypeError, ValueError)):
            lab.run(kernel)


@pytest.mark.parametrize(
    ("wraps", "ignored", "expected", "flagged"),
    [
        (True, None, [0, 2, 2, 0, 0], 1),
        (False, None, [0, 2, 0, 0, 0], 1),
        (True, 7, [0, 2, 2, 0, -1], 1),
    ],
)
def test_indices_are_checked(lab, wraps, ignored, expected, flagged):
    index, flag, y = lab.put([0, 2, -1, 3, 7]), lab.room(1, dtype=int64), lab.room(5, dtype=int64)
    value = lab.b.checked(lab.b.load(0, int64), 3, 1, wraps, ignored)
    operands = (whole(index), Operand(flag, (0,)), whole(y))
    lab.run(RowKernel("k", (5,), operands, (Output(2, value),), flag=flag))
    assert lab[y] == expected
    assert lab[flag] == [flagged]


@pytest.mark.parametrize("dtype", [uint32, uint64])
def test_random_lanes_are_those_of_the_generator(lab, dtype):
    key, counter = (5 << 64) | 3, 17
    state, y = lab.put(make_state(key, counter)), lab.room(21, dtype=dtype)
    words = tuple(lab.b.load_at(0, uint64, lab.b.constant(i, int64)) for i in range(3))
    value = lab.b.random(words, lab.b.iota(0), dtype)
    operands = (Operand(state, (0,)), whole(y))
    lab.run(RowKernel("k", (21,), operands, (Output(1, value),), iotas=((1,),)))
    assert lab[y] == philox_bits(key, counter, 24).view(dtype)[:21].tolist()


def test_halves_are_computed_in_single_precision(lab):
    x, y = lab.put(np.array([2049.0], np.float16)), lab.room(1, dtype=np.dtype(np.float16))
    load = lab.b.load(0, x.dtype)
    lab.run(RowKernel("k", (1,), (whole(x), whole(y)), (Output(1, (load + load) - load),)))
    assert lab[y] == [2048]  # each step is rounded to a half


# -- columns, scatters, scans ----------------------------------------------------------------------


def test_columns_are_reduced_and_finished(lab):
    x, y = lab.put(np.arange(12.0).reshape(2, 3, 2)), lab.room(2, 2)
    load = lab.b.load(0, float64)
    finish = lab.b.reduce("max", load) * 10.0
    operands = (whole(x), Operand(y, (2, 0, 1)))
    reduced = (False, True, False)
    lab.run(ColumnKernel("k", (2, 3, 2), reduced, operands, Output(1, load), "max", finish=finish))
    assert lab[y] == [[40, 50], [100, 110]]


@pytest.mark.parametrize(
    ("way", "expected"),
    [("sum", [5, 1, 7]), ("set", [3, 1, 2]), ("max", [3, 1, 5]), ("min", [2, 1, 2])],
)
def test_values_go_to_computed_places_in_order(lab, way, expected):
    start = {"sum": 0.0, "set": 0.0, "max": -9.0, "min": 9.0}[way]
    places, values = lab.put([2, 0, 1, 0, 2]), lab.put([5.0, 2.0, 1.0, 3.0, 2.0])
    result = lab.put([start] * 3)
    operands = (whole(places), whole(values), Operand(result, (0,)))
    offset, value = lab.b.load(0, int64), lab.b.load(1, float64)
    lab.run(ScatterKernel("k", (5,), 0, operands, offset, value, way))
    assert lab[result] == expected


def test_no_value_goes_outside(lab):
    places, result = lab.put([3]), lab.room(3)
    operands = (whole(places), Operand(result, (0,)))
    one = lab.b.constant(1, float64)
    with pytest.raises(IndexError, match="no element 3"):
        lab.run(ScatterKernel("k", (1,), 0, operands, lab.b.load(0, int64), one, "sum"))


def test_a_scan_carries_values(lab):
    b = ScanBuilder()
    x, y = lab.put([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]), lab.room(3, 2)
    total = b.carry(100.0, float64)
    value = b.next(total, total + b.load(0, float64)) + b.cast(b.step(), float64)
    lab.run(ScanKernel("k", (3, 2), (whole(x), whole(y)), value, tuple(b.carried)))
    assert lab[y] == [[101, 110], [104, 131], [108, 162]]


# -- products --------------------------------------------------------------------------------------


def gemm(lab, x, y, out, **options):
    (m, k), n = x.shape[-2:], y.shape[-1]
    lab.run(GemmKernel("k", x.shape[:-2], m, n, k, x, y, out, **({"bias": None} | options)))


def test_products_with_a_bias(lab):
    x, y = lab.put([[[1.0, 2.0]], [[3.0, 4.0]]]), lab.put([[[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]] * 2)
    out, bias = lab.room(2, 1, 3), lab.put([10.0, 20.0, 30.0])
    gemm(lab, x, y, out, bias=bias)
    assert lab[out] == [[[11, 22, 34]], [[13, 24, 40]]]


def test_prologues_epilogues_and_rows_in_blocks(lab):
    x, scale = lab.put([[1.0], [2.0], [3.0]]), lab.put([[10.0]])
    y, out, more, sums = lab.put([[1.0, -1.0]]), lab.room(3, 2), lab.room(3, 2), lab.room(2, 2)
    b = lab.b
    x_from = Prologue(
        b.load(0, float64) * b.load(1, float64), (View(scale.buffer, (3, 1), (0, 0)),)
    )
    product = b.load(0, float64)
    relu = b.maximum(product, 0.0)
    outputs = (Output(0, relu), Output(1, product + 1.0), Output(2, relu, "sum"))
    gemm(lab, x, y, out, x_from=x_from, extras=(more, sums), outputs=outputs, block=2)
    assert lab[out] == [[10, 0], [20, 0], [30, 0]]
    assert lab[more] == [[11, -9], [21, -19], [31, -29]]
    assert lab[sums] == [[30, 0], [30, 0]]


def test_operands_in_windows(lab):
    """Rows are the taps of a filter, columns its places: a correlation of 2 taps, 2 apart."""
    image, taps = lab.put(np.arange(6.0)), lab.put([[1.0, 100.0]])
    table, out = lab.put([0, 2]), lab.room(1, 4)
    y = View(image.buffer, (2, 4), (0, 0))
    windows = Windows(View(table.buffer, (2, 4), (1, 0)), ((4, 1),))
    gemm(lab, taps, y, out, windows=windows)
    assert lab[out] == [[200, 301, 402, 503]]


def test_single_precision_stays_single(lab):
    x = lab.put(np.ones((1, 2), np.float32))
    out = lab.room(1, 1, dtype=float32)
    gemm(lab, x, lab.put(np.ones((2, 1), np.float32)), out)
    assert lab.memory.view(out).dtype == np.float32


# -- control flow ----------------------------------------------------------------------------------


def counted(lab, **options):
    """Return a loop that adds rows up: carries in two halves, each sum a row of a result."""
    xs, stacked = lab.put([1.0, 2.0, 3.0, 4.0]), lab.put([-1.0] * 4)
    index, half = (lab.room(dtype=int64).buffer for _ in range(2))
    room = lab.put([0.0, 0.0])

    def row(view):
        return window(View(view.buffer, (), ()), index, 1)

    old = window(View(room.buffer, (), ()), half, 1)
    new = window(View(room.buffer, (), (), 1), half, -1)
    value = lab.b.load(0, float64) + lab.b.load(1, float64)
    operands = tuple(Operand(view, (0,)) for view in (old, row(xs), new, row(stacked)))
    body = RowKernel("body", (1,), operands, (Output(2, value), Output(3, value)))
    return LoopKernel(
        "k", index, half, **({"length": 4, "reverse": False, "body": (body,)} | options)
    ), stacked


def test_loops_move_windows(lab):
    loop, stacked = counted(lab)
    lab.run(loop)
    assert lab[stacked] == [1, 3, 6, 10]


def test_loops_run_backwards(lab):
    loop, stacked = counted(lab, reverse=True)
    lab.run(loop)
    assert lab[stacked] == [10, 9, 7, 4]


def test_loops_stop_when_the_body_says_so(lab):
    stops = lab.put(True)
    loop, stacked = counted(lab, stops=stops)
    lab.run(loop)
    assert lab[stacked] == [1, -1, -1, -1]


def test_loops_end_when_the_test_fails(lab):
    loop, stacked = counted(lab, length=None, holds=lab.put(False))
    lab.run(loop)
    assert lab[stacked] == [-1, -1, -1, -1]


@pytest.mark.parametrize("chosen", [True, False])
def test_branches(lab, chosen):
    y = lab.room(1)

    def store(number):
        output = Output(0, lab.b.constant(number, float64))
        return (RowKernel("k", (1,), (whole(y),), (output,)),)

    lab.run(BranchKernel("k", lab.put(chosen), store(1), store(2), (y,)))
    assert lab[y] == [1 if chosen else 2]
