"""Sequences of different lengths, packed and padded."""

from __future__ import annotations

from typing import Any

from .... import nn as core_nn
from ...adoption import adopt
from ...phrasing import phrased

PackedSequence = core_nn.PackedSequence


@phrased
def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Any:
    """Return sequences as one tensor, shorter ones filled up."""
    if padding_side == "left":
        turned = [s.flip(0) for s in sequences]
        padded = pad_sequence(turned, batch_first, padding_value)
        return padded.flip(1 if batch_first else 0)
    return adopt(core_nn.pad_sequence(list(sequences), batch_first, padding_value))


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> Any:
    """Return the sequences in a padded tensor."""
    return adopt(core_nn.unpad_sequence(padded_sequences, lengths, batch_first))


@phrased
def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> Any:
    """Return a padded tensor of sequences without what fills it up."""
    return adopt(core_nn.pack_padded_sequence(input, lengths, batch_first, enforce_sorted))


def pad_packed_sequence(
    sequence: Any, batch_first: bool = False, padding_value: float = 0.0, total_length: Any = None
) -> Any:
    """Return packed sequences as a padded tensor, and their lengths."""
    return adopt(core_nn.pad_packed_sequence(sequence, batch_first, padding_value, total_length))


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> Any:
    """Return sequences packed."""
    return adopt(core_nn.pack_sequence(list(sequences), enforce_sorted))


def unpack_sequence(packed_sequences: Any) -> Any:
    """Return the sequences that are packed."""
    return adopt(core_nn.unpack_sequence(packed_sequences))
