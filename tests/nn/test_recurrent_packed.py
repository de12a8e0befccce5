"""Padded and packed batches: round trips, and recurrent nets over sequences of many lengths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft as wf
from weft.autodiff.check import check_grads
from weft.nn.packed import (
    PackedSequence,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)
from weft.nn.recurrent import GRU, LSTM, RNN

lengths_lists = st.lists(st.integers(1, 6), min_size=1, max_size=5)


def sequences_of(lengths, *sizes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, *sizes)) for n in lengths]


def tensors(arrays):
    return [wf.tensor(a) for a in arrays]


@given(lengths_lists, st.booleans(), st.sampled_from([(), (2,), (2, 3)]))
def test_packing_and_padding_again_changes_nothing(lengths, batch_first, sizes):
    arrays = sequences_of(lengths, *sizes)
    padded = pad_sequence(tensors(arrays), batch_first=batch_first)
    packed = pack_padded_sequence(padded, lengths, batch_first, enforce_sorted=False)
    again, found = pad_packed_sequence(packed, batch_first)
    assert found.tolist() == lengths
    assert np.array_equal(again.numpy(), padded.numpy())
    for got, expected in zip(unpack_sequence(packed), arrays, strict=True):
        assert np.array_equal(got.numpy(), expected)
    for got, expected in zip(unpad_sequence(padded, found, batch_first), arrays, strict=True):
        assert np.array_equal(got.numpy(), expected)


@given(lengths_lists)
def test_packed_data_goes_by_time_then_by_falling_length(lengths):
    arrays = sequences_of(lengths)
    packed = pack_sequence(tensors(arrays), enforce_sorted=False)
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    expected = [arrays[i][t] for t in range(max(lengths)) for i in order if t < lengths[i]]
    assert packed.data.tolist() == expected
    assert packed.batch_sizes.tolist() == [sum(n > t for n in lengths) for t in range(max(lengths))]
    assert packed.sorted_indices.tolist() == order
    assert [packed.unsorted_indices.tolist()[i] for i in order] == list(range(len(lengths)))


def test_a_sorted_batch_keeps_no_order():
    packed = pack_sequence(tensors(sequences_of([3, 3, 1])))
    assert packed.sorted_indices is None
    assert packed.unsorted_indices is None


def test_padding_value_side_and_total_length():
    rows = [wf.tensor([1, 2, 3]), wf.tensor([4])]
    left = pad_sequence(rows, batch_first=True, padding_value=9, padding_side="left")
    assert left.tolist() == [[1, 2, 3], [9, 9, 4]]
    padded, lengths = pad_packed_sequence(pack_sequence(rows), True, -1.0, total_length=4)
    assert padded.tolist() == [[1, 2, 3, -1], [4, -1, -1, -1]]
    assert lengths.tolist() == [3, 1]
    assert padded.dtype == wf.int64


def test_an_empty_sequence_can_be_padded_but_not_packed():
    rows = [wf.tensor([1.0]), wf.zeros(0)]
    assert pad_sequence(rows, batch_first=True).tolist() == [[1.0], [0.0]]
    with pytest.raises(ValueError, match=r"each length must lie in 1\.\.1.*\[1, 0\]"):
        pack_sequence(rows)


def test_lengths_may_leave_out_steps_at_the_end():
    packed = pack_padded_sequence(wf.arange(8).reshape(4, 2), wf.tensor([2, 1]))
    assert packed.data.tolist() == [0, 1, 2]
    assert pad_packed_sequence(packed)[0].shape == (2, 2)


def test_padding_is_outside_of_every_gradient():
    arrays = sequences_of([2, 4, 1], 2)

    def through(*rows):
        packed = pack_sequence(rows, enforce_sorted=False)
        return pad_packed_sequence(packed, padding_value=5.0)[0]

    check_grads(through, arrays, order=2)


def test_padding_with_nan_does_not_leak():
    rows = [wf.tensor(a, requires_grad=True) for a in sequences_of([3, 1])]
    padded, _ = pad_packed_sequence(pack_sequence(rows), padding_value=np.nan)
    wf.where(wf.isnan(padded), 0.0, padded).sum().backward()
    assert rows[1].grad.tolist() == [1.0]


@pytest.mark.parametrize("kind", [RNN, GRU, LSTM])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("given_state", [False, True])
def test_each_packed_sequence_runs_as_if_alone(kind, bidirectional, given_state):
    lengths = [2, 5, 5, 1, 3]
    net = kind(3, 4, num_layers=2, bidirectional=bidirectional, dtype=wf.float64)
    arrays = sequences_of(lengths, 3)
    runs = 4 if bidirectional else 2
    states = np.random.default_rng(1).normal(size=(2 if kind is LSTM else 1, runs, 5, 4))
    if not given_state:
        states[:] = 0

    def state_of(values):
        return tuple(map(wf.tensor, values)) if kind is LSTM else wf.tensor(values[0])

    packed = pack_sequence(tensors(arrays), enforce_sorted=False)
    output, final = net(packed, state_of(states) if given_state else None)
    finals = final if kind is LSTM else (final,)
    for i, got in enumerate(unpack_sequence(output)):
        alone, ends = net(wf.tensor(arrays[i][:, None]), state_of(states[:, :, i : i + 1]))
        np.testing.assert_allclose(got.detach().numpy(), alone.detach().numpy()[:, 0], rtol=1e-9)
        for a, b in zip(finals, ends if kind is LSTM else (ends,), strict=True):
            np.testing.assert_allclose(
                a.detach().numpy()[:, i], b.detach().numpy()[:, 0], rtol=1e-9
            )


@pytest.mark.parametrize("kind", [RNN, GRU, LSTM])
def test_derivatives_through_a_packed_batch(kind):
    net = kind(2, 3, bidirectional=True, dtype=wf.float64)
    arrays = sequences_of([1, 3, 2], 2)

    def run(*rows):
        output, final = net(pack_sequence(rows, enforce_sorted=False))
        return output.data, final

    check_grads(run, arrays, order=1)


def test_a_packed_sequence_made_by_hand_is_put_back_in_order():
    data, sizes = wf.tensor([10.0, 20.0, 11.0]), wf.tensor([2, 1])
    packed = PackedSequence(data, sizes, wf.tensor([1, 0]))
    padded, lengths = pad_packed_sequence(packed, batch_first=True)
    assert padded.tolist() == [[20.0, 0.0], [10.0, 11.0]]
    assert lengths.tolist() == [1, 2]
    assert packed.to(wf.float64).data.dtype == wf.float64


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda: pad_sequence([]), ValueError, "at least one sequence"),
        (lambda: pad_sequence([[1, 2]]), TypeError, "must be a tensor. Received: list"),
        (lambda: pad_sequence([wf.zeros(2), wf.zeros(2, 1)]), ValueError, r"\(2,\) and \(2, 1\)"),
        (lambda: pad_sequence([wf.tensor(1.0)]), ValueError, r"shape \(length, \.\.\.\)"),
        (
            lambda: pad_sequence([wf.zeros(2)], padding_side="top"),
            ValueError,
            "'left' or 'right'.*'top'",
        ),
        (
            lambda: pack_padded_sequence(wf.zeros(3, 2), [1, 2]),
            ValueError,
            r"must not increase. Received: \[1, 2\]; pass enforce_sorted=False",
        ),
        (lambda: pack_padded_sequence(wf.zeros(3, 2), [4, 1]), ValueError, r"1\.\.3.*\[4, 1\]"),
        (lambda: pack_padded_sequence(wf.zeros(3, 2), [2]), ValueError, "each of the 2 sequences"),
        (lambda: pack_padded_sequence(wf.zeros(3, 0), []), ValueError, "there must be some"),
        (lambda: pack_padded_sequence(wf.zeros(3, 2), [2.0, 1.0]), TypeError, "must be integers"),
        (lambda: pack_padded_sequence(wf.zeros(3), [3]), ValueError, r"Received: \(3,\)"),
        (lambda: pad_packed_sequence(wf.zeros(3)), TypeError, "expected a PackedSequence"),
        (
            lambda: pad_packed_sequence(pack_sequence([wf.zeros(3)]), total_length=2),
            ValueError,
            "at least 3.*Received: 2",
        ),
        (
            lambda: pad_packed_sequence(
                pack_sequence([wf.tensor([1, 2]), wf.tensor([3])]), True, 0.5
            ),
            ValueError,
            "a number that int64 can hold. Received: 0.5",
        ),
        (
            lambda: GRU(1, 2)(PackedSequence(wf.zeros(3, 1), wf.tensor([1, 2]))),
            ValueError,
            r"must not increase.*\(1, 2\)",
        ),
        (
            lambda: GRU(1, 2)(PackedSequence(wf.zeros(4, 1), wf.tensor([2, 1]))),
            ValueError,
            "length of data, 4",
        ),
        (lambda: GRU(1, 2)(pack_sequence([wf.zeros(3)])), ValueError, r"\(total length, in\)"),
    ],
)
def test_bad_input_is_explained(build, error, match):
    with pytest.raises(error, match=match):
        build()
