"""Streams and their stages."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import pytest

import weft as wf
from weft.core.errors import ArgumentError, ArgumentTypeError
from weft.data import IterableDataset, IterableSource, TensorDataset, shard
from weft.data.errors import WorkerError


def stream(n: int) -> IterableDataset:
    return IterableSource(range(n))


def test_stages() -> None:
    assert list(stream(6).filter(lambda x: x % 2).map(str)) == ["1", "3", "5"]
    assert list(stream(5).batch(2)) == [[0, 1], [2, 3], [4]]
    assert list(stream(5).batch(2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(stream(5).skip(1).take(2)) == [1, 2]
    assert list(stream(2).repeat(2)) == [0, 1, 0, 1]
    assert list(stream(2) + stream(1)) == [0, 1, 0]
    assert list(stream(2).concat(stream(1), stream(1))) == [0, 1, 0, 0]
    assert list(stream(2).zip("abc")) == [(0, "a"), (1, "b")]
    assert list(stream(1).map(lambda i: (i, i)).map(str, key=0)) == [("0", 0)]
    assert list(stream(0).repeat()) == []
    assert list(islice(stream(2).repeat(), 5)) == [0, 1, 0, 1, 0]


def test_streams_may_be_endless() -> None:
    endless = IterableSource(count)
    assert list(endless.map(lambda x: x * x).take(4)) == [0, 1, 4, 9]
    assert len(list(endless.shuffle(10).take(5))) == 5


def test_shuffle_is_a_permutation_within_its_buffer() -> None:
    for size in (1, 3, 100):
        order = list(stream(50).shuffle(size))
        assert sorted(order) == list(range(50))
        assert all(value <= place + size for place, value in enumerate(order))
    assert list(stream(20).shuffle(1)) == list(range(20))


def test_shuffle_differs_between_iterations_and_follows_the_seed() -> None:
    data = stream(50).shuffle(20)
    wf.manual_seed(1)
    first, second = list(data), list(data)
    assert first != second
    wf.manual_seed(1)
    assert list(data) == first


def test_select_computes_only_what_is_kept() -> None:
    made: list[int] = []

    def make(i: int) -> int:
        made.append(i)
        return i

    assert list(stream(6).map(make).select(lambda place: place >= 4)) == [4, 5]
    assert made == [4, 5]
    kept = TensorDataset([1.0, 2.0, 3.0]).map(float).stream().select(lambda place: place == 1)
    assert list(kept) == [2.0]
    assert list(stream(6).filter(lambda x: x % 2).select(lambda p: p == 1)) == [3]


def test_prefetch_runs_ahead_and_raises_in_place() -> None:
    def numbers() -> Iterator[int]:
        yield 1
        yield 2
        raise LookupError("end of tape")

    ahead = iter(IterableSource(numbers).prefetch(1))
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(LookupError, match="end of tape"):
        next(ahead)


def test_prefetch_thread_ends_when_nobody_reads() -> None:
    before = threading.active_count()
    ahead = iter(IterableSource(count).prefetch(2))
    assert next(ahead) == 0
    del ahead
    for _ in range(100):
        if threading.active_count() == before:
            break
        time.sleep(0.02)
    assert threading.active_count() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # from Python 3.12 on
def test_prefetch_does_not_go_on_in_a_forked_child() -> None:
    """It would wait for ever, for a thread that is not there."""
    data = stream(50).prefetch(2)
    ahead = iter(data)
    assert next(ahead) == 0
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            with pytest.raises(WorkerError, match="begun before a fork"):
                next(ahead)
            os._exit(0 if list(data) == [*range(50)] else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert list(ahead) == [*range(1, 50)]


def test_prefetch_can_be_iterated_twice() -> None:
    data = stream(5).prefetch(2)
    assert [*data, *data] == [*range(5)] * 2


def test_shard_outside_a_worker_is_everything() -> None:
    assert list(shard(range(3))) == [0, 1, 2]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: IterableSource(iter([1])), ArgumentTypeError, "only once"),
        (lambda: IterableSource(3), ArgumentTypeError, "a function or an iterable"),
        (lambda: stream(1).batch(0), ArgumentError, "at least 1"),
        (lambda: stream(1).shuffle(0), ArgumentError, "at least 1"),
        (lambda: stream(1).prefetch(0), ArgumentError, "at least 1"),
        (lambda: stream(1).take(-1), ArgumentError, "at least 0"),
        (lambda: stream(1).map(3), ArgumentTypeError, "callable"),
        (lambda: stream(1).filter(None), ArgumentTypeError, "callable"),
        (lambda: stream(1).concat([1]), ArgumentTypeError, "Received: list"),
        (
            lambda: stream(1) + IterableSource([1], shards_itself=True),
            ArgumentTypeError,
            "cannot be joined",
        ),
    ],
)
def test_bad_arguments(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_base_class_says_what_to_define() -> None:
    with pytest.raises(NotImplementedError, match="must define __iter__"):
        iter(IterableDataset())
