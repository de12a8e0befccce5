"""What the variables of branches and loops hold: tensors of one type, or objects of Python's.

A variable that is 0 before a loop and a vector behind it is a vector throughout; one that is the
same object of Python's wherever it comes from stays that object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.dtype import as_dtype, promote, promote_weak
from ...core.modes import current_tracer
from ...core.op import F
from ...core.shape import TensorType, broadcast
from ...core.tensor import Tensor
from ...core.tree import Structure, flatten
from ...graph.symbol import make_number

_NUMBERS: dict[type, str] = {bool: "bool", int: "int64", float: "float64"}
_EXAMPLES: dict[str, bool | int | float] = {"b": True, "i": 1, "f": 1.0}


class CannotKeepError(TypeError):
    """Control flow that cannot become a node of a graph, for the reason given."""


class Undefined:
    """The value of a variable that has none."""

    def __init__(self) -> None:
        self.name = "undefined"

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = Undefined()


class NumberType(TensorType):
    """The type of a number of Python's that a run knows: it takes the dtype of what it meets."""

    __slots__ = ()


class VariableKind(NamedTuple):
    """What a variable holds: a tree of types of tensors and of objects of Python's."""

    structure: Structure | None  # None if it has no value
    leaves: tuple[Any, ...] = ()

    def is_like(self, other: VariableKind) -> bool:
        """Tell whether two kinds are the same, numbers and tensors apart."""
        same = [type(leaf) for leaf in self.leaves] == [type(leaf) for leaf in other.leaves]
        return same and self == other

    @property
    def types(self) -> list[TensorType]:
        """Return the types of the tensors in it."""
        return [leaf for leaf in self.leaves if isinstance(leaf, TensorType)]


NOTHING = VariableKind(None)


def kind_of(value: Any) -> VariableKind:
    """Return what a value is; numbers are what they are until they meet others."""
    if value is UNDEFINED:
        return NOTHING
    leaves, structure = flatten(value)
    return VariableKind(structure, tuple(map(_leaf_kind, leaves)))


def joined(a: VariableKind, b: VariableKind, name: str) -> VariableKind:
    """Return what a variable is that may be either."""
    if a.structure is None or b.structure is None:
        return a if b.structure is None else b
    if a.structure != b.structure:
        raise CannotKeepError(f"{name} is {a.structure} in one place and {b.structure} in another")
    pairs = zip(a.leaves, b.leaves, strict=True)
    return VariableKind(a.structure, tuple(_joined_leaf(x, y, name) for x, y in pairs))


def stays(kind: VariableKind) -> VariableKind:
    """Return a kind whose numbers are tensors, for what gets its value only later."""
    return VariableKind(kind.structure, tuple(_as_type(leaf) for leaf in kind.leaves))


def tensors(value: Any, kind: VariableKind) -> list[Tensor]:
    """Return the tensors of a value, each of the type that its kind says."""
    if value is UNDEFINED:
        return [_zeros(t) for t in kind.types]
    leaves, _ = flatten(value)
    pairs = zip(leaves, kind.leaves, strict=True)
    return [_typed(leaf, t) for leaf, t in pairs if isinstance(t, TensorType)]


def value_of(kind: VariableKind, given: Sequence[Tensor]) -> Any:
    """Return the value of a kind that has given tensors."""
    if kind.structure is None:
        return UNDEFINED
    left = iter(given)
    return kind.structure.unflatten(
        _found(next(left), leaf) if isinstance(leaf, TensorType) else leaf for leaf in kind.leaves
    )


def _found(symbol: Any, leaf: TensorType) -> Any:
    return as_number(symbol) if isinstance(leaf, NumberType) else symbol


def as_number(symbol: Any) -> Any:
    """Return a symbol that computes as numbers of Python's do."""
    return make_number(symbol.graph, symbol.value)


def _leaf_kind(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray | np.generic):
        return TensorType(leaf.shape, as_dtype(leaf.dtype))
    if not isinstance(leaf, Tensor):
        return leaf
    return (NumberType if leaf.weak else TensorType)(leaf.shape, leaf.dtype)


def _as_type(leaf: Any) -> Any:
    dtype = _NUMBERS.get(type(leaf))
    return leaf if dtype is None else NumberType((), as_dtype(dtype))


def _joined_leaf(a: Any, b: Any, name: str) -> Any:
    if a is b or (type(a) is type(b) and type(a) in {*_NUMBERS, str} and a == b):
        return a
    a, b = _as_type(a), _as_type(b)
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return _joined_types(a, b)
    if isinstance(a, TensorType) or isinstance(b, TensorType):
        other = b if isinstance(a, TensorType) else a
        raise CannotKeepError(f"{name} is a tensor in one place and {other!r:.40} in another")
    raise CannotKeepError(f"{name} is {a!r:.40} in one place and {b!r:.40} in another")


def _joined_types(a: TensorType, b: TensorType) -> TensorType:
    if isinstance(a, NumberType) and isinstance(b, NumberType):
        return NumberType((), promote(a.dtype, b.dtype))
    if isinstance(a, NumberType):
        a, b = b, a
    shape = broadcast(a.shape, b.shape)
    if isinstance(b, NumberType):
        return TensorType(shape, promote_weak(a.dtype, _EXAMPLES[b.dtype.kind]))
    return TensorType(shape, promote(a.dtype, b.dtype))


def _typed(leaf: Any, wanted: TensorType) -> Tensor:
    if not isinstance(leaf, Tensor):
        leaf = current_tracer().constant(np.asarray(leaf, wanted.dtype))
    if leaf.dtype != wanted.dtype:
        leaf = F.cast(leaf, wanted.dtype)
    made: Tensor = leaf if leaf.shape == wanted.shape else F.broadcast_to(leaf, wanted.shape)
    return made


def _zeros(wanted: TensorType) -> Tensor:
    zeros: Tensor = current_tracer().constant(np.zeros(wanted.shape, wanted.dtype))
    return zeros
