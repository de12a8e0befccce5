"""Tensor arrays: a stack of tensors that loops write one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.op import F
from ..ops.creation import full as make_full
from .dtypes import as_dtype
from .environment import NotKnownError, whole_numbers
from .graph import Operation, get_default_graph
from .recording import Tensor, constant, convert_to_tensor, given, record
from .shapes import TensorShape

__all__ = ["TensorArray"]


@dataclass(frozen=True)
class Pending:
    """An array to which nothing has been written: the shape of its elements is not known."""

    size: Any
    dtype: Any


class NewArray(Operation):
    """Makes the memory of an array; of elements of unknown shape, when the first one is written."""

    def __init__(self, size: Any, dtype: Any, element: TensorShape) -> None:
        super().__init__(get_default_graph(), "TensorArray", [size], static=[0], name="TensorArray")
        self.dtype = dtype
        self.element = element

    def evaluate(self, env: Any, values: Sequence[Any]) -> Any:
        """Return zeros, or what stands for them."""
        (size,) = whole_numbers(values[0])
        if self.element.is_fully_defined():
            return make_full((size, *self.element.as_list()), 0, dtype=self.dtype.dtype)
        return Pending(size, self.dtype)


class TensorArray:
    """An array of tensors: `ta.write(i, x)` returns the array with x in it, `ta.stack()` all."""

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: Any = None,
        clear_after_read: Any = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        self.dtype = as_dtype(dtype)
        self.element = TensorShape(element_shape)
        if size is None and flow is None:
            raise ValueError("Size must be provided if handle is not provided")
        if isinstance(size, int) and size == 0 and dynamic_size:
            raise ValueError(
                "TensorArray: arrays that grow are not served; say the size: TensorArray(dtype, "
                "size=n)"
            )
        if flow is not None:
            self._tensor: Tensor = flow
        else:
            operation = NewArray(convert_to_tensor(size), self.dtype, self.element)
            self._tensor = given(operation, self._whole(), self.dtype)

    def _whole(self) -> TensorShape:
        return TensorShape([None]).concatenate(self.element)

    def of(self, tensor: Tensor) -> TensorArray:
        """Return the array whose elements a tensor holds."""
        return TensorArray(self.dtype, flow=tensor, element_shape=self.element)

    def as_tensor(self) -> Tensor:
        """Return the tensor that holds the elements."""
        return self._tensor

    @property
    def flow(self) -> Tensor:
        """Return what orders the writes: the elements themselves."""
        return self._tensor

    handle = flow

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Return the array with an element written."""
        x = convert_to_tensor(value)
        if x.dtype != self.dtype:
            raise TypeError(
                f"TensorArray dtype is {self.dtype.name} but Op is trying to write dtype "
                f"{x.dtype.name}"
            )
        operation = Write(self._tensor, convert_to_tensor(index), x, name)
        element = self.element if self.element.sizes is not None else x.shape
        made = given(operation, TensorShape([None]).concatenate(element), self.dtype)
        return TensorArray(self.dtype, flow=made, element_shape=element)

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """Return an element."""
        made: Tensor = record(
            "TensorArrayRead", lambda x, i: F.take(x, i, 0), [self._tensor, index], name=name
        )
        return made

    def stack(self, name: str | None = None) -> Tensor:
        """Return all elements as one tensor."""
        made: Tensor = record("TensorArrayGather", lambda x: x, [self._tensor], name=name)
        return made

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """Return some elements as one tensor."""
        made: Tensor = record(
            "TensorArrayGather", lambda x, i: F.take(x, i, 0), [self._tensor, indices], name=name
        )
        return made

    def concat(self, name: str | None = None) -> Tensor:
        """Return all elements one after another."""
        made: Tensor = record(
            "TensorArrayConcat",
            lambda x: F.reshape(x, (-1, *x.shape[2:])),
            [self._tensor],
            name=name,
        )
        return made

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Return the array of the parts of a tensor."""
        x = convert_to_tensor(value)
        element = None if x.shape.sizes is None else x.shape.sizes[1:]
        return TensorArray(self.dtype, flow=x, element_shape=element)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Return the array with several elements written."""
        made = self
        for position, index in enumerate(np.asarray(indices).tolist()):
            made = made.write(index, convert_to_tensor(value)[position])
        return made

    def size(self, name: str | None = None) -> Tensor:
        """Return the number of elements."""
        if isinstance(self._tensor.op, NewArray):
            found: Tensor = self._tensor.op.inputs[0]
            return found
        made: Tensor = record(
            "TensorArraySize",
            lambda x: np.array(x.shape[0], np.int32),
            [self._tensor],
            name=name,
            dtype="int32",
        )
        return made

    def identity(self) -> TensorArray:
        """Return the array."""
        return self

    def close(self, name: str | None = None) -> Any:
        """Do nothing: memory is Weft's."""
        return constant(0).op


class Write(Operation):
    """Writes an element of an array."""

    def __init__(self, array: Tensor, index: Tensor, value: Tensor, name: str | None) -> None:
        super().__init__(array.graph, "TensorArrayWrite", [array, index, value], name=name)

    def evaluate(self, env: Any, values: Sequence[Any]) -> Any:
        """Return the elements with one of them written."""
        whole, index, value = values
        if isinstance(whole, Pending):
            whole = _zeros(whole, value)
        return F.index_set(whole, (index,), value)


def _zeros(pending: Pending, value: Any) -> Any:
    return make_full((pending.size, *value.shape), 0, dtype=pending.dtype.dtype)


def as_loop_values(env: Any, tensors: Sequence[Tensor], values: Sequence[Any]) -> Iterator[Any]:
    """Yield what a loop begins with."""
    yield from values


def settled(env: Any, body: Any, start: list[Any]) -> list[Any]:
    """Return what a loop begins with, with memory for arrays of which only now the elements tell.

    The body is built once beside the loop to see what it writes; nothing of that runs.
    """
    if not any(isinstance(value, Pending) for value in start):
        return start
    probe = body.evaluate(env, start)
    made = list(start)
    for i, (value, output) in enumerate(zip(start, body.outputs, strict=True)):
        if isinstance(value, Pending):
            written = probe.value(output)
            if isinstance(written, Pending):
                raise NotKnownError
            made[i] = make_full(written.shape, 0, dtype=value.dtype.dtype)
    return made
