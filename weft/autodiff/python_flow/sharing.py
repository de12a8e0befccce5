"""Tensors that go by two names: in-place changes that the other name would see are refused.

What is traced has values, not memory. `x += 1` gives x another value, and a variable that is the
same tensor keeps the old one; where Python would have changed both, that is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from weakref import WeakValueDictionary

from ...core.modes import current_tracer
from ...core.tensor import Tensor
from ...graph.symbol import Symbol
from .kinds import CannotKeepError

# Results of branches and loops that may be the very tensor that another variable is, on some path.
_shared: WeakValueDictionary[int, Any] = WeakValueDictionary()
_changed: list[set[str]] = []  # what bodies of loops that are being traced change in place

_NOTHING = object()


def apart(
    names: Sequence[str], values: Sequence[Any], others: Sequence[str], known: Sequence[Any]
) -> None:
    """Raise if a tensor that is about to be changed in place goes by another name, too."""
    tensors_changed = [n for n, v in zip(names, values, strict=True) if isinstance(v, Tensor)]
    for changes in _changed:
        changes.update(tensors_changed)
    for name, value in zip(names, values, strict=True):
        if not isinstance(value, Tensor):
            continue
        for other, also in zip(others, known, strict=True):
            if other != name and _may_be_same(value, also):
                raise CannotKeepError(
                    f"{name} is changed in place and is, or may be, the same tensor as {other}, "
                    f"which would change, too; write {name} = {name} + ... in place of {name} += "
                    "..., or copy it before"
                )


def _may_be_same(value: Tensor, also: Any) -> bool:
    if not isinstance(also, Tensor) or also.shape != value.shape:
        return False
    return also is value or id(value) in _shared or id(also) in _shared


def is_from_outside(value: Any) -> bool:
    """Tell whether a body returns a tensor that it did not make."""
    if not isinstance(value, Tensor):
        return False
    return not isinstance(value, Symbol) or value.graph is not current_tracer().graph


def marked(names: Sequence[str], values: Sequence[Any], passed: set[str]) -> Sequence[Any]:
    """Return values; note those that may be the tensors of other variables."""
    for name, value in zip(names, values, strict=True):
        if name in passed and isinstance(value, Symbol):
            _shared[id(value)] = value
    return values


def of_two_names(
    names: Sequence[str], values: Sequence[Any], own: Mapping[str, Any] = MappingProxyType({})
) -> set[str]:
    """Return the variables that may be the same tensor as another one, or one from outside.

    own   what variables were before: those that are it still are no others
    """
    counts = Counter(id(v) for v in values if isinstance(v, Tensor))
    return {
        name
        for name, v in zip(names, values, strict=True)
        if counts[id(v)] > 1
        or id(v) in _shared
        or (is_from_outside(v) and v is not own.get(name, _NOTHING))
    }


def trip(body: Any, args: Sequence[Any], names: Sequence[str], passed: set[str]) -> Any:
    """Return the variables behind a trip; note those that may be tensors of other variables.

    In the next trip nobody would know that they are, so nothing may be changed in place there.
    """
    _changed.append(set())
    try:
        after = body(*args)
    finally:
        changes = _changed.pop()
    passed.update(of_two_names(names, after))
    if passed and changes:
        raise CannotKeepError(
            f"{', '.join(sorted(changes))} is changed in place in a loop in which "
            f"{', '.join(sorted(passed))} may be the same tensor as another variable; write "
            "x = x + ... in place of x += ..."
        )
    return after
