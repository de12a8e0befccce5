"""Tensors that a transform puts around others, and the level that each transform runs at.

A running transform (forward mode, recording for reverse mode) is an interpreter with a level of its
own. The values it works on are layers around tensors of the levels below; layers of other levels
are constants to it, so that nested derivatives never mix.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from ..core.device import device
from ..core.dtype import DType
from ..core.errors import GradientError, ShapeError
from ..core.modes import current_interpreter, interpret_with, modes
from ..core.reads import note_read
from ..core.tape import Leaf
from ..core.tensor import PLAIN, Tensor

_next_level = count(1).__next__


class TransformLevel:
    """One transform; its number grows inwards. Its values can be used while it is running."""

    __slots__ = ("name", "number", "running")

    def __init__(self, name: str = "jvp") -> None:
        self.name = name
        self.number = _next_level()
        self.running = False


class Running:
    """Makes an interpreter current and its level a running one, for as long as that lasts.

    It may be entered again: the backward pass of a user's function runs long after its forward.
    """

    def __init__(self, interpreter: Any) -> None:
        self.level: TransformLevel = interpreter.level
        self.context = interpret_with(interpreter)

    def __enter__(self) -> None:
        self.before, self.level.running = self.level.running, True
        self.context.__enter__()

    def __exit__(self, *exc: object) -> None:
        self.context.__exit__(*exc)
        self.level.running = self.before


def is_differentiated() -> bool:
    """Tell whether a transform around may differentiate: any but vmap."""
    interpreter: Any = current_interpreter()
    while hasattr(interpreter, "draws"):
        interpreter = interpreter.below
    return interpreter is not modes.base  # which is None while all tensors are on the CPU


class Layered(Tensor):
    """A tensor around another one, which one level of a transform works on.

    It has no `_value`, so generated code hands every operation on it to the interpreter. Reading it
    in Python (`if x > 0`, float(x), print) reads the value.

    Its parts lie in the slots of a Tensor under other names: of the same layout, a plain tensor can
    become a layered one when such a value is written into it.
    """

    __slots__ = ()

    primal: Tensor = vars(Tensor)["_value"]
    extra: Any = vars(Tensor)["_site"]  # what the level knows about the value; None: a constant
    level: TransformLevel = vars(Tensor)["_node"]

    _node = None  # the tape sees what is inside, never the layer
    _site = None
    _paused = None  # type: ignore[assignment]  # a layer is never a leaf

    @property
    def _value(self) -> Any:  # type: ignore[override]  # a slot in the base class
        if self.level.running:
            raise AttributeError("_value")  # sends generated code to the interpreter
        raise GradientError(
            f"this value belongs to a {self.level.name} that has ended; return it from the "
            "function instead of keeping it in a variable outside"
        )

    @property
    def symbolic(self) -> bool:  # type: ignore[override]  # a constant in the base class
        """Tell whether there is a symbol of a graph inside."""
        return self.primal.symbolic

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the sizes of all dimensions."""
        return self.primal.shape

    @property
    def dtype(self) -> DType:
        """Return the element type."""
        return self.primal.dtype

    @property
    def device(self) -> device:
        """Return the device that holds the value."""
        return self.primal.device

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return self.primal.ndim

    def numel(self) -> int:
        """Return the number of elements."""
        return self.primal.numel()

    def detach(self) -> Tensor:
        """Return the value without its derivative."""
        return self.primal.detach()

    def _looked_at(self) -> Tensor:
        """Return the value, to be read as a number or an array."""
        note_read(self)
        return self.primal

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the value as a read-only NumPy view."""
        return self._looked_at().numpy()

    def item(self) -> Any:
        """Return the only element as a Python number."""
        return self._looked_at().item()

    def tolist(self) -> Any:
        """Return the value as nested Python lists."""
        return self._looked_at().tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self._looked_at().__array__(dtype, copy)

    def __bool__(self) -> bool:
        return bool(self.primal)

    def __float__(self) -> float:
        return float(self._looked_at())

    def __int__(self) -> int:
        return int(self._looked_at())

    def __index__(self) -> int:
        return self.primal.__index__()

    def __format__(self, spec: str) -> str:
        return format(self.primal, spec) if spec else repr(self)

    def __contains__(self, element: Any) -> bool:
        return element in self.primal

    def _rebind(self, result: Tensor) -> Tensor:
        if result.shape != self.shape or result.dtype != self.dtype:
            raise ShapeError(
                f"writing in place cannot change {self.dtype}{list(self.shape)} "
                f"to {result.dtype}{list(result.shape)}"
            )
        if is_inside(result, self.level):
            result._move_into(self)
        else:
            self._take(result)
        return self

    def _take(self, result: Any) -> None:
        """Hold another value, of this level or from outside of it."""
        own = getattr(result, "level", None) is self.level
        primal, extra = (result.primal, result.extra) if own else (result, None)
        _fill(self, primal, extra, self.level)

    def _move_into(self, target: Tensor) -> None:
        if not is_free(target):
            raise GradientError(
                "a leaf or parameter cannot take a value with a derivative inside "
                f"{self.level.name}; write into a plain tensor, e.g. x.detach()"
            )
        target.__class__ = type(self)
        _fill(target, self.primal, self.extra, self.level)


def is_inside(x: Any, level: TransformLevel) -> bool:
    """Tell whether a value belongs to a transform that runs inside of a level."""
    own: TransformLevel | None = getattr(x, "level", None)
    return own is not None and own.number > level.number


def is_free(x: Tensor) -> bool:
    """Tell whether a tensor may become a value of a transform: no leaf, parameter or buffer."""
    return (type(x) in PLAIN and not isinstance(x._node, Leaf)) or hasattr(x, "level")


def make_layer(cls: type[Layered], primal: Tensor, extra: Any, level: TransformLevel) -> Layered:
    """Return a layer around a tensor."""
    layer: Any = object.__new__(cls)
    layer.primal, layer.extra, layer.level = primal, extra, level
    made: Layered = layer
    return made


def _fill(layer: Any, primal: Tensor, extra: Any, level: TransformLevel) -> None:
    layer.primal, layer.extra, layer.level = primal, extra, level
