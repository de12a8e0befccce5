"""Processes that share every batch: together they have what one process has."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.data import DataLoader, TensorDataset
from weft.data.iterable import IterableDataset
from weft.data.streams import uniform


class Jittered(wf.data.Dataset):
    """Items with random numbers of their own."""

    def __len__(self):
        return 22

    def __getitem__(self, index):
        return index + uniform() / 2


def loaders(count, dataset, **options):
    options = {"batch_size": 8, "shuffle": True, "seed": 3, **options}
    return [DataLoader(dataset, shard=(i, count), **options) for i in range(count)]


def together(parts):
    """Return the batches of all processes, each joined."""
    return [np.concatenate([batch.numpy() for batch in step]) for step in zip(*parts, strict=True)]


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("workers", [0, 2])
def test_the_rows_of_all_are_the_batch_of_one(count, workers):
    numbers = TensorDataset(wf.arange(22))
    (whole,) = loaders(1, numbers)
    parts = together(loaders(count, numbers, num_workers=workers))
    for found, batch in zip(parts, whole, strict=True):
        expected = batch.numpy()
        np.testing.assert_array_equal(found[: len(expected)], expected)
        filled = expected[np.arange(len(expected), len(found)) % len(expected)]
        np.testing.assert_array_equal(found[len(expected) :], filled)


def test_items_have_the_random_numbers_of_one_process():
    (whole,) = loaders(1, Jittered(), drop_last=True)
    parts = together(loaders(2, Jittered(), drop_last=True))
    for found, batch in zip(parts, whole, strict=True):
        np.testing.assert_array_equal(found, batch.numpy())


def test_training_goes_on_with_another_number_of_processes():
    numbers = TensorDataset(wf.arange(22))
    (whole,) = loaders(1, numbers)
    expected = [batch.numpy() for _ in range(2) for batch in whole]
    pair = loaders(2, numbers)
    seen = []
    iterators = [iter(loader) for loader in pair]
    seen.append(np.concatenate([next(iterator).numpy() for iterator in iterators]))
    four = loaders(4, numbers, seed=9)
    for loader in four:
        loader.load_state_dict(pair[0].state_dict())
    seen += together(four) + together(four)
    for found, batch in zip(seen, expected, strict=True):
        np.testing.assert_array_equal(found[: len(batch)], batch)


def test_alone_nothing_is_divided():
    numbers = TensorDataset(wf.arange(6))
    (batch,) = DataLoader(numbers, batch_size=6, shard=True)
    np.testing.assert_array_equal(batch.numpy(), np.arange(6))


def test_what_cannot_be_shared():
    numbers = TensorDataset(wf.arange(6))
    with pytest.raises(ValueError, match=r"4 processes share each batch.*batch_size 6"):
        DataLoader(numbers, batch_size=6, shard=(0, 4))
    for shard in ((2, 2), (-1, 2), "all", (0, 1, 2), 1.5):
        with pytest.raises(TypeError, match="shard must be True, False or"):
            DataLoader(numbers, batch_size=4, shard=shard)

    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(5))

    with pytest.raises(ValueError, match="a stream"):
        DataLoader(Stream(), shard=(0, 2))


def test_batches_in_turns() -> None:
    loader = DataLoader(TensorDataset(wf.arange(10)), 2, shuffle=True, seed=3)
    whole = [x.tolist() for x in loader]
    for place in range(3):
        mine = loader.taking_turns(place, 3)
        assert [x.tolist() for x in mine] == whole[place::3]
        assert len(mine) == len(whole[place::3])
        assert not mine.shares_rows
    mine = loader.taking_turns(1, 2)
    next(iter(mine))
    again = loader.taking_turns(1, 2)
    again.load_state_dict(mine.state_dict())
    assert [x.tolist() for x in again] == whole[3::2]


def test_streams_have_no_turns() -> None:
    with pytest.raises(ValueError, match="known only by reading them all"):
        DataLoader(wf.data.IterableSource([1, 2]), 2).taking_turns(0, 2)
