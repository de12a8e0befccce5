"""What `custom_vjp` and `custom_jvp` share: a function, its arguments, and what a rule is given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import update_wrapper
from inspect import signature
from typing import Any, ClassVar

from ...core.errors import ArgumentError, ArgumentTypeError, GradientError
from ...core.modes import current_transform, is_grad_enabled
from ...core.tensor import Tensor
from ...core.tree import Structure, flatten
from ..function import Function


class CustomRule(ABC):
    """A function with a derivative rule of its own; subclasses say what a rule is.

    _call       one call of it: runs function and rule on flat leaves
    _function   such a call as an operation with a derivative
    """

    _call: ClassVar[type[RuleCall]]
    _function: ClassVar[type[Function]]

    def __init__(self, fn: Callable[..., Any], nondiff_argnums: Iterable[int] = ()) -> None:
        kind = type(self).__name__
        if not callable(fn):
            raise ArgumentTypeError(f"{kind} expects a function. Received: {fn!r:.60}")
        update_wrapper(self, fn)
        self.fn = fn
        self.name = getattr(fn, "__name__", kind)
        self.nondiff_argnums = frozenset(nondiff_argnums)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; its own rule stands for its derivative."""
        self._require_rule()
        if kwargs:
            args = self._positional(args, kwargs)
        fixed = {i: a for i, a in enumerate(args) if i in self.nondiff_argnums}
        leaves, structure = flatten([a for i, a in enumerate(args) if i not in fixed])
        if current_transform() is None and not _is_recorded(leaves):
            return self.fn(*args)
        call = self._call(self, Arguments(fixed, len(args), structure))
        outputs = self._function.apply(call, *leaves)
        return call.result.unflatten(outputs)

    @abstractmethod
    def _require_rule(self) -> None:
        """Raise unless the rule has been set."""

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return the arguments of a call by position, which derivative rules refer to."""
        bound = signature(self.fn).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise ArgumentError(
                f"{self.name}: keyword-only arguments have no place in a derivative rule. "
                f"Received: {sorted(bound.kwargs)}"
            )
        return bound.args


def _is_recorded(leaves: list[Any]) -> bool:
    """Tell whether the tape records operations on some of these values."""
    return is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in leaves)


class Arguments:
    """How the flat leaves of one call map to its arguments.

    fixed      the arguments that are not differentiated, by their position
    count      the number of all arguments
    structure  of the list of the others
    """

    __slots__ = ("count", "fixed", "structure")

    def __init__(self, fixed: dict[int, Any], count: int, structure: Structure) -> None:
        self.fixed, self.count, self.structure = fixed, count, structure

    def complete(self, leaves: Iterable[Any]) -> list[Any]:
        """Return all arguments of the function."""
        given = iter(self.structure.unflatten(leaves))
        return [self.fixed[i] if i in self.fixed else next(given) for i in range(self.count)]

    def in_front(self) -> list[Any]:
        """Return the fixed arguments, which a rule receives first."""
        return [self.fixed[i] for i in sorted(self.fixed)]


class RuleCall:
    """One call of a function with a rule: how its flat leaves map to trees."""

    result: Structure

    def __init__(self, owner: Any, arguments: Arguments) -> None:
        self.owner = owner
        self.arguments = arguments


def as_pair(found: Any, what: str, parts: str) -> tuple[Any, Any]:
    """Return what a rule gave, which must be a pair."""
    if isinstance(found, tuple) and len(found) == 2:
        return found
    raise GradientError(f"{what} must return a pair ({parts}). Received: {type(found).__name__}")


def save_values(ctx: Any, values: Iterable[Any]) -> None:
    """Save values for backward: tensors by their place, others as they are."""
    kept = list(values)
    ctx.save_for_backward(*(x if isinstance(x, Tensor) else None for x in kept))
    ctx.others = [None if isinstance(x, Tensor) else x for x in kept]


def saved_values(ctx: Any) -> list[Any]:
    """Return the values that `save_values` saved."""
    pairs = zip(ctx.saved_tensors, ctx.others, strict=True)
    return [other if tensor is None else tensor for tensor, other in pairs]
