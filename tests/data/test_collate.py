"""From items to batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from weft.data import PadCollate, default_collate


class Pair(NamedTuple):
    x: Any
    y: Any


@dataclass
class Record:
    image: Any
    name: str


def test_numbers_and_strings() -> None:
    assert default_collate([1, 2]).dtype == wf.int64
    assert default_collate([1.0, 2]).dtype == wf.float32
    assert default_collate([True, False]).dtype == wf.bool_
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([b"a", b"b"]) == [b"a", b"b"]


def test_arrays_and_tensors_keep_their_dtype() -> None:
    for dtype in (np.uint8, np.float16, np.float64, np.bool_):
        batch = default_collate([np.zeros((2, 3), dtype), np.ones((2, 3), dtype)])
        assert (batch.shape, batch.dtype) == ((2, 2, 3), dtype)
    assert default_collate([wf.tensor([1.0]), np.array([2.0], np.float32)]).tolist() == [[1], [2]]
    assert default_collate([np.float64(1), np.float64(2)]).dtype == wf.float64
    assert default_collate([np.zeros((0, 2))]).shape == (1, 0, 2)


def test_mixed_dtypes_promote() -> None:
    assert default_collate([np.zeros(2, np.int64), np.zeros(2, np.float32)]).dtype == wf.float32
    with pytest.raises(DTypeError, match="no common"):
        default_collate([np.zeros(2, np.uint64), np.zeros(2, np.int64)])


def test_nests() -> None:
    items = [{"a": (i, [float(i)]), "b": Pair(i, "s"), "c": None} for i in range(3)]
    batch = default_collate(items)
    assert batch["a"][0].tolist() == [0, 1, 2]
    assert batch["a"][1][0].tolist() == [0, 1, 2]
    assert isinstance(batch["b"], Pair)
    assert batch["b"].y == ["s"] * 3
    assert batch["c"] is None
    record = default_collate([Record(np.zeros(2), "u"), Record(np.ones(2), "v")])
    assert isinstance(record, Record)
    assert record.name == ["u", "v"]


def test_dictionaries_in_another_order() -> None:
    batch = default_collate([{"a": 1, "b": 2}, {"b": 20, "a": 10}])
    assert batch["a"].tolist() == [1, 10]
    assert batch["b"].tolist() == [2, 20]
    nested = default_collate([({"a": 1, "b": 2},), ({"b": 20, "a": 10},)])
    assert nested[0]["a"].tolist() == [1, 10]


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        ([], ArgumentError, "no items"),
        ([{"a": 1}, {"b": 1}], ArgumentError, "item 1 is {'b': \\*}"),
        ([(1, 2), (1,)], ArgumentError, "same structure"),
        ([None, 1], ArgumentError, "same structure"),
        ([np.zeros(2), np.zeros(3)], ShapeError, r"\(2,\), item 1 has \(3,\)"),
        ([{"x": np.zeros(2)}, {"x": np.zeros(3)}], ShapeError, r"at \['x'\]"),
        ([object(), object()], ArgumentTypeError, "type object"),
        (["a", b"b"], ArgumentTypeError, "str and bytes"),
        ([1, "a"], ArgumentTypeError, "type str"),
        ([np.array(["a"])], ArgumentTypeError, "type ndarray"),
    ],
)
def test_what_cannot_be_batched(items: list[Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        default_collate(items)


def test_padding() -> None:
    items = [(np.arange(3.0), 1), (np.arange(1.0), 2)]
    padded, labels = PadCollate(-1)(items)
    assert padded.tolist() == [[0, 1, 2], [0, -1, -1]]
    assert labels.tolist() == [1, 2]


def test_padding_options() -> None:
    lists = [[1, 2, 3], [4]]
    assert PadCollate(side="left")(lists).tolist() == [[1, 2, 3], [0, 0, 4]]
    assert PadCollate(batch_first=False)(lists).tolist() == [[1, 4], [2, 0], [3, 0]]
    assert PadCollate(multiple_of=4)(lists).shape == (2, 4)
    assert PadCollate(max_length=2)(lists).tolist() == [[1, 2], [4, 0]]
    batch, lengths = PadCollate(with_lengths=True, max_length=2)(lists)
    assert lengths.tolist() == [2, 1]
    assert batch.dtype == wf.int64


def test_padding_value_for_each_entry() -> None:
    items = [{"tokens": [1, 2], "tags": [7, 7]}, {"tokens": [3], "tags": [8]}]
    batch = PadCollate((0, -100))(items)
    assert batch["tokens"].tolist() == [[1, 2], [3, 0]]
    assert batch["tags"].tolist() == [[7, 7], [8, -100]]


def test_padding_of_several_axes_and_empty_sequences() -> None:
    batch = PadCollate(9)([np.zeros((1, 3)), np.ones((2, 2)), np.zeros((0, 0))])
    assert batch.shape == (3, 2, 3)
    assert batch[0].tolist() == [[0, 0, 0], [9, 9, 9]]
    assert batch[1].tolist() == [[1, 1, 9], [1, 1, 9]]
    assert (batch[2] == 9).all()


def test_empty_list_among_integers() -> None:
    batch = PadCollate()([[], [1, 2]])
    assert (batch.tolist(), batch.dtype) == ([[0, 0], [1, 2]], wf.int64)


def test_text_beside_padded_entries() -> None:
    assert PadCollate()([("a", [1]), ("b", [1, 2])])[0] == ["a", "b"]


@pytest.mark.parametrize(
    ("collate", "items", "error", "message"),
    [
        (PadCollate(), [np.zeros(2), np.zeros((2, 2))], ShapeError, "number of dimensions"),
        (PadCollate(0.5), [[1, 2], [3]], DTypeError, "0.5 is no value of int64"),
        (PadCollate(-1), [np.zeros(1, np.uint8), np.zeros(2, np.uint8)], DTypeError, "uint8"),
        (PadCollate((1,)), [([1], [2])], ArgumentError, "one for each entry"),
        (PadCollate(with_lengths=True), [1, 2], ArgumentError, "is a sequence"),
    ],
)
def test_padding_errors(
    collate: PadCollate, items: list[Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        collate(items)


def test_padding_value_is_not_checked_where_nothing_is_padded() -> None:
    assert PadCollate(float("nan"))([[1], [2]]).tolist() == [[1], [2]]


def test_bad_padding_options() -> None:
    with pytest.raises(ArgumentError, match="'right' or 'left'"):
        PadCollate(side="up")
    with pytest.raises(ArgumentError, match="multiple_of must be at least 1"):
        PadCollate(multiple_of=0)
