"""Parts of operations make the whole: every operator that can be divided, along every label."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.ops.conformance import Arguments, cases, record_call
from weft.core.dispatch import group
from weft.core.division import RankShare, division_of, reshaped
from weft.core.op import F, registry
from weft.core.shape import type_of

SIZE = 2
EACH = 6  # samples of an operator that are tried


def divisible_cases():
    """Yield calls, with how each can be divided."""
    tried = dict.fromkeys(registry, 0)
    for case in cases():
        record = case.op
        if record is None or record.outputs != 1 or tried[case.name] == EACH:
            continue
        recorder, result = record_call(record, Arguments.of(case.drawn()))
        if recorder.inputs is None or not isinstance(result, wf.Tensor):
            continue
        arrays = [None if x is None else np.asarray(x.numpy()) for x in recorder.inputs]
        types = [None if a is None else type_of(a) for a in arrays]
        division = division_of(record, types, recorder.attrs)
        if division is not None:
            tried[case.name] += 1
            yield case.id, record, arrays, recorder.attrs, division, result.numpy()


CASES = list(divisible_cases())


def labels_of(division, arrays, result):
    """Return the labels along which all axes can be halved."""
    sizes = {}
    for labels, array in [*zip(division.inputs, arrays, strict=True), (division.output, result)]:
        for label, size in zip(labels or (), () if array is None else array.shape, strict=False):
            sizes.setdefault(label, set()).add(size)
    known = set(division.output) | set(division.sums)
    return [
        label
        for label, found in sizes.items()
        if label in known and label is not None and all(n and n % SIZE == 0 for n in found)
    ]


def part_of(array, labels, label, index):
    if array is None or labels is None or label not in labels:
        return array
    return np.split(array, SIZE, labels.index(label))[index]


def computed_part(record, arrays, attrs, division, result, label, index):
    parts = [
        part_of(array, labels, label, index)
        for array, labels in zip(arrays, division.inputs, strict=True)
    ]
    tensors = [None if x is None else wf.tensor(x) for x in parts]
    if division.part is None:
        return record.specialized.execute(tuple(tensors), attrs)
    shape = list(result.shape)
    if label in division.output:
        shape[division.output.index(label)] //= SIZE
    return division.part(RankShare(label, index, SIZE, tuple(shape)), *group(record, tensors))


def joined(parts, division, label):
    arrays = [x.numpy() for x in parts]
    if label in division.output:
        return np.concatenate(arrays, division.output.index(label))
    combine = division.sums[label]
    if isinstance(combine, str):
        way = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}
        return way[combine](np.stack(arrays), axis=0)

    def exchange(x, how):  # of all parts at once, along a new axis
        return F.broadcast_to(getattr(F, how)(x, axis=0, keepdims=True), x.shape)

    return combine(F.stack(parts), exchange).numpy()[0]


def test_there_are_many():
    names = {record.name for _, record, *_ in CASES}
    assert {"add", "exp", "where", "sum", "logsumexp", "matmul", "linear", "embedding"} <= names
    assert {"permute", "reshape", "getitem", "concat", "conv", "take_adjoint"} <= names


@pytest.mark.filterwarnings("ignore")
def test_parts_make_the_whole():
    tried = 0
    for name, record, arrays, attrs, division, result in CASES:
        for label in labels_of(division, arrays, result):
            with np.errstate(all="ignore"):
                parts = [
                    computed_part(record, arrays, attrs, division, result, label, i)
                    for i in range(SIZE)
                ]
                found = joined(parts, division, label)
            if result.dtype == bool and label in division.sums:
                continue  # not added up: see passes/dividing/choices.py
            tolerance = 1e-2 if result.dtype.itemsize == 2 else 1e-6
            np.testing.assert_allclose(
                found.astype(np.float64 if result.dtype.itemsize == 2 else found.dtype),
                result,
                rtol=tolerance,
                atol=tolerance,
                err_msg=f"{name} along {label}",
            )
            tried += 1
    assert tried > 300, tried


def test_reshapes_are_divided_at_their_outermost_axes():
    division = reshaped((4, 6), (4, 2, 3))
    assert (division.inputs, division.output) == ([(0, 1)], (0, 1, None))
    joined_axes = reshaped((2, 3, 5), (6, 5))
    assert (joined_axes.inputs, joined_axes.output) == ([(0, None, 2)], (0, 2))
    assert reshaped((6,), (1, 6)).output == (None, 0)
    assert reshaped((4, 6), (6, 4)).output == (0, None)


def test_what_lies_in_no_part_is_out_of_range_in_all():
    for index in range(2):
        share = RankShare("row", index, 2, ())
        here, places = share.places(wf.tensor([0, 3, -1, 4]), 4)
        assert here.tolist() == [index == 0, index == 1, False, False]
        assert places.tolist()[2:] == [2, 2]
