"""Recurrent networks over time: dynamic, static, in both directions."""

from __future__ import annotations

from typing import Any

from ...core.op import F
from ..array_ops import concat, reverse, shape
from ..functional import scanned
from ..indexing import where
from ..math_ops import cast
from ..nest import flatten, pack_sequence_as
from ..recording import Tensor, constant, convert_to_tensor, record
from ..variable_scope import variable_scope


def dynamic_rnn(
    cell: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: Any = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, Any]:
    """Return the outputs of all steps and the last state: (N, T, units), or (T, N, units).

    sequence_length   of each example; behind it outputs are zeros and the state stays
    """
    x = convert_to_tensor(inputs)
    with variable_scope(scope or "rnn"):
        steps = x if time_major else swapped(x)
        batch = (
            steps.shape.sizes[1] if steps.shape.sizes and steps.shape.sizes[1] else shape(steps)[1]
        )
        state = _first_state(cell, initial_state, batch, dtype)
        lengths = (
            None if sequence_length is None else cast(convert_to_tensor(sequence_length), "int32")
        )
        outputs, last = _over_time(cell, steps, state, lengths)
        return (outputs if time_major else swapped(outputs)), last


def swapped(x: Any) -> Tensor:
    """Return a tensor with its first two axes exchanged."""
    value = convert_to_tensor(x)
    made: Tensor = record("Transpose", lambda v: F.swapaxes(v, 0, 1), [value])
    return made


def _first_state(cell: Any, given: Any, batch: Any, dtype: Any) -> Any:
    if given is not None:
        return given
    if dtype is None:
        raise ValueError("If there is no initial_state, you must give a dtype.")
    return cell.zero_state(batch, dtype)


def _over_time(cell: Any, steps: Tensor, state: Any, lengths: Any) -> tuple[Tensor, Any]:
    leaves = [convert_to_tensor(s) for s in flatten(state)]
    count = [constant(0)] if lengths is not None else []

    def step(carry: Any, elements: Any) -> Any:
        before = pack_sequence_as(state, carry[len(count) :])
        output, after = cell(elements[0], before)
        new = [convert_to_tensor(s) for s in flatten(after)]
        if lengths is None:
            return new, [output]
        going = carry[0] < lengths
        kept = [where(going, a, b) for a, b in zip(new, carry[1:], strict=True)]
        return [carry[0] + 1, *kept], [where(going, output, output * 0.0)]

    last, outputs = scanned(step, [*count, *leaves], [steps], name="while")
    return outputs[0], pack_sequence_as(state, last[len(count) :])


def bidirectional_dynamic_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    parallel_iterations: Any = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, Any]:
    """Return the outputs and last states of one network from the front and one from the back."""
    axis = 0 if time_major else 1
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as fw:
            forward, last_fw = dynamic_rnn(
                cell_fw,
                inputs,
                sequence_length,
                initial_state_fw,
                dtype,
                time_major=time_major,
                scope=fw,
            )
        with variable_scope("bw") as bw:
            turned = _turned(inputs, sequence_length, axis)
            backward, last_bw = dynamic_rnn(
                cell_bw,
                turned,
                sequence_length,
                initial_state_bw,
                dtype,
                time_major=time_major,
                scope=bw,
            )
        return (forward, _turned(backward, sequence_length, axis)), (last_fw, last_bw)


def _turned(x: Any, lengths: Any, axis: int) -> Tensor:
    if lengths is None:
        return reverse(x, [axis])
    return reverse_sequence(x, lengths, seq_axis=axis, batch_axis=1 - axis)


def reverse_sequence(
    input: Any,
    seq_lengths: Any,
    seq_axis: Any = None,
    batch_axis: Any = None,
    name: str | None = None,
    seq_dim: Any = None,
    batch_dim: Any = None,
) -> Tensor:
    """Return sequences with their first elements, as many as each is long, in reverse order."""
    along = seq_dim if seq_axis is None else seq_axis
    across = (batch_dim if batch_axis is None else batch_axis) or 0

    def compute(x: Any, lengths: Any) -> Any:
        size = x.shape[along]
        place = F.cumsum(F.ones_like(_row(lengths, size)), 0) - 1
        n = F.expand_dims(F.cast(lengths, "int64"), -1)
        index = F.where(place < n, n - 1 - place, place)  # (batch, time)
        index = index if across < along else F.matrix_transpose(index)
        low, high = sorted((across, along))
        sizes = [1] * x.ndim
        sizes[low], sizes[high] = x.shape[low], x.shape[high]
        return F.take_along_axis(x, F.broadcast_to(F.reshape(index, tuple(sizes)), x.shape), along)

    made: Tensor = record("ReverseSequence", compute, [input, seq_lengths], name=name)
    return made


def _row(lengths: Any, size: int) -> Any:
    first = F.cast(F.reshape(lengths, (-1,))[:1], "int64")
    return F.broadcast_to(first, (size,))


def static_rnn(
    cell: Any,
    inputs: Any,
    initial_state: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Return the outputs of all steps, and the last state; inputs are a list of (N, depth)."""
    if not isinstance(inputs, (list, tuple)):
        raise TypeError("inputs must be a sequence")
    if not inputs:
        raise ValueError("inputs must not be empty")
    first = convert_to_tensor(inputs[0])
    with variable_scope(scope or "rnn"):
        batch = (
            first.shape.sizes[0] if first.shape.sizes and first.shape.sizes[0] else shape(first)[0]
        )
        state = _first_state(cell, initial_state, batch, dtype)
        outputs = []
        for time, x in enumerate(inputs):
            output, after = cell(x, state)
            if sequence_length is not None:
                going = convert_to_tensor(sequence_length) > constant(
                    time, convert_to_tensor(sequence_length).dtype
                )
                kept = [
                    where(going, a, b) for a, b in zip(flatten(after), flatten(state), strict=True)
                ]
                output, after = where(going, output, output * 0.0), pack_sequence_as(after, kept)
            state = after
            outputs.append(output)
        return outputs, state


def static_bidirectional_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any, Any]:
    """Return the outputs of both directions side by side as a list, and the last states."""
    if sequence_length is not None:
        raise ValueError(
            "static_bidirectional_rnn: use bidirectional_dynamic_rnn with sequence_length"
        )
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as fw:
            forward, last_fw = static_rnn(cell_fw, inputs, initial_state_fw, dtype, scope=fw)
        with variable_scope("bw") as bw:
            backward, last_bw = static_rnn(
                cell_bw, list(reversed(inputs)), initial_state_bw, dtype, scope=bw
            )
    joined = [concat([a, b], 1) for a, b in zip(forward, reversed(backward), strict=True)]
    return joined, last_fw, last_bw


def static_state_saving_rnn(*args: Any, **options: Any) -> Any:
    """Refuse; say what to use."""
    raise NotImplementedError("static_state_saving_rnn: use static_rnn with initial_state")
