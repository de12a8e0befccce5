"""Kernels that share a region do not depend on one another."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from weft.lower.memory import Place
from weft.lower.schedule import Piece
from weft.lower.storage import Buffer, Window, contiguous
from weft.plan.threads import PARALLEL_FROM, arrange

SIZE = 1024


def views_at(*offsets):
    """Return buffers at offsets of the arena, as views with their places."""
    buffers = [Buffer("arena", (SIZE,), np.dtype(np.float32), f"b{i}") for i in range(len(offsets))]
    places = {b: Place(False, 0, o) for b, o in zip(buffers, offsets, strict=True)}
    return [contiguous(b, b.shape) for b in buffers], places


def piece(name, reads, writes, cost=PARALLEL_FROM, chunks=0):
    views = [*reads, *writes]
    written = frozenset(range(len(reads), len(views)))
    return Piece(SimpleNamespace(name=name), views, written, 100, chunks, cost)


def arranged(pieces, places, threads=2):
    regions = arrange(pieces, places, threads)
    return [sorted(p.name for p in region.pieces) for region in regions]


def test_what_reads_a_result_comes_later():
    (x, y, z), places = views_at(0, 4 * SIZE, 8 * SIZE)
    assert arranged([piece("a", [x], [y]), piece("b", [y], [z])], places) == [["a"], ["b"]]


def test_what_reads_the_same_shares_a_region():
    (x, y, z), places = views_at(0, 4 * SIZE, 8 * SIZE)
    assert arranged([piece("a", [x], [y]), piece("b", [x], [z])], places) == [["a", "b"]]


def test_memory_is_not_written_while_it_is_read():
    """Two buffers that overlap in the arena are one for this purpose."""
    (x, y, z), places = views_at(0, 4 * SIZE, 2 * SIZE)
    assert arranged([piece("a", [x], [y]), piece("b", [], [z])], places) == [["a"], ["b"]]


def test_the_word_of_a_window_is_not_written_while_the_window_is_read():
    (x, y, word, z), places = views_at(0, 4 * SIZE, 8 * SIZE, 8 * SIZE)
    window = Window(x.buffer, 0, word.buffer, 1)
    moving = contiguous(Buffer("window", (1,), x.dtype, "w", window=window), (1,))
    assert arranged([piece("a", [moving], [y]), piece("b", [], [z])], places) == [["a"], ["b"]]


def test_a_later_piece_moves_to_the_region_of_its_peers():
    (x, y, z, w), places = views_at(0, 4 * SIZE, 8 * SIZE, 12 * SIZE)
    pieces = [piece("a", [x], [y]), piece("b", [y], [z]), piece("c", [x], [w])]
    assert arranged(pieces, places) == [["a", "c"], ["b"]]


def test_small_work_stays_on_one_thread():
    (x, y), places = views_at(0, 4 * SIZE)
    (region,) = arrange([piece("a", [x], [y], PARALLEL_FROM / 2)], places, 2)
    assert not region.parallel
    assert region.pieces[0].chunks == 1
    (alone,) = arrange([piece("a", [x], [y], 1e9)], places, 1)
    assert not alone.parallel


def test_large_work_is_divided_and_the_longest_chunk_comes_first():
    (x, y, z), places = views_at(0, 4 * SIZE, 8 * SIZE)
    small, large = piece("small", [x], [y], 1e4), piece("large", [x], [z], 1e6, chunks=2)
    (region,) = arrange([small, large], places, 2)
    assert region.parallel
    assert [p.name for p in region.pieces] == ["large", "small"]
    assert [p.chunks for p in region.pieces] == [2, 1]
