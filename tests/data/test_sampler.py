"""Samplers: which indices, how often, and that they repeat for a seed and an epoch."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft as wf
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
