"""Evaluation that processes share: who computes which batch; on several of them see training.py."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.train.metrics import MAE, METRICS, MSE, R2, Metric
from weft.train.sharing import shared_batches


class Members:
    def __init__(self, rank, size):
        self.rank, self.size = rank, size


def shares(loader, size, most=None):
    return [
        [(int(x[0]), counts) for x, counts in shared_batches(loader, Members(rank, size), most)]
        for rank in range(size)
    ]


def loader(count, **options):
    return wf.data.DataLoader(wf.data.TensorDataset(wf.arange(count)), 2, **options)


@pytest.mark.parametrize("make", [loader, lambda count: list(loader(count))])
@pytest.mark.parametrize(("count", "size"), [(12, 2), (10, 2), (10, 4), (2, 3), (7, 3)])
def test_every_batch_counts_once_and_all_compute_as_many(make, count, size):
    found = shares(make(count), size)
    assert len({len(batches) for batches in found}) == 1
    counted = sorted(number for batches in found for number, counts in batches if counts)
    assert counted == list(range(0, count, 2))


def test_no_more_than_asked_for():
    assert shares(loader(10), 2, most=3) == [[(0, True), (4, True)], [(2, True), (2, False)]]


def test_loaders_that_divide_rows_themselves_are_taken_as_they_are():
    mine = loader(8, shard=(1, 2))
    assert [int(x[0]) for x, _ in shared_batches(mine, Members(1, 2))] == [1, 3, 5, 7]


def test_alone_everything_counts():
    assert [counts for _, counts in shared_batches(loader(6), None)] == [True] * 3


@pytest.mark.parametrize("name", sorted(METRICS))
def test_metrics_of_parts_make_one_of_all(name):
    rng = np.random.default_rng(0)
    is_regression = isinstance(METRICS[name](), (MSE, MAE, R2))
    outputs = rng.random((12,) if is_regression else (12, 3))
    targets = rng.random(12) if is_regression else rng.integers(0, 3, 12)
    whole, *parts = (METRICS[name]() for _ in range(4))
    whole.update(outputs, targets)
    for i, part in enumerate(parts):
        part.update(outputs[4 * i : 4 * i + 4], targets[4 * i : 4 * i + 4])
    merged = METRICS[name]()
    for part in parts:
        merged.merge(part.state_dict())
    np.testing.assert_allclose(merged.compute(), whole.compute(), rtol=1e-12)


def test_a_metric_that_cannot_be_merged_says_so():
    class Last(Metric):
        name = "last"

        def reset(self):
            self.value = 0.0

        def update(self, output, target):
            self.value = output

        def compute(self):
            return self.value

    with pytest.raises(ValueError, match=r"'last' does not say .* define merge\(state\)"):
        Last().merge({})
