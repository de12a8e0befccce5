"""Samplers: which indices, how often, and that they repeat for a seed and an epoch."""

from __future__ import annotations

from collections import Counter
from itertools import chain, islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft as wf
from weft.core import random as kernels
from weft.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from weft.core.rng import Generator
from weft.data import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    ShardSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from weft.data.streams import PART, permutation


def test_sequential() -> None:
    assert list(SequentialSampler("abc")) == [0, 1, 2]
    assert len(SequentialSampler(0)) == 0


def test_random_is_a_permutation_and_changes_with_the_epoch() -> None:
    sampler = RandomSampler(30, seed=1)
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(30))
    assert first != second
    sampler.set_epoch(0)
    assert list(sampler) == first
    assert list(RandomSampler(30, seed=1)) == first


def test_manual_seed_decides_a_sampler_without_seed() -> None:
    wf.manual_seed(3)
    first = list(RandomSampler(30))
    wf.manual_seed(3)
    assert list(RandomSampler(30)) == first


def test_more_samples_than_items() -> None:
    counts = Counter(RandomSampler(4, num_samples=10, seed=0))
    assert sorted(counts.values()) == [2, 2, 3, 3]
    drawn = list(RandomSampler(4, num_samples=100, replacement=True, seed=0))
    assert len(drawn) == 100
    assert set(drawn) == {0, 1, 2, 3}


def test_random_of_nothing() -> None:
    assert list(RandomSampler(0)) == []
    with pytest.raises(ArgumentError, match="from no items"):
        RandomSampler(0, num_samples=1)


def test_subset() -> None:
    assert sorted(SubsetRandomSampler([5, 2, 9], seed=0)) == [2, 5, 9]
    assert list(SubsetRandomSampler([])) == []


def test_weights_are_proportions() -> None:
    sampler = WeightedRandomSampler([1, 0, 3], 20_000, seed=0)
    counts = Counter(sampler)
    assert counts[1] == 0
    assert counts[2] / counts[0] == pytest.approx(3, rel=0.1)


def test_weighted_without_replacement_draws_each_once() -> None:
    sampler = WeightedRandomSampler(wf.tensor([1.0, 5.0, 0.0, 2.0]), 3, replacement=False, seed=2)
    assert sorted(sampler) == [0, 1, 3]
    first = Counter(
        next(iter(WeightedRandomSampler([1, 9], 2, replacement=False, seed=s))) for s in range(500)
    )
    assert first[1] / 500 == pytest.approx(0.9, abs=0.05)


@given(n=st.integers(0, 60), shards=st.integers(1, 7), shuffle=st.booleans(), drop=st.booleans())
def test_shards_cover_everything_in_equal_parts(
    n: int, shards: int, shuffle: bool, drop: bool
) -> None:
    samplers = [
        ShardSampler(n, num_shards=shards, index=i, shuffle=shuffle, drop_last=drop)
        for i in range(shards)
    ]
    for _ in range(2):
        parts = [list(sampler) for sampler in samplers]
        assert [len(part) for part in parts] == [len(sampler) for sampler in samplers]
        assert len({len(part) for part in parts}) == 1
        seen = Counter(chain.from_iterable(parts))
        if drop:
            assert set(seen.values()) <= {1}
        else:
            assert set(seen) == set(range(n))


def test_batches() -> None:
    assert list(BatchSampler([4, 5, 6], 2)) == [[4, 5], [6]]
    assert list(BatchSampler(SequentialSampler(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert len(BatchSampler(range(5), 2)) == 3


def test_own_sampler_needs_only_an_order() -> None:
    class Backwards(Sampler):
        def __len__(self) -> int:
            return 3

        def order(self, generator: Generator, epoch: int) -> Any:
            return np.arange(3)[::-1]

    assert list(Backwards()) == [2, 1, 0]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: RandomSampler(-1), ArgumentError, "at least 0"),
        (lambda: RandomSampler(iter([])), ArgumentTypeError, "a dataset with a length"),
        (lambda: WeightedRandomSampler([]), ShapeError, "one number per item"),
        (lambda: WeightedRandomSampler([[1.0]]), ShapeError, "one number per item"),
        (lambda: WeightedRandomSampler([0, 0]), ArgumentError, "not all 0"),
        (lambda: WeightedRandomSampler([1, -1]), ArgumentError, "not negative"),
        (lambda: WeightedRandomSampler([1, float("nan")]), ArgumentError, "finite"),
        (lambda: WeightedRandomSampler([1, 0], 2, replacement=False), ArgumentError, "only 1"),
        (lambda: ShardSampler(4, num_shards=2, index=2), ArgumentError, "below num_shards=2"),
        (lambda: ShardSampler(4, num_shards=0, index=0), ArgumentError, "at least 1"),
        (lambda: BatchSampler([1], 0), ArgumentError, "at least 1"),
        (lambda: SubsetRandomSampler([0.5]), ArgumentTypeError, "must be integers"),
    ],
)
def test_bad_arguments(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


# -- more than fits into memory ------------------------------------------------------------------

MANY = 2 * PART + 77
BEYOND = 10**13


def drawn(sampler: Sampler) -> list[int]:
    return next(BatchSampler(sampler, MANY).order(Generator(5), 0))


def test_draws_in_parts_are_the_same_numbers() -> None:
    generator = Generator(5)
    key, counter = generator.reserve(kernels.blocks_for((MANY,), "int64"))
    expected = kernels.randint(key, counter, (MANY,), low=0, high=1000)
    sampler = RandomSampler(1000, replacement=True, num_samples=MANY)
    assert drawn(sampler) == expected.tolist()

    weights = np.random.default_rng(0).random(PART + 3)
    for some in (weights[:10], weights):
        expected = kernels.categorical(key, counter, probabilities=some, num_samples=MANY)
        assert drawn(WeightedRandomSampler(some, MANY)) == expected.tolist()

    generator, rounds = Generator(5), []
    for _ in range(3):
        key, counter = generator.reserve(kernels.blocks_for((7,), "int64"))
        rounds += kernels.permutation(key, counter, 7).tolist()
    assert list(RandomSampler(7, num_samples=17).order(Generator(5), 0)) == rounds[:17]


def test_order_reserves_what_it_draws_at_once() -> None:
    for sampler in (
        RandomSampler(9, replacement=True, num_samples=MANY),
        RandomSampler(9, num_samples=MANY),
        WeightedRandomSampler([1.0, 2.0], MANY),
    ):
        apart, generator = Generator(3), Generator(3)
        expected = list(sampler.order(apart, 0))
        order = sampler.order(generator, 0)
        assert generator.position() == apart.position()
        generator.reserve(1000)  # what others draw meanwhile changes nothing
        assert list(order) == expected


@pytest.mark.parametrize(
    "sampler",
    [
        RandomSampler(5, replacement=True, num_samples=BEYOND),
        RandomSampler(5, num_samples=BEYOND),
        WeightedRandomSampler([1.0, 2.0, 0.0, 3.0], BEYOND),
        SequentialSampler(BEYOND),
        ShardSampler(BEYOND, num_shards=3, index=1),
    ],
)
def test_any_number_of_draws_takes_little_memory(sampler: Sampler) -> None:
    assert len(sampler) >= BEYOND // 3
    assert len(list(islice(sampler, 1000))) == 1000
    batches = BatchSampler(sampler, 10)
    assert len(next(iter(batches))) == 10


def test_loader_over_many_draws_resumes() -> None:
    def loader() -> wf.data.DataLoader:
        sampler = RandomSampler(100, replacement=True, num_samples=BEYOND)
        return wf.data.DataLoader(
            wf.data.TensorDataset(np.arange(100)), 64, sampler=sampler, seed=1
        )

    whole = [batch.tolist() for batch in islice(loader(), 1500)]
    first = loader()
    for _ in islice(first, 1100):  # beyond the first part
        pass
    again = loader()
    again.load_state_dict(first.state_dict())
    assert [batch.tolist() for batch in islice(again, 400)] == whole[1100:]


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("drop_last", [True, False])
@pytest.mark.parametrize("length", [0, 1, 2, 7, 12])
def test_shards_wrap_around(length: int, drop_last: bool, shuffle: bool) -> None:
    order = np.arange(length)
    if shuffle:
        order = permutation(length, generator=Generator(0).fork(0))
    for shards in (1, 3, 5):
        for index in range(shards):
            sampler = ShardSampler(
                length, num_shards=shards, index=index, shuffle=shuffle, drop_last=drop_last
            )
            total = len(sampler) * shards
            assert list(sampler) == np.resize(order, total)[index::shards].tolist()
