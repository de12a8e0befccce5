"""Tensors of this face in recordings of functions: loaded with what records."""

from __future__ import annotations

from typing import Any

from ..capture.recorded import RecordedNumber, RecordedSnapshot, RecordedTensor
from ..capture.recorded_call import MAKERS
from ..capture.stand_in import STAND_INS, StandIn
from ..capture.watch.trust import take_as_computing
from .adoption import FACES
from .tensor import Tensor, wrap
from .tensor_methods import TensorMethods
from .views import RECORDED, Viewing, value_now


class Recorded(TensorMethods, RecordedTensor):  # type: ignore[misc]  # Symbol refuses backward
    """A value of a recording, with PyTorch's methods."""

    __slots__ = ()


class RecordedArgument(TensorMethods, StandIn):  # type: ignore[misc]  # likewise
    """What stands for an argument in a recording for many sizes, with PyTorch's methods."""

    __slots__ = ()


class RecordedView(Viewing, Recorded):  # type: ignore[misc]  # Symbol refuses backward
    """A view in a recording."""

    __slots__ = ("_held", "_seen", "_where", "_window", "is_view_of")

    _held: Any
    _seen: Any

    @property
    def value(self) -> Any:
        """Return the value of the graph that it is at this point of the program."""
        now = value_now(self.is_view_of)
        if now is not self._seen:
            self._held, self._seen = self.graph.tracer.value_of(self.derived()), now
        return self._held

    @value.setter
    def value(self, value: Any) -> None:
        self._held = value


FACES[RecordedTensor] = Recorded
FACES[RecordedNumber] = FACES[RecordedSnapshot] = FACES[RecordedView] = None
RECORDED[Recorded] = RecordedView
MAKERS[Recorded] = MAKERS[RecordedView] = wrap
STAND_INS[Tensor] = RecordedArgument
# Which chooses by the class of a tensor, and keeps plans of what it did. It leaves it to PyTorch's
# compiler to know that, since PyTorch 2.8.
take_as_computing("einops")
