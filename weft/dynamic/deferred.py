"""What stands for the result of an operation that was put off.

Its shape and dtype are known; its value is there once the operations behind it have run, which
reading it brings about. From then on it is a plain tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.device import device
from ..core.dtype import DType
from ..core.errors import ShapeError
from ..core.modes import current_interpreter, note_look
from ..core.shape import size_of
from ..core.tensor import Tensor

if TYPE_CHECKING:
    from .deferring import Deferring
    from .reads import ExampleReads

_SLOTS = vars(Tensor)
_PARTS = ("_value", "_node", "_site", "_paused", "_mark")


class DeferredTensor(Tensor):
    """A tensor whose operation waits to run together with others of its kind.

    Its parts lie in the slots of a Tensor under other names: it becomes one when it has a value.
    """

    __slots__ = ()

    run: Deferring = _SLOTS["_value"]
    index: int = _SLOTS["_site"]  # its number among the values of the run
    kind: int = _SLOTS["_node"]  # the number of its type
    level: int = _SLOTS["_paused"]  # how many operations it is behind data

    _node = property(lambda self: self.settled()._node)
    _site = None
    waits = True
    _paused = None  # type: ignore[assignment]  # no leaf whose gradients were switched off

    @property
    def _value(self) -> Any:  # type: ignore[override]  # a slot in the base class
        if current_interpreter() is self.run:
            raise AttributeError("_value")  # sends generated code to the interpreter
        return self.settled()._value

    def settled(self) -> Tensor:
        """Become a plain tensor: run what it depends on."""
        run = self.run
        if self.__class__ is DeferredTensor:
            run.settle(self)
        return self

    # -- what it is --------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[Any, ...]:
        """Return the sizes of all dimensions."""
        return self.run.table.types[self.kind].shape

    @property
    def dtype(self) -> DType:
        """Return the element type."""
        return self.run.table.types[self.kind].dtype

    @property
    def device(self) -> device:
        """Return the device that will hold the value."""
        return self.run.table.places[self.kind]

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self.run.table.types[self.kind].shape)

    def numel(self) -> int:
        """Return the number of elements."""
        return size_of(self.shape)

    # -- its place on the tape ---------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Tell whether gradients flow through it; what it depends on is run to know."""
        return self.settled().requires_grad

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self.settled().requires_grad_(flag)

    def requires_grad_(self, flag: bool = True) -> Tensor:
        """Become a plain tensor, and a leaf of its own."""
        return self.settled().requires_grad_(flag)

    @property
    def is_leaf(self) -> bool:
        """Tell whether no recorded operation made it."""
        return self.settled().is_leaf

    def backward(self, *args: Any, **kwargs: Any) -> None:
        """Run what was put off, and add the gradients to `.grad` of the leaves."""
        self.run.close()
        self.settled().backward(*args, **kwargs)

    def detach(self) -> Tensor:
        """Return the same value cut off from the graph."""
        return self.run.detached(self)

    # -- reading values ----------------------------------------------------------------------------

    def _looked(self) -> tuple[np.ndarray[Any, Any], ExampleReads | None]:
        """Return the value, and who is to know what code does with it."""
        run = self.run
        if current_interpreter() is not run:  # it is from outside for whoever looks
            note_look(self)
        return run.read(self), run.state.reads

    def _read(self) -> np.ndarray[Any, Any]:
        array, reads = self._looked()
        if reads is not None:
            reads.know(self, array)
        return array

    def item(self) -> Any:
        """Return the only element as a Python number."""
        self._check_single("item()")
        array, reads = self._looked()
        return array.item() if reads is None else reads.number(self, array)

    def tolist(self) -> Any:
        """Return the value as nested Python lists (a number if 0-d)."""
        array, reads = self._looked()
        if reads is None:
            return array.tolist()
        return reads.numbers(self, array) if array.ndim else reads.number(self, array)

    def __bool__(self) -> bool:
        if self.numel() != 1:
            return super().__bool__()
        array, reads = self._looked()
        return bool(array.item()) if reads is None else reads.truth(self, array)

    def __iter__(self) -> Any:
        if self.ndim == 0:
            return super().__iter__()
        return iter(self.unbind())

    def __repr__(self) -> str:
        return repr(self.settled())

    def __copy__(self) -> Tensor:
        return self.run.stand_in(self.index, self.kind, self.level)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return self.settled().__deepcopy__(memo)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.settled().__reduce__()

    # -- writing: this tensor gets a new value -----------------------------------------------------

    def _rebind(self, result: Tensor) -> Tensor:
        if result.shape != self.shape or result.dtype != self.dtype:
            raise ShapeError(
                f"writing in place cannot change {self.dtype}{list(self.shape)} "
                f"to {result.dtype}{list(result.shape)}"
            )
        held: Any = result
        if result.__class__ is not DeferredTensor and current_interpreter() is self.run:
            held = self.run.row_of_shared(result)
        if held.__class__ is DeferredTensor:
            self._stand(held.run, held.index, held.kind, held.level)
        else:
            self.run.become(self, result)
        return self

    def _move_into(self, target: Tensor) -> None:
        self.run.write(target, self)

    def _stand(self, run: Any, index: int, kind: int, level: int) -> None:
        me: Any = self
        me.run, me.index, me.kind, me.level = run, index, kind, level


def become(stand_in: Tensor, tensor: Tensor) -> None:
    """Let what stood for a value be the tensor that holds it, a plain one or a transform's."""
    for name in _PARTS:
        part = _SLOTS[name]
        try:
            held = part.__get__(tensor)
        except AttributeError:
            _cleared(part, stand_in)
        else:
            part.__set__(stand_in, held)
    stand_in.__class__ = type(tensor)


def stand(tensor: Tensor, stand_in: Any) -> None:
    """Let a plain tensor stand for a value, as another one does."""
    for name in _PARTS:
        _cleared(_SLOTS[name], tensor)
    tensor.__class__ = DeferredTensor
    made: Any = tensor
    made._stand(stand_in.run, stand_in.index, stand_in.kind, stand_in.level)


def _cleared(part: Any, tensor: Tensor) -> None:
    try:
        part.__delete__(tensor)
    except AttributeError:  # it was not set
        return
