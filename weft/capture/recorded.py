"""What a recorded function computes with: symbols that can be asked for their value.

Operations on them become nodes, as on any symbol. Reading one gives its value, computed there and
then from the nodes behind it, and the recording notes what was read: the path that Python takes
from there on holds only for that value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core.errors import GradientError
from ..core.op import F
from ..core.snapshot import Snapshot
from ..core.tensor import Tensor
from ..graph.symbol import Symbol
from .number_arithmetic import (
    OPERATIONS,
    can_be_done,
    is_internal_call,
    is_number,
    note_bound,
    plain,
)


class RecordedTensor(Symbol):
    """A value of a recording."""

    __slots__ = ()

    # What Tensor does, by way of `_read`, Symbol refuses.
    numpy = Tensor.numpy
    item = Tensor.item
    tolist = Tensor.tolist
    __array__ = Tensor.__array__
    __dlpack__ = Tensor.__dlpack__
    __bool__ = Tensor.__bool__
    __float__ = Tensor.__float__
    __int__ = Tensor.__int__
    __index__ = Tensor.__index__
    __contains__ = Tensor.__contains__
    __len__ = Tensor.__len__
    __iter__ = Tensor.__iter__
    __format__ = Tensor.__format__

    def _read(self) -> np.ndarray[Any, Any]:
        seen: np.ndarray[Any, Any] = self.graph.tracer.look(self)
        return seen

    def __repr__(self) -> str:
        shown = Tensor.__repr__(_as_tensor(self, self._read()))
        if not self.requires_grad:
            return shown
        state = "requires_grad=True" if self.is_leaf else f"grad_fn=<{self.value.node.op.name}>"
        return f"{shown[:-1]}, {state})"

    def __copy__(self) -> Tensor:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise GradientError(
                "only leaves can be deep-copied; use x.detach() or x.clone() for a result"
            )
        copy: Tensor = F.positive(self.detach())
        memo[id(self)] = copy
        return copy.requires_grad_() if self.requires_grad else copy

    # -- gradients ---------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Tell whether eager mode would record what is computed from it."""
        return self.value in self.graph.tracer.tracked

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self.requires_grad_(flag)

    def requires_grad_(self, flag: bool = True) -> Tensor:
        """Start (or stop) recording gradients with respect to this leaf; return it."""
        self.graph.tracer.switch(self, flag)
        return self

    @property
    def is_leaf(self) -> bool:
        """Tell whether no recorded operation made it."""
        return not self.requires_grad or self.value in self.graph.tracer.inner_leaves

    @property
    def grad(self) -> Any:
        """Return the gradient that `backward` left here, or None."""
        return self.graph.tracer.grads.read(self)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        self.graph.tracer.grads.write(self, value)

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    def backward(self, *args: Any, **kwargs: Any) -> None:  # type: ignore[override]  # Symbol refuses
        """Add the gradients of this tensor to `.grad` of every leaf it depends on."""
        self.graph.tracer.backward(self, *args, **kwargs)

    def retain_grad(self) -> None:
        """Keep `.grad` of this non-leaf tensor after backward."""
        if not self.requires_grad:
            raise GradientError("cannot retain the gradient of a tensor that requires none")
        self.graph.tracer.watch_of(self).retain = True


class RecordedNumber(RecordedTensor):
    """A Python number that follows from values of a recording: what `.item()` gives there.

    It takes the dtype of the tensor that it meets, as a Python number does.
    """

    __slots__ = ()

    weak = True

    def item(self) -> Any:
        """Return the number itself."""
        return self

    def plain(self) -> Any:
        """Return the number as Python has it, which is read by that."""
        return self._read().item()

    def __str__(self) -> str:
        return str(self._read().item())

    def __repr__(self) -> str:
        return repr(self._read().item())

    def __format__(self, spec: str) -> str:
        return format(self._read().item(), spec)

    def __round__(self, ndigits: int | None = None) -> Any:
        return round(self._read().item(), ndigits)

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise TypeError("'float' object cannot be interpreted as an integer")
        return int(self._read().item())

    def __iter__(self) -> Iterator[Tensor]:
        raise TypeError(f"'{type(self._read().item()).__name__}' object is not iterable")

    def __hash__(self) -> int:
        return hash(self._read().item())

    def _changed(self, other: Any) -> Any:
        return NotImplemented  # a number is never changed: `n += 1` makes another one

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = _changed
    __imod__ = __ipow__ = __imatmul__ = __iand__ = __ior__ = __ixor__ = _changed

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self


def _arithmetic(name: str, *, reflected: bool) -> Callable[[Any, Any], Any]:
    """Return an operation on numbers that does what Python's does, whatever the numbers are."""
    method = f"__{'r' if reflected else ''}{name}__"

    def operate(self: RecordedNumber, other: Any) -> Any:
        a, b = (other, self) if reflected else (self, other)
        in_program = getattr(RecordedTensor, method, _unknown)
        if not is_number(other) or is_internal_call(1):
            return in_program(self, other)
        if not can_be_done(name, a, b):
            return OPERATIONS[name](plain(a), plain(b))
        result = in_program(self, other)
        note_bound(name, a, b, result)
        return result

    return operate


def _unknown(self: Any, other: Any) -> Any:
    return NotImplemented


for _name in OPERATIONS:
    setattr(RecordedNumber, f"__{_name}__", _arithmetic(_name, reflected=False))
    setattr(RecordedNumber, f"__r{_name}__", _arithmetic(_name, reflected=True))


class RecordedSnapshot(RecordedTensor):
    """A tensor of a state dictionary: read-only, as one is outside of recordings."""

    __slots__ = ()
    _rebind = Snapshot._rebind


def _as_tensor(recorded: RecordedTensor, value: np.ndarray[Any, Any]) -> Tensor:
    tensor: Tensor = object.__new__(Tensor)
    tensor._value, tensor._node = value, None
    return tensor
