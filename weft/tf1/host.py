"""Operations that Python does: files, queues, summaries, functions of the program's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .dtypes import as_dtype
from .graph import Operation
from .recording import convert_to_tensor, given, graph_of
from .shapes import TensorShape


class HostOperation(Operation):
    """An operation whose work a function of Python's does.

    call   takes the session and the arrays of the inputs (texts as arrays of objects), returns a
           sequence of the values of the outputs
    A run computes the inputs, calls it once, and goes on with what it returned. It runs whenever it
    is fetched or something that is fetched depends on it.
    """

    host = True

    def __init__(
        self,
        type: str,
        call: Callable[..., Any],
        inputs: Sequence[Any] = (),
        *,
        outputs: Sequence[tuple[Any, Any]] = (),
        name: str | None = None,
    ) -> None:
        tensors = [convert_to_tensor(x) for x in inputs]
        super().__init__(graph_of(tensors), type, tensors, name=name, differentiable=False)
        if self.body is not None:
            raise ValueError(
                f"{self.name} ({type}) is done by Python and cannot stand inside tf.cond or "
                "tf.while_loop; make it outside, and use its result there"
            )
        self.call = call
        for dtype, shape in outputs:
            given(self, TensorShape(shape), as_dtype(dtype))


def host_operation(
    type: str,
    call: Callable[..., Any],
    inputs: Sequence[Any] = (),
    *,
    outputs: Sequence[tuple[Any, Any]] = (),
    name: str | None = None,
) -> Any:
    """Add an operation that Python does; return its results, or the operation if it has none.

    outputs   a dtype and a static shape (None: any) for each result

    >>> import numpy as np
    >>> from weft.tf1 import Session
    >>> twice = host_operation(
    ...     "Twice", lambda session, x: [2 * x], [np.float32(4)], outputs=[("float32", ())]
    ... )
    >>> float(Session().run(twice))
    8.0
    """
    operation = HostOperation(type, call, inputs, outputs=outputs, name=name)
    if not operation.outputs:
        return operation
    return operation.outputs[0] if len(operation.outputs) == 1 else list(operation.outputs)
