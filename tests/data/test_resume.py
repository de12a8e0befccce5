"""Exact resume: a state taken at any batch continues with the batch that would have come next."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentError
from weft.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    ShardSampler,
    WeightedRandomSampler,
    item_generator,
    shard,
    transforms,
)
from weft.io import load_state, save_state


class Noisy(Dataset):
    def __len__(self) -> int:
        return 17

    def __getitem__(self, i: int) -> Any:
        # The second number is drawn behind the loader's back; in workers it is seeded as well.
        return i, float(wf.rand((), generator=item_generator()))


class Stream(IterableDataset):
    def __iter__(self) -> Iterator[Any]:
        for i in range(17):
            yield i, float(wf.rand((), generator=item_generator()))


class Sharded(IterableDataset):
    shards_itself = True

    def __iter__(self) -> Iterator[Any]:
        for file in shard(range(4)):
            for i in range(3 * file + 1):
                yield 100 * file + i, float(wf.rand((), generator=item_generator()))


class Restless:
    """A sampler that gives another order each time and knows no epochs."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(0)

    def __len__(self) -> int:
        return 17

    def __iter__(self) -> Iterator[int]:
        return iter(self.random.permutation(17).tolist())


class Stateful(Restless):
    """The same with a state, so that later epochs can be resumed too."""

    def state_dict(self) -> Any:
        return dict(self.random.bit_generator.state)

    def load_state_dict(self, state: Any) -> None:
        self.random.bit_generator.state = state


def plain(batch: Any) -> Any:
    return [part.tolist() for part in batch]


MAKERS: dict[str, Callable[..., DataLoader]] = {
    "sequential": lambda **o: DataLoader(Noisy(), 3, seed=1, **o),
    "shuffled": lambda **o: DataLoader(Noisy(), 3, shuffle=True, seed=1, **o),
    "drop last": lambda **o: DataLoader(Noisy(), 3, shuffle=True, drop_last=True, seed=1, **o),
    "single items": lambda **o: DataLoader(
        Noisy(), 1, shuffle=True, seed=1, collate_fn=lambda x: [np.array(x[0])], **o
    ),
    "replacement": lambda **o: DataLoader(
        Noisy(), 3, sampler=RandomSampler(17, replacement=True, num_samples=20), seed=1, **o
    ),
    "weighted": lambda **o: DataLoader(
        Noisy(), 3, sampler=WeightedRandomSampler(range(17)), seed=1, **o
    ),
    "shard": lambda **o: DataLoader(
        Noisy(), 3, sampler=ShardSampler(17, num_shards=2, index=1, shuffle=True), seed=1, **o
    ),
    "foreign sampler": lambda **o: DataLoader(Noisy(), 3, sampler=Stateful(), seed=1, **o),
    "batch transform": lambda **o: DataLoader(
        Noisy().map(lambda x: (np.float32(x[1]), x[0])),
        3,
        shuffle=True,
        seed=1,
        batch_transform=transforms.MixUp(17),
        **o,
    ),
    "stream": lambda **o: DataLoader(Stream(), 3, seed=1, **o),
    "shuffled stream": lambda **o: DataLoader(Stream().shuffle(4), 3, seed=1, **o),
    "prefetched stream": lambda **o: DataLoader(Stream().prefetch(2), 3, seed=1, **o),
    "endless stream": lambda **o: DataLoader(Stream().repeat().take(40), 3, seed=1, **o),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(("before", "after"), [(0, 0), (2, 0), (0, 2)])
def test_resume_at_every_batch(name: str, before: int, after: int) -> None:
    make = MAKERS[name]
    loader = make(num_workers=before)
    states, batches = [loader.state_dict()], []
    for _ in range(2):
        for batch in loader:
            batches.append(plain(batch))
            states.append(loader.state_dict())
    starts = range(len(states)) if before == after == 0 else (0, 1, 4, len(states) - 1)
    for start in starts:
        again = make(num_workers=after)
        again.load_state_dict(states[start])
        rest = [plain(batch) for _ in range(3 - again.epoch) for batch in again]
        end = len(batches)
        known = rest[: end - start]
        assert known == batches[start:]


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_resume_of_a_stream_that_shards_itself(workers: int) -> None:
    def make() -> DataLoader:
        return DataLoader(Sharded(), 2, seed=1, num_workers=workers)

    loader = make()
    states, batches = [loader.state_dict()], []
    for batch in loader:
        batches.append(plain(batch))
        states.append(loader.state_dict())
    assert len(batches) >= 11
    for start in (0, 1, 2, 5, 8, len(batches)):
        again = make()
        again.load_state_dict(states[start])
        assert [plain(batch) for batch in again] == batches[start:]


def test_sharded_position_belongs_to_a_number_of_workers() -> None:
    loader = DataLoader(Sharded(), 2, num_workers=2)
    next(iter(loader))
    state = loader.state_dict()
    with pytest.raises(ArgumentError, match="belongs to 2 worker"):
        DataLoader(Sharded(), 2).load_state_dict(state)


def test_epochs_after_a_resume_continue() -> None:
    make = MAKERS["shuffled"]
    reference = make()
    expected = [[plain(b) for b in reference] for _ in range(3)]
    loader = make()
    for batch in loader:
        if loader.batches_done == 2:
            break
        del batch
    again = make()
    again.load_state_dict(loader.state_dict())
    assert (again.epoch, again.batches_done) == (0, 2)
    assert [plain(b) for b in again] == expected[0][2:]
    assert [plain(b) for b in again] == expected[1]
    assert again.epoch == 2


def test_state_after_the_last_batch_continues_with_an_empty_rest() -> None:
    loader = DataLoader(Noisy(), 5, seed=0)
    for _ in loader:
        state = loader.state_dict()
    assert (state["epoch"], state["batch"]) == (0, 4)
    again = DataLoader(Noisy(), 5, seed=0)
    again.load_state_dict(state)
    assert list(again) == []
    assert again.epoch == 1
    assert (loader.state_dict()["epoch"], loader.state_dict()["batch"]) == (1, 0)


def test_prefetched_batches_do_not_count() -> None:
    loader = DataLoader(Noisy(), 2, num_workers=2, prefetch_factor=3, seed=0)
    iterator = iter(loader)
    next(iterator)
    assert loader.state_dict()["batch"] == 1


def test_epoch_left_in_the_middle_is_not_resumed_without_a_state() -> None:
    loader = DataLoader(Noisy(), 5, seed=0)
    for _ in loader:
        break
    assert len(list(loader)) == 4
    assert loader.epoch == 2


def test_iterator_that_was_not_used_changes_nothing() -> None:
    loader = DataLoader(Noisy(), 5, seed=0)
    iter(loader)
    assert loader.state_dict() == DataLoader(Noisy(), 5, seed=0).state_dict()
    next(iter(loader))
    assert (loader.epoch, loader.batches_done) == (0, 1)


def test_set_epoch() -> None:
    loader = MAKERS["shuffled"]()
    first, second = ([plain(b) for b in loader] for _ in range(2))
    loader.set_epoch(1)
    assert [plain(b) for b in loader] == second
    loader.set_epoch(0)
    assert [plain(b) for b in loader] == first


def test_state_is_json_and_survives_a_checkpoint(tmp_path: Any) -> None:
    loader = DataLoader(Noisy(), 3, shuffle=True, seed=(1 << 64) - 1)
    next(iter(loader))
    assert json.loads(json.dumps(loader.state_dict())) == loader.state_dict()
    foreign = DataLoader(Noisy(), 3, sampler=Restless())
    rest = [plain(b) for b in foreign]
    foreign.set_epoch(0)
    iterator = iter(foreign)
    next(iterator)
    save_state(tmp_path / "state", foreign.state_dict())
    rest = [plain(b) for b in iterator]
    again = DataLoader(Noisy(), 3, sampler=Restless())
    again.load_state_dict(load_state(tmp_path / "state"))
    assert [plain(b) for b in again] == rest


def test_foreign_sampler_without_a_state_finishes_its_epoch() -> None:
    loader = DataLoader(Noisy(), 3, sampler=Restless(), seed=0)
    list(loader)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    again = DataLoader(Noisy(), 3, sampler=Restless(), seed=0)
    again.load_state_dict(state)
    assert [plain(b) for b in again] == [plain(b) for b in iterator]


def test_persistent_workers_resume() -> None:
    loader = DataLoader(Noisy(), 3, seed=4, num_workers=2, persistent_workers=True)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    rest = [plain(b) for b in iterator]
    other = DataLoader(Noisy(), 3, seed=5, num_workers=2, persistent_workers=True)
    list(other)  # its workers know seed 5
    other.load_state_dict(state)
    assert [plain(b) for b in other] == rest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 9}, "expected a state"),
        ({"batch_size": 4}, "taken with batch_size 4"),
        ({"length": 99}, "taken with length 99"),
        ({"batch": -1}, "batch must be at least 0"),
    ],
)
def test_bad_states(change: dict[str, Any], message: str) -> None:
    loader = DataLoader(Noisy(), 3, seed=0)
    with pytest.raises(ArgumentError, match=message):
        loader.load_state_dict({**loader.state_dict(), **change})


def test_state_with_a_part_missing() -> None:
    loader = DataLoader(Noisy(), 3, seed=0)
    state = loader.state_dict()
    del state["order"]
    with pytest.raises(ArgumentError, match=r"the state lacks \['order'\]"):
        loader.load_state_dict(state)


def test_no_state_at_all() -> None:
    with pytest.raises(ArgumentError, match="expected a state"):
        DataLoader(Noisy(), 3).load_state_dict([])
