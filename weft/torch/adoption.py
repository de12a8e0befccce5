"""Whose a tensor is: Weft's own classes of tensors, and those of this face over them.

Operators make tensors of Weft's. A function of the face gives what it got from one the face's
class: the two have one layout, so that is the change of a pointer, and nothing is copied. For every
class of tensors (eager ones, parameters, symbols of graphs and of recordings, layers of transforms)
there is one of the face, made when it is first met: the methods of PyTorch in front of Weft's.
"""

from __future__ import annotations

from typing import Any

from ..core import tensor as core
from ..core.snapshot import Snapshot
from ..graph.symbol import WeakSymbol


class Methods:
    """Marks the classes of this face."""

    __slots__ = ()


class _Faces(dict[type, "type | None"]):
    """The classes of this face, by those of Weft's; None for what stays as it is.

    front   PyTorch's methods, which stand in front of Weft's
    """

    front: type = Methods

    def __missing__(self, kind: type) -> type | None:
        found = self[kind] = self._made(kind)
        return found

    def _made(self, kind: type) -> type | None:
        if not issubclass(kind, core.Tensor) or issubclass(kind, Methods):
            return None
        return type(kind.__name__, (self.front, kind), {"__slots__": (), "__module__": __name__})


FACES = _Faces({WeakSymbol: None, Snapshot: None})  # and more: recorded.py


def adopt(result: Any) -> Any:
    """Return what an operator gave as tensors of this face; nests of tuples and lists likewise."""
    kind = result.__class__
    face = FACES[kind]
    if face is not None:
        result.__class__ = face
        return result
    if kind is tuple:
        return tuple([adopt(part) for part in result])
    if kind is list:
        return [adopt(part) for part in result]
    if kind is dict:
        return {name: adopt(part) for name, part in result.items()}
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return kind(*map(adopt, result))
    return result
