"""Datasets with items by index, and the views of them."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft as wf
from weft.core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from weft.data import ConcatDataset, Dataset, Subset, TensorDataset, random_split


def numbers(n: int) -> Dataset:
    return TensorDataset(np.arange(n)).map(int)


def test_tensor_dataset() -> None:
    data = TensorDataset(wf.tensor([[1.0], [2.0]]), [7, 8])
    x, y = data[-1]
    assert (x.tolist(), y.item(), len(data)) == ([2.0], 8, 2)
    assert data[0:1][0].tolist() == [[1.0]]
    assert data.tensors[1].tolist() == [7, 8]
    with pytest.raises(IndexError, match="index 2 is out of range for 2 items"):
        data[2]


def test_row_of_a_tensor_that_requires_grad_is_plain() -> None:
    assert not TensorDataset(wf.tensor([1.0], requires_grad=True))[0].requires_grad


@pytest.mark.parametrize(
    ("tensors", "error", "message"),
    [
        ((), ArgumentError, "at least one"),
        ((np.zeros(2), np.zeros(3)), ShapeError, r"\(2,\), \(3,\)"),
        ((np.zeros(()),), ShapeError, "0-d"),
        ((np.array(["a"]),), DTypeError, "not supported"),
    ],
)
def test_bad_tensors(tensors: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        TensorDataset(*tensors)


def test_pipeline() -> None:
    data = numbers(10).filter(lambda x: x % 2).map(lambda x: x * 10).batch(2)
    assert list(data) == [[10, 30], [50, 70], [90]]
    assert len(numbers(5).batch(2, drop_last=True)) == 2


def test_map_of_one_entry() -> None:
    assert numbers(1).map(lambda i: (i, "a")).map(str.upper, key=1)[0] == (0, "A")
    assert numbers(1).map(lambda i: {"x": i}).map(str, key="x")[0] == {"x": "0"}
    assert numbers(1).map(lambda i: [i, i]).map(str, key=-1)[0] == [0, "0"]
    with pytest.raises(TypeError, match="no entry 'y' in an item of keys \\['x'\\]"):
        numbers(1).map(lambda i: {"x": i}).map(str, key="y")[0]
    with pytest.raises(TypeError, match="no entry 2"):
        numbers(1).map(lambda i: (i, i)).map(str, key=2)[0]
    with pytest.raises(TypeError, match="Received: int"):
        numbers(1).map(str, key=0)[0]
    with pytest.raises(ArgumentTypeError, match="key must be"):
        numbers(1).map(str, key=1.5)
    with pytest.raises(ArgumentTypeError, match="fn must be callable"):
        numbers(1).map(3)


def test_shuffle() -> None:
    assert sorted(numbers(20).shuffle(1)) == list(range(20))
    assert list(numbers(20).shuffle(1)) == list(numbers(20).shuffle(1)) != list(range(20))
    wf.manual_seed(0)
    first = list(numbers(20).shuffle())
    assert list(numbers(20).shuffle()) != first


def test_concat_zip_repeat_take_skip() -> None:
    assert list(numbers(2) + numbers(3)) == [0, 1, 0, 1, 2]
    assert list(numbers(2).concat(numbers(0), numbers(1))) == [0, 1, 0]
    assert (numbers(2) + numbers(3))[-1] == 2
    assert list(numbers(2).zip(numbers(3).map(str))) == [(0, "0"), (1, "1")]
    assert list(numbers(2).repeat(2)) == [0, 1, 0, 1]
    assert list(numbers(5).take(2)) == [0, 1]
    assert list(numbers(2).take(5)) == [0, 1]
    assert list(numbers(5).skip(3)) == [3, 4]
    assert list(numbers(2).skip(5)) == []
    with pytest.raises(TypeError):
        numbers(2) + 1
    with pytest.raises(ArgumentError, match="at least one"):
        ConcatDataset()


def test_list_of_datasets_is_several_datasets() -> None:
    a, b = numbers(2), numbers(3)
    for sources in ([a, b], (a, b), iter([a, b]), (x for x in (a, b))):
        assert list(ConcatDataset(sources)) == [0, 1, 0, 1, 2]
    assert list(ConcatDataset(a)) == [0, 1]
    assert list(ConcatDataset([a])) == [0, 1]
    assert list(ConcatDataset([10, 20], [30])) == [10, 20, 30]
    assert list(ConcatDataset([[10, 20], [30]])) == [10, 20, 30]
    assert list(a.concat([b, a])) == list(a.concat(b, a)) == [0, 1, 0, 1, 2, 0, 1]
    assert list(a.concat([7, 8])) == [0, 1, 7, 8]
    assert list(a.zip([b, a])) == [(0, 0, 0), (1, 1, 1)]
    assert list(a.zip("xy")) == [(0, "x"), (1, "y")]
    assert list(a.stream().concat([b.stream(), a.stream()])) == [0, 1, 0, 1, 2, 0, 1]
    assert list(a.stream().zip([b.stream(), a.stream()])) == [(0, 0, 0), (1, 1, 1)]
    assert list(a.stream().zip([7, 8])) == [(0, 7), (1, 8)]
    with pytest.raises(ArgumentError, match="at least one"):
        ConcatDataset([])
    with pytest.raises(ArgumentTypeError, match=r"expected a dataset.*Received: int"):
        ConcatDataset([1, 2])


def test_repeating_often_takes_no_memory() -> None:
    often = numbers(3).repeat(10**12)
    assert len(often) == 3 * 10**12
    assert [often[i] for i in (0, 4, 10**12, -1)] == [0, 1, 1, 2]
    assert len(numbers(0).repeat(3)) == 0
    with pytest.raises(IndexError):
        numbers(2).repeat(2)[4]


def test_cache_makes_each_item_once() -> None:
    made: list[int] = []

    def make(i: int) -> int:
        made.append(i)
        return i

    data = numbers(3).map(make).cache()
    assert [*data, *data] == [0, 1, 2] * 2
    assert made == [0, 1, 2]


def test_prefetch_and_stream_keep_the_order() -> None:
    assert list(numbers(5).prefetch(2)) == list(numbers(5).stream()) == [0, 1, 2, 3, 4]


def test_subset() -> None:
    assert list(Subset(numbers(5), [4, -5, 2])) == [4, 0, 2]
    assert list(numbers(5).subset([])) == []
    assert list(numbers(5).subset(i for i in (1, 2))) == [1, 2]
    with pytest.raises(IndexError, match="index 5 is out of range for 5 items"):
        numbers(5).subset([0, 5])
    with pytest.raises(ArgumentTypeError, match="list of integers"):
        numbers(5).subset([0.5])
    with pytest.raises(IndexError):
        numbers(5).subset([1])[1]


def test_views_of_plain_sequences() -> None:
    assert list(Subset([10, 20, 30], [2, 0])) == [30, 10]
    with pytest.raises(ArgumentTypeError, match="Received: int"):
        Subset(3, [])


@given(n=st.integers(0, 60), cuts=st.lists(st.integers(0, 10), min_size=1, max_size=5))
def test_random_split_of_fractions_is_a_partition(n: int, cuts: list[int]) -> None:
    total = sum(cuts) or 1
    fractions = [c / total for c in cuts] if sum(cuts) else [1.0]
    parts = random_split(numbers(n), fractions, seed=1)
    assert sorted(chain.from_iterable(parts)) == list(range(n))
    for part, fraction in zip(parts, fractions, strict=True):
        assert abs(len(part) - n * fraction) <= len(parts)


def test_random_split() -> None:
    first, second = numbers(100).random_split([71, 29], seed=3)
    assert (len(first), len(second)) == (71, 29)
    assert list(first) == list(random_split(numbers(100), [71, 29], seed=3)[0])
    assert [len(p) for p in random_split(numbers(100), [0.71, 0.29], seed=0)] == [71, 29]
    assert [len(p) for p in random_split(numbers(10), [1.0], seed=0)] == [10]


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([], "must not be empty"),
        ([5, 6], "must sum to the dataset's length 10.*sum 11"),
        ([-1, 11], "at least 0"),
        ([0.5, 0.6], "must sum to 1"),
        ([float("nan"), 1.0], "finite"),
    ],
)
def test_bad_splits(lengths: list[Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        random_split(numbers(10), lengths)


def test_base_class_says_what_to_define() -> None:
    with pytest.raises(NotImplementedError, match="Dataset must define __len__"):
        len(Dataset())
    with pytest.raises(NotImplementedError, match="must define __getitem__"):
        Dataset()[0]


@pytest.mark.parametrize("rows", [range(2, 5), range(6, 6), range(6, 0, -2), range(1, 7, 3)])
def test_rows_that_follow_one_another_are_those_at_their_indices(rows: range) -> None:
    x = np.arange(14.0).reshape(2, 7).T
    taken, numbers = TensorDataset(x, np.arange(7)).take_batch(rows)
    np.testing.assert_array_equal(taken.numpy(), x[list(rows)].reshape(-1, 2))
    assert taken.numpy().flags.c_contiguous
    assert numbers.tolist() == list(rows)
    assert not np.shares_memory(taken.numpy(), x)


def test_rows_beyond_the_end_are_refused() -> None:
    with pytest.raises(IndexError):
        TensorDataset(np.arange(7)).take_batch(range(5, 9))
