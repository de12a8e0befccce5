"""Batches made ahead by a thread: the same ones, at the same place, and nothing left behind."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentError
from weft.data import DataLoader, Dataset, IterableDataset, TensorDataset, WorkerError, transforms
from weft.data.ahead import is_of_weft
from weft.train.feed import Feed

IMAGES = np.arange(11 * 16, dtype=np.float32).reshape(11, 1, 4, 4) / 176


class Numbers(IterableDataset):
    """A stream."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(11))


class Watched(Dataset):
    """Items that say who makes them; the seventh fails if so asked."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.seen: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return 11

    def __getitem__(self, index: int) -> int:
        self.seen.append((index, threading.current_thread().name))
        if self.fails and index == 7:
            raise LookupError("no such row")
        return index


def cropped() -> Dataset:
    return TensorDataset(IMAGES, np.arange(11)).map(transforms.RandomCrop(3), key=0)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "weft-data"]


def plain(batch: Any) -> Any:
    return [part.tolist() for part in batch] if isinstance(batch, list | tuple) else batch.tolist()


@pytest.mark.parametrize("make", [cropped, Numbers, Watched])
@pytest.mark.parametrize("prefetch", [1, 3, 30])
def test_batches_and_positions_are_the_same(make: Any, prefetch: int) -> None:
    here, ahead = (DataLoader(make(), 2, seed=5, prefetch=n) for n in (None, prefetch))
    for _ in range(2):
        for a, b in zip(here, ahead, strict=True):
            assert plain(a) == plain(b)
            assert here.state_dict() == ahead.state_dict()
        assert not threads()


def test_a_thread_makes_the_next_batch_while_this_one_is_used() -> None:
    data = Watched()
    iterator = iter(DataLoader(data, 2, prefetch=2))
    next(iterator)
    for _ in range(1000):
        if len(data.seen) >= 6:
            break
        time.sleep(0.001)
    assert {name for _, name in data.seen} == {"weft-data"}
    assert [index for index, _ in data.seen] == list(range(6))  # two batches ahead


@pytest.mark.parametrize("at", range(7))
def test_resumed_and_paused_iterations_go_on(at: int) -> None:
    whole = [plain(batch) for batch in DataLoader(cropped(), 2, shuffle=True, seed=5)]
    first, second = (DataLoader(cropped(), 2, shuffle=True, seed=5, prefetch=2) for _ in range(2))
    iterator = iter(first)
    begun = [plain(next(iterator)) for _ in range(min(at, 6))]
    second.load_state_dict(first.state_dict())
    iterator.pause()  # type: ignore[attr-defined]  # what a loader returns has it
    assert not threads()
    assert begun + [plain(batch) for batch in iterator] == whole
    assert begun + [plain(batch) for batch in second] == whole


def test_errors_come_when_their_batch_is_asked_for() -> None:
    loader = DataLoader(Watched(fails=True), 2, prefetch=4)
    iterator = iter(loader)
    assert [plain(next(iterator)) for _ in range(3)] == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(LookupError, match="no such row") as caught:
        next(iterator)
    assert "while making item 7 (batch 3 of epoch 0)" in " ".join(caught.value.__notes__)
    assert "__getitem__" in [entry.name for entry in caught.traceback]
    assert not threads()
    assert loader.state_dict()["batch"] == 3
    with pytest.raises(StopIteration):
        next(iterator)


def test_break_ends_the_thread() -> None:
    for _ in DataLoader(Watched(), 2, prefetch=2):
        assert threads()
        break
    gc.collect()
    assert not threads()


def test_batches_are_made_in_the_context_of_the_loop() -> None:
    class Modes(Watched):
        def __getitem__(self, index: int) -> Any:
            return wf.is_grad_enabled()

    with wf.no_grad():
        assert not any(batch.any() for batch in DataLoader(Modes(), 2, prefetch=2))
    assert all(batch.all() for batch in DataLoader(Modes(), 2, prefetch=2))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_iteration_does_not_go_on_in_a_fork() -> None:
    iterator = iter(DataLoader(Watched(), 2, prefetch=2))
    next(iterator)
    child = os.fork()
    if not child:
        code = 1
        try:
            next(iterator)
        except WorkerError:
            code = 0
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(list(iterator)) == 5


def test_workers_make_batches_ahead_themselves() -> None:
    with pytest.raises(ArgumentError, match="prefetch is for num_workers=0"):
        DataLoader(Watched(), 2, num_workers=1, prefetch=2)


# -- faces -----------------------------------------------------------------------------------------


def test_what_weft_itself_makes() -> None:
    data = TensorDataset(IMAGES, np.arange(11))
    flips = transforms.Compose([transforms.RandomCrop(3), transforms.RandomHorizontalFlip()])
    assert is_of_weft(data.map(flips, key=0))
    assert not is_of_weft(data.map(transforms.Compose([flips, lambda image: image]), key=0))
    assert not is_of_weft(Watched())


@pytest.mark.parametrize(
    ("make", "prefetch", "ahead"),
    [
        (cropped, None, True),
        (lambda: cropped().subset(range(8)), None, True),
        (cropped, 0, False),
        (lambda: TensorDataset(IMAGES), None, False),  # taken at once: not worth a thread
        (Watched, None, False),  # may draw from a global generator
        (Watched, 2, True),
    ],
)
def test_feeds_make_batches_ahead_where_it_is_safe(make: Any, prefetch: Any, ahead: bool) -> None:
    feed = Feed(DataLoader(make(), 2, seed=5, prefetch=prefetch))
    feed.draw()
    assert bool(threads()) == ahead
    feed.pause()
    assert not threads()
