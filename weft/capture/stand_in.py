"""What a function is given in place of a tensor whose sizes are to be those of any call.

A tensor itself would tell its numbers (`x.shape`). Where something is asked that only the tensor
can answer, the recording ends, and one for the sizes at hand is made with the tensor itself.
"""

from __future__ import annotations

from typing import Any

from ..core.device import CPU
from ..core.device_array import is_placed
from ..core.tensor import PLAIN, Tensor
from ..graph.node import Value
from .recorded import RecordedTensor


class StandIn(RecordedTensor):
    """An argument of a call, with the value that stands for it."""

    __slots__ = ("tensor",)

    tensor: Tensor

    def _rebind(self, result: Tensor) -> Tensor:
        """Write to the argument, as all do who hold it."""
        super()._rebind(result)
        self.graph.tracer.write_argument(self.tensor, self.value)
        return self

    def requires_grad_(self, flag: bool = True) -> Tensor:
        """Refuse to change what the caller's tensor is."""
        if flag:
            self.graph.tracer.refuse("it changes requires_grad of a tensor from outside")
        return self

    @property
    def grad(self) -> Any:
        """Refuse: only the tensor knows."""
        return self.graph.tracer.refuse("reads the gradient of an argument")

    @grad.setter
    def grad(self, value: Any) -> None:
        self.graph.tracer.refuse("sets the gradient of an argument")


# What stands for tensors of a face, by their classes: it has the face's methods too.
STAND_INS: dict[type, type[StandIn]] = {}


def can_stand_in(leaf: Any) -> bool:
    """Tell whether a tensor is one of many alike: no parameter, and nothing that has a history."""
    is_known = type(leaf) in PLAIN and leaf._node is None
    return is_known and (leaf.device == CPU or is_placed(leaf._value))


def stand_in(graph: Any, value: Value, tensor: Tensor) -> StandIn:
    """Return what stands for an argument, and note that it does."""
    made: StandIn = object.__new__(STAND_INS.get(type(tensor), StandIn))
    made.graph, made.value, made.tensor = graph, value, tensor
    graph.tracer.stood_for[id(tensor)] = tensor
    return made
