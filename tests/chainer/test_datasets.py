"""Datasets, batches and iterators."""

from __future__ import annotations

import numpy as np
import pytest

from weft import chainer
from weft.chainer import datasets
from weft.chainer.dataset import DatasetMixin, concat_examples
from weft.chainer.iterators import MultiprocessIterator, SerialIterator


class Squares(DatasetMixin):
    def __len__(self) -> int:
        return 5

    def get_example(self, i: int) -> int:
        return i * i


def test_indexing() -> None:
    assert Squares()[1:4] == [1, 4, 9]
    assert Squares()[[0, 4]] == [0, 16]
    pairs = datasets.TupleDataset([1, 2, 3], "abc")
    assert pairs[1] == (2, "b")
    assert pairs[1:] == [(2, "b"), (3, "c")]
    assert datasets.DictDataset(x=[1, 2], y=[3, 4])[1] == {"x": 2, "y": 4}
    with pytest.raises(ValueError, match="lengths do not match"):
        datasets.TupleDataset([1], [1, 2])


def test_parts() -> None:
    first, second = datasets.split_dataset(range(5), 2)
    assert (first[:], second[:]) == ([0, 1], [2, 3, 4])
    halves = datasets.split_dataset_random(range(6), 3, seed=0)
    assert sorted(halves[0][:] + halves[1][:]) == list(range(6))
    for train, test in datasets.get_cross_validation_datasets(range(6), 3):
        assert sorted(train[:] + test[:]) == list(range(6))
    joined = datasets.ConcatenatedDataset([1, 2], [3])
    assert [joined[i] for i in range(len(joined))] == [1, 2, 3]
    assert datasets.TransformDataset([1, 2], lambda x: -x)[1] == -2
    with pytest.raises(IndexError, match="out of range"):
        _ = first[2]


def test_batches() -> None:
    x, y = concat_examples([(np.ones(2, "f"), 1), (np.zeros(2, "f"), 2)])
    assert x.shape == (2, 2)
    assert y.dtype == np.int32
    padded = concat_examples([np.ones(1), np.ones(3)], padding=-1)
    assert padded.tolist() == [[1, -1, -1], [1, 1, 1]]
    assert concat_examples([{"a": 1.5}])["a"].dtype == np.float32
    with pytest.raises(ValueError, match="batch is empty"):
        concat_examples([])
    with pytest.raises(RuntimeError, match="CUDA"):
        concat_examples([1], device=0)


@pytest.mark.parametrize("kind", [SerialIterator, MultiprocessIterator])
def test_epochs(kind: type) -> None:
    iterator = kind(list(range(5)), 2, shuffle=False)
    batches = [iterator.next() for _ in range(5)]
    assert batches == [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4]]
    assert (iterator.epoch, iterator.is_new_epoch, iterator.epoch_detail) == (2, True, 2.0)
    once = kind(list(range(5)), 2, repeat=False, shuffle=False)
    assert list(once) == [[0, 1], [2, 3], [4]]
    with pytest.raises(ValueError, match="positive integer"):
        kind([1], 0)


def test_numpy_seeds_the_order() -> None:
    orders = []
    for _ in range(2):
        chainer.iterators.np.random.seed(3)
        orders.append(SerialIterator(list(range(9)), 9).next())
    assert orders[0] == orders[1] != list(range(9))


def test_missing_files_are_named(tmp_path) -> None:
    before = chainer.dataset.get_dataset_root()
    chainer.dataset.set_dataset_root(str(tmp_path))
    try:
        with pytest.raises(FileNotFoundError, match="mnist"):
            datasets.get_mnist()
        with pytest.raises(FileNotFoundError, match=r"ptb\.train\.txt"):
            datasets.get_ptb_words()
        with pytest.raises(RuntimeError, match="downloads nothing"):
            chainer.dataset.cached_download("file.gz")
    finally:
        chainer.dataset.set_dataset_root(before)
