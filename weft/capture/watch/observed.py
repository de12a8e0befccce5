"""A call as it is seen before it is made, and which function it comes to."""

from __future__ import annotations

import functools
import types
from typing import Any, NamedTuple

METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)
_CALL_OF_CLASS = type.__dict__["__call__"]


class ObservedCall(NamedTuple):
    """A call, with the object of a method as its first argument."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def given(self) -> list[Any]:
        """Return all arguments."""
        return [*self.args, *self.kwargs.values()]


def unwrapped(call: ObservedCall) -> ObservedCall:
    """Return a call of the function itself: not of a bound method or of partial arguments."""
    function: Any
    function, args, kwargs = call
    while True:
        if isinstance(function, types.MethodType):
            function, args = function.__func__, (function.__self__, *args)
        elif type(function) is functools.partial:
            args, kwargs = (*function.args, *args), {**function.keywords, **kwargs}
            function = function.func
        elif function is _CALL_OF_CLASS and args:
            function, args = args[0], args[1:]
        elif not isinstance(function, (types.BuiltinFunctionType, types.MethodWrapperType)):
            return ObservedCall(function, args, kwargs)
        else:
            bound, (function, args, kwargs) = function, _unbound(function, args, kwargs)
            if function is bound or function is not _CALL_OF_CLASS:
                return ObservedCall(function, args, kwargs)


def _unbound(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ObservedCall:
    """Return a call of a method as its class has it, past what derived classes say."""
    owner = function.__self__
    is_slot = isinstance(function, types.MethodWrapperType)
    if owner is None or (isinstance(owner, (types.ModuleType, type)) and not is_slot):
        return ObservedCall(function, args, kwargs)
    for base in type(owner).__mro__:
        method = type.__dict__["__dict__"].__get__(base).get(function.__name__)
        if isinstance(method, METHODS):
            return ObservedCall(method, (owner, *args), kwargs)
    return ObservedCall(function, args, kwargs)


def name_of(function: Any) -> str:
    """Return what a message calls a function."""
    module = getattr(function, "__module__", None) or getattr(
        getattr(function, "__objclass__", None), "__module__", ""
    )
    name = getattr(function, "__qualname__", None) or f"a {type(function).__name__}"
    return name if module in ("builtins", "", None) else f"{module}.{name}"
