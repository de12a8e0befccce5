"""Movement and indexing inside loops."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.programs.running import build, check_native

SIZES = (1, 3, 7, 17, 1003)
F = wf.nn.functional


def numbers(*shape, dtype=np.float32):
    return (np.random.default_rng(sum(shape)).normal(size=shape) * 4).astype(dtype)


def indices(*shape, high, low=0, dtype=np.int64):
    return np.random.default_rng(sum(shape)).integers(low, high, shape).astype(dtype)


MOVES = {
    "flip": lambda x: wf.flip(x, 1) * 2.0,
    "roll": lambda x: wf.roll(x, (1, -2), (0, 1)) + 1.0,
    "roll of one axis": lambda x: wf.roll(x, 5, 1),
    "pad": lambda x: F.pad(x, (2, 1, 0, 3), value=7.0) * 2.0,
    "reflect": lambda x: wf.pad(x, 1, mode="edge") - 1.0,
    "circular": lambda x: wf.pad(x, ((2, 2), (1, 0)), mode="circular"),
    "triangles": lambda x: (wf.tril(x), wf.triu(x, 1) * 3.0),
    "diagonal": lambda x: wf.diagonal(x) * 2.0,
    "matrix of a diagonal": lambda x: wf.diag_embed(x[0] * 2.0),
    "split": lambda x: [part * 2.0 for part in wf.tensor_split(x, 3, 1)],
    "unbind": lambda x: [row + 1.0 for row in wf.unbind(x[:2])],
    "strided": lambda x: x[::-1, ::2] * 2.0,
    "tile": lambda x: wf.tile(x, (2, 3)) * 2.0,
    "windows": lambda x: wf.sliding_windows(x, 0, 1) * 2.0,
    "set": lambda x: wf.index_set(x, (slice(None, None, 2), 0), 5.0),
    "cast": lambda x: wf.flip(x, 0).to(wf.float64),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_moves(move, size):
    check_native(move, numbers(4, size))


def test_gradients_of_slices_add_up_in_one_kernel():
    """Adjoints of slices are loads that are guarded, so that their sum is a single loop."""

    def function(x):
        y = (x[1:] * x[:-1]).sum() + (x[::2] ** 2).sum()
        return wf.gradients(y, x)

    x = numbers(17)
    check_native(function, x, tolerance=1e-6)
    graph, fetches, feeds = build(function, x)
    counts = wf.Session(graph).executable(fetches, feeds).stats()["kernels"]
    assert counts == {"row": 2}  # the products, which have another size, and all the rest


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.int8])
@pytest.mark.parametrize("columns", SIZES)
def test_embedding(columns, dtype):
    check_native(
        lambda w, i: F.embedding(i, w) * 2.0,
        numbers(50, columns),
        indices(6, 5, high=50, dtype=dtype),
    )


@pytest.mark.parametrize("axis", [0, 1, 2, None])
def test_take(axis):
    x = numbers(5, 7, 9)
    size = x.size if axis is None else x.shape[axis]
    check_native(lambda x, i: wf.take(x, i, axis), x, indices(3, 4, low=-size, high=size))


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("width", [5, 200])
def test_gather_with_computed_indices(dim, width):
    x = numbers(9, width)
    index = indices(4, 3, low=0, high=4)
    check_native(lambda x, i: wf.gather(x, dim, (i * 2 - 3) % 9 % width), x, index)


def test_index_arrays():
    x, i, j = numbers(4, 5, 6), indices(3, 1, low=-4, high=4), indices(7, high=6)
    check_native(lambda x, i, j: (x[i, :, j], x[:, 2, j], x[None, i, 1:3]), x, i, j)


def test_one_hot_and_triangular_mask():
    x, i = numbers(3, 5), indices(3, high=5)
    check_native(lambda x, i: (wf.one_hot(i, 5), x * wf.one_hot(i, 5).to(wf.float32)), x, i)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_nothing(shape):
    check_native(lambda x: (wf.flip(x, 0) * 2.0, wf.roll(x, 1, 1), wf.tril(x)), numbers(*shape))


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint16", "uint32", "uint64", "float16"])
def test_narrow_and_unsigned_numbers(dtype):
    x = (np.arange(51).reshape(3, 17) * 5).astype(dtype)
    check_native(lambda x: (wf.flip(x, 1) + x, wf.maximum(x, wf.roll(x, 1, 0)), x * x - x), x)


def test_halves_are_computed_in_float32_and_rounded():
    x = numbers(1003, dtype=np.float16)
    check_native(lambda x: (wf.exp(x), x * x + x, wf.sum(x)), x, tolerance=2e-3)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_part_of_halves_is_replaced(dtype):
    x, y = numbers(3, 17, dtype=np.float16), numbers(17, dtype=dtype)
    check_native(lambda x, y: wf.index_set(x, 1, y), x, y)
    check_native(lambda x, y: wf.index_set(x, (slice(None), slice(2, 7)), y[:5]), x, y)


@pytest.mark.parametrize("axis", [0, 1])
def test_bfloat16_is_joined(axis):
    pytest.importorskip("ml_dtypes")
    x, y = (numbers(3, 17).astype(wf.bfloat16) for _ in range(2))
    with wf.Graph() as graph:
        feeds = {wf.placeholder(a.shape, wf.bfloat16): a for a in (x, y)}
        fetches = [wf.concatenate([*feeds], axis), wf.stack([*feeds], axis)]
    found = wf.Session(graph).run(fetches, feeds)
    for got, join in zip(found, (np.concatenate, np.stack), strict=True):
        np.testing.assert_array_equal(got, join([x, y], axis))


def test_float64_to_halves_is_rounded_once():
    x = np.array([1.0 + 2.0**-11 + 2.0**-40, 65519.999999, 65520.0, 1e-8, np.inf, np.nan, -2e300])
    check_native(lambda x: x.to(wf.float16), x)


@pytest.mark.parametrize("index", [[0, 50], [-51, 0], [10**12, 0]])
def test_an_index_out_of_range_changes_nothing(index):
    """The run is given up before any state is written, and the error is the interpreter's."""
    table = wf.tensor(numbers(50, 3))
    before = table.numpy().copy()
    with wf.Graph() as graph:
        i = wf.placeholder((2,), wf.int64, name="i")
        train = table.assign(table * 2.0 + wf.take(table, i, 0).sum())
    session = wf.Session(graph)
    with pytest.raises(IndexError, match="axis 0 of size 50"):
        session.run(train, {i: np.array(index)})
    np.testing.assert_array_equal(table.numpy(), before)
    session.run(train, {i: np.array([1, -1])})
    np.testing.assert_allclose(table.numpy(), before * 2 + before[[1, -1]].sum(), atol=1e-4)


def test_a_negative_row_of_an_embedding_is_an_error():
    graph, fetches, feeds = build(F.embedding, np.array([0, -1]), numbers(4, 2))
    with pytest.raises(IndexError, match=r"use 0\.\.3"):
        wf.Session(graph).run(fetches, feeds)


def test_states_are_written_where_they_are_read_only_at_their_own_places():
    state = wf.tensor(numbers(3, 3))
    before = state.numpy().copy()
    with wf.Graph() as graph:
        update = state.assign(state.mT * 2.0)
    wf.Session(graph).run(update)
    np.testing.assert_array_equal(state.numpy(), before.T * 2)
    with wf.Graph() as graph:
        update = state.assign(wf.flip(state, 0) + 1.0)
    wf.Session(graph).run(update)
    np.testing.assert_array_equal(state.numpy(), (before.T * 2)[::-1] + 1)


POOLS = {
    "max": lambda x: F.max_pool2d(x, 2),
    "max, padded": lambda x: F.max_pool2d(x, 3, stride=2, padding=1),
    "max, dilated": lambda x: F.max_pool2d(x, 2, stride=1, dilation=2),
    "average": lambda x: F.avg_pool2d(x, 3, stride=1, padding=1),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
    "global": lambda x: F.adaptive_avg_pool2d(x, 1),
    "adaptive max": lambda x: F.adaptive_max_pool2d(x, (3, 4)),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "nearest": lambda x: F.interpolate(x, size=(5, 13), mode="nearest"),
}


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_windows_and_their_gradients(pool):
    def function(x):
        y = pool(x)
        return y, wf.gradients((y * y).sum(), x)

    check_native(function, numbers(2, 3, 7, 9), tolerance=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8])
def test_padding_never_wins(dtype):
    x = (numbers(1, 2, 5, 7) * 3 - 40).astype(np.int32).astype(dtype)
    check_native(lambda x: F.max_pool2d(x, 3, stride=2, padding=1, return_indices=True), x)
    lowest = np.full((1, 1, 4, 4), -np.inf if dtype is np.float32 else np.iinfo(dtype).min, dtype)
    check_native(lambda x: F.max_pool2d(x, 3, padding=1, return_indices=True), lowest)


def test_maxima_of_windows_with_nan_and_ties():
    x = np.zeros((1, 1, 4, 6), np.float32)
    x[0, 0, 1, 1], x[0, 0, 3, 5], x[0, 0, 2, 2] = np.nan, -np.inf, np.inf
    check_native(lambda x: F.max_pool2d(x, 2, return_indices=True), x)


def test_indices_inside_loops():
    """A step that meets an index out of range ends the run, and no state is written."""
    table, total = wf.tensor(numbers(5, 3)), wf.tensor(np.zeros(3, np.float32))
    with wf.Graph() as graph:
        i = wf.placeholder((4,), wf.int64)
        carry, rows = wf.scan(lambda c, k: (c + wf.take(table, k, 0), c * 2.0), wf.zeros(3), i)
        update = total.assign(total + carry)
    session = wf.Session(graph)
    index = np.array([4, 0, -1, 2])
    expected = wf.Session(graph, compiled=False).run([carry, rows], {i: index})
    for a, b in zip(session.run([carry, rows], {i: index}), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    with pytest.raises(IndexError, match="axis 0 of size 5"):
        session.run([rows, update], {i: np.array([0, 1, 5, 2])})
    np.testing.assert_array_equal(total.numpy(), np.zeros(3))
    session.run([rows, update], {i: index})
    np.testing.assert_allclose(total.numpy(), expected[0], rtol=1e-6)
