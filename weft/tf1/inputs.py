"""Inputs by queues: producers of names and numbers, and batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..core.rng import Generator
from ..data.streams import fresh_seed, permutation
from .data import reading
from .dtypes import int32, string
from .errors import OutOfRangeError
from .host import host_operation
from .queue_runner import QueueRunner, add_queue_runner
from .queues import FIFOQueue, PaddingFIFOQueue, QueueBase, RandomShuffleQueue
from .recording import convert_to_tensor
from .shapes import TensorShape

__all__ = [
    "batch",
    "batch_join",
    "input_producer",
    "limit_epochs",
    "match_filenames_once",
    "maybe_batch",
    "range_input_producer",
    "shuffle_batch",
    "shuffle_batch_join",
    "slice_input_producer",
    "string_input_producer",
]


# -- producers -------------------------------------------------------------------------------------


def input_producer(
    input_tensor: Any,
    element_shape: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: Any = None,
    summary_name: Any = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> QueueBase:
    """Return a queue with the rows of a tensor, again and again or for some epochs."""
    rows = convert_to_tensor(input_tensor)
    queue = FIFOQueue(
        capacity, [rows.dtype], [TensorShape(rows.shape[1:])], name=name or "input_producer"
    )
    epochs = limit_epochs(_shuffled(rows, seed) if shuffle else rows, num_epochs)
    add_queue_runner(QueueRunner(queue, [queue.enqueue_many([epochs])]))
    return queue


def string_input_producer(
    string_tensor: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: Any = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> QueueBase:
    """Return a queue with texts, such as names of files."""
    if isinstance(string_tensor, (list, tuple)) and not string_tensor:
        raise ValueError("string_input_producer requires a non-null input tensor")
    given = convert_to_tensor(string_tensor, string)
    return input_producer(
        given, None, num_epochs, shuffle, seed, capacity, name=name or "string_input_producer"
    )


def range_input_producer(
    limit: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: Any = None,
    name: str | None = None,
) -> QueueBase:
    """Return a queue with the numbers from 0 up to a limit."""
    given = convert_to_tensor(limit, int32)
    numbers = host_operation(
        "Range",
        lambda session, stop: [np.arange(int(stop), dtype=np.int32)],
        [given],
        outputs=[(int32, [None])],
    )
    return input_producer(
        numbers, None, num_epochs, shuffle, seed, capacity, name=name or "range_input_producer"
    )


def slice_input_producer(
    tensor_list: Sequence[Any],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: Any = None,
    name: str | None = None,
) -> list[Any]:
    """Return one row of each of several tensors, at the same place in all."""
    if not tensor_list:
        raise ValueError("Expected at least one tensor in slice_input_producer().")
    tensors = [convert_to_tensor(x) for x in tensor_list]
    sizes = {t.shape.as_list()[0] for t in tensors if t.shape.ndims is not None} - {None}
    if len(sizes) != 1:
        raise ValueError(f"slice_input_producer: lengths must be known and equal: {sizes}")
    queue = range_input_producer(sizes.pop(), num_epochs, shuffle, seed, capacity, name=name)
    made = host_operation(
        "Slice",
        lambda session, i, *arrays: [
            np.asarray(a)[int(i) : int(i) + 1].reshape(a.shape[1:]) for a in arrays
        ],
        [queue.dequeue(), *tensors],
        outputs=[(t.dtype, TensorShape(t.shape[1:])) for t in tensors],
    )
    return list(made) if len(tensors) > 1 else [made]


def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str | None = None) -> Any:
    """Return a tensor that has its value so many times; then the input ends."""
    given = convert_to_tensor(tensor)
    if num_epochs is None:
        return given
    if num_epochs <= 0:
        raise ValueError(f"num_epochs must be > 0 not {num_epochs}.")
    counts: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

    def call(session: Any, array: Any) -> list[Any]:
        counts[session] = counts.get(session, 0) + 1
        if counts[session] > num_epochs:
            raise OutOfRangeError(None, None, f"Reached limit of {num_epochs}")
        return [array]

    return host_operation("LimitEpochs", call, [given], outputs=[(given.dtype, given.shape)])


def match_filenames_once(pattern: Any, name: str | None = None) -> Any:
    """Return the names of the files that match patterns, as a constant."""
    return convert_to_tensor(reading.matching_files(pattern), string)


def _shuffled(rows: Any, seed: int | None) -> Any:
    graph_seed = rows.graph.seed
    known = seed is not None or graph_seed is not None
    generator = Generator(abs(hash((seed or 0, graph_seed or 0))) if known else fresh_seed())
    return host_operation(
        "RandomShuffle",
        lambda session, array: [array[permutation(len(array), generator=generator)]],
        [rows],
        outputs=[(rows.dtype, rows.shape)],
    )


# -- batches ---------------------------------------------------------------------------------------


def batch(
    tensors: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: Any = None,
    name: str | None = None,
) -> Any:
    """Return batches of successive values of tensors."""
    kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue
    return _batches(
        [tensors],
        batch_size,
        lambda types, sizes: kind(capacity, types, sizes, name=name or "batch"),
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
    )


def shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: Any = None,
    name: str | None = None,
) -> Any:
    """Return batches of values of tensors in a random order."""
    return _batches(
        [tensors],
        batch_size,
        lambda types, sizes: RandomShuffleQueue(
            capacity, min_after_dequeue, types, sizes, seed=seed, name=name or "shuffle_batch"
        ),
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
    )


def batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: Any = None,
    name: str | None = None,
) -> Any:
    """Return batches of values of several lists of tensors, in turn."""
    kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue
    return _batches(
        tensors_list,
        batch_size,
        lambda types, sizes: kind(capacity, types, sizes, name=name or "batch_join"),
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
    )


def shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: Any = None,
    name: str | None = None,
) -> Any:
    """Return batches of values of several lists of tensors, in a random order."""
    return _batches(
        tensors_list,
        batch_size,
        lambda types, sizes: RandomShuffleQueue(
            capacity, min_after_dequeue, types, sizes, seed=seed, name=name or "shuffle_batch_join"
        ),
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
    )


def maybe_batch(*args: Any, **kwargs: Any) -> Any:
    """Refuse; say what to use."""
    raise NotImplementedError("maybe_batch: use tf.data.Dataset.filter and batch")


def _batches(
    lists: Sequence[Any],
    batch_size: Any,
    make: Callable[[Any, Any], QueueBase],
    enqueue_many: bool,
    shapes: Any,
    smaller: bool,
) -> Any:
    given = lists[0]
    columns = [_listed(tensors) for tensors in lists]
    types = [tensor.dtype for tensor in columns[0]]
    known = (
        [TensorShape(t.shape[1:]) if enqueue_many else t.shape for t in columns[0]]
        if shapes is None
        else [TensorShape(shape) for shape in shapes]
    )
    queue = make(types, known)
    put = queue.enqueue_many if enqueue_many else queue.enqueue
    for column in columns:
        add_queue_runner(QueueRunner(queue, [put(column if len(column) > 1 else column[0])]))
    take = queue.dequeue_up_to if smaller else queue.dequeue_many
    made = take(batch_size)
    found = made if len(types) > 1 else [made]
    if isinstance(given, dict):
        return dict(zip(given, found, strict=True))
    return list(found) if isinstance(given, (list, tuple)) and len(found) > 1 else found[0]


def _listed(tensors: Any) -> list[Any]:
    if isinstance(tensors, dict):
        return [convert_to_tensor(x) for x in tensors.values()]
    if isinstance(tensors, (list, tuple)):
        return [convert_to_tensor(x) for x in tensors]
    return [convert_to_tensor(tensors)]
