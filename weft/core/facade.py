"""Public namespaces that resolve operators by name when they are first used.

Building the generated function of every operator would make `import weft` slow, so a public module
leaves its names to `lazy_names`, which resolves each once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import CO_VARARGS, unwrap
from sys import settrace
from types import CodeType
from typing import Any

import numpy as np

from .errors import ArgumentTypeError
from .imports import is_found_by_name
from .keywords import given_twice, pass_calls, rename, synonyms
from .op import Op, composite_keywords, composites_of_lists, find, find_public, public_names
from .operands import holds_floats, tensor_from
from .tensor import Tensor
from .watching import is_ours, look_away, watchers
from .wording import worded


def lazy_names(
    module: dict[str, Any], namespace: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a module whose globals are given.

    It offers a namespace, and as `__all__` the names in it: they may be declared later.
    """
    where = module["__name__"]

    def get(name: str) -> Any:
        if name == "__all__":
            return public_names(namespace)
        target = None if name.startswith("__") else find_public(namespace, name)
        if target is None:
            raise AttributeError(f"module {where!r} has no attribute {name!r}")
        module[name] = found = _placed(public_function(target), where, name)
        return found

    def names_of() -> list[str]:
        return sorted({*module, *public_names(namespace)})

    return get, names_of


def _placed(function: Callable[..., Any], where: str, name: str) -> Callable[..., Any]:
    """Return a public function with the place where users, and pickle, find it."""
    if not is_found_by_name(function):
        function.__module__, function.__qualname__ = where, name
    return function


def public_function(name: str) -> Callable[..., Any]:
    """Return the function that users call for an operator or composite."""
    found = find(name)
    if found is None:
        raise KeyError(f"no operator or composite is named {name!r}")
    return found.function if isinstance(found, Op) else lifting(found)


def lifting(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a composite that takes NumPy arrays, and lists in first place, as tensors.

    Lists in other places stay as they are (axes, sizes, indices) unless they hold tensors of
    floats: nothing but an operand does.

    Inside rules a composite computes on raw arrays and returns them; users always get tensors.
    """
    takes_many = _first_parameter(fn) == "tensors"
    rest, lift_rest = _rest_parameter(fn)
    respell = respelling(fn)
    lift = _lift_in_list if fn in composites_of_lists else _lift
    ours = is_ours(fn)

    @wraps(fn)
    def public(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args, kwargs = respell(args, kwargs)
        if args and args[0].__class__ in (list, tuple):
            first = [_to_tensor(v) for v in args[0]] if takes_many else _to_tensor(args[0])
            args = (first, *args[1:])
        for value in args:
            if value.__class__ is not Tensor:
                middle, last = args[takes_many:rest], args[rest:]
                args = (*args[:takes_many], *map(lift, middle), *map(lift_rest, last))
                break
        if kwargs:
            kwargs = {name: lift(value) for name, value in kwargs.items()}
        watcher = look_away(args, [*kwargs.values()]) if ours and watchers else None
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            found = _explained(fn, error, args, kwargs)
            if found is error:
                raise
            raise found from None
        finally:
            if watcher is not None:
                settrace(watcher)

    pass_calls(code_of(public))
    return public


def as_method(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a composite as a Tensor method, which names an argument that should be a tensor."""
    if len(parameters_of(fn)) == 1:  # the tensor alone
        return fn
    respell = respelling(fn)

    @wraps(fn)
    def method(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args, kwargs = respell(args, kwargs)
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            found = _explained(fn, error, args, kwargs)
            if found is error:
                raise
            raise found from None

    pass_calls(code_of(method))
    return method


Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def respelling(fn: Callable[..., Any]) -> Callable[[tuple[Any, ...], dict[str, Any]], Arguments]:
    """Return what gives a composite's arguments, with PyTorch's keywords, under its own names."""
    names = parameters_of(fn)
    own = frozenset(names)
    known = synonyms(names, names, composite_keywords.get(fn, {}))

    def respell(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        if own.issuperset(kwargs):
            return args, kwargs
        foreign = {k: v for k, v in kwargs.items() if k not in own and k in known}
        renamed = rename(fn.__name__, foreign, known)
        kwargs = {k: v for k, v in kwargs.items() if k not in foreign}
        for name in renamed:
            if name in kwargs or name in names[: len(args)]:
                raise ArgumentTypeError(given_twice(fn.__name__, name, foreign))
        kwargs |= renamed
        if not args and names[0] in kwargs:
            args = (kwargs.pop(names[0]),)  # lists are taken as tensors in first place only
        return args, kwargs

    return respell


def code_of(fn: Any) -> CodeType:
    """Return the code of a Python function."""
    code: CodeType = fn.__code__
    return code


def parameters_of(fn: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a composite's parameters."""
    code = code_of(unwrap(fn))
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _explained(
    fn: Callable[..., Any], error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Exception:
    """Return what to raise for an error, in the words of a face whose tensors were given."""
    if isinstance(error, AttributeError):
        error = _missing_attribute(fn, error, args, kwargs)

    def arguments() -> dict[str, Any]:
        names = parameters_of(fn)[: code_of(unwrap(fn)).co_argcount]
        return dict(zip(names, args, strict=False)) | kwargs

    return worded(error, fn.__name__, arguments, (*args, *kwargs.values()))


def _missing_attribute(
    fn: Callable[..., Any], error: AttributeError, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Exception:
    """Return what to raise when something lacks an attribute: if an argument does, its name."""
    if isinstance(error.obj, Tensor) or not _is_among(error.obj, args, kwargs):
        return error
    return ArgumentTypeError(
        f"{fn.__name__}: expected a tensor or an array. "
        f"Received: {type(error.obj).__name__} {error.obj!r:.60}"
    )


def _is_among(value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(value is given for given in (*args, *kwargs.values()))


def _first_parameter(fn: Callable[..., Any]) -> str:
    names = parameters_of(fn)
    return names[0] if names else ""


def _rest_parameter(fn: Callable[..., Any]) -> tuple[int, Callable[[Any], Any]]:
    """Return how many parameters come before `*rest`, and what to do with the values in it.

    Each of `*tensors` is one, lists too. Others (sizes; operands that may come as one list) are
    left to the function.
    """
    code = unwrap(fn).__code__
    named = code.co_argcount + code.co_kwonlyargcount
    is_tensors = bool(code.co_flags & CO_VARARGS) and code.co_varnames[named] == "tensors"
    return code.co_argcount, _lift_one if is_tensors else _lift_array


def _lift_one(value: Any) -> Any:
    return _to_tensor(value) if isinstance(value, (list, tuple)) else _lift_array(value)


def _lift_array(value: Any) -> Any:
    return _to_tensor(value) if isinstance(value, (np.ndarray, np.generic)) else value


def _lift(value: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        return _lift_array(value)
    if holds_floats(value):
        return tensor_from(value, "the argument")
    if value.__class__ in (list, tuple) and any(isinstance(v, np.ndarray) for v in value):
        return type(value)(map(_lift, value))
    return value


def _lift_in_list(value: Any) -> Any:
    """Return an array as a tensor, also in a list, which stays one."""
    if value.__class__ in (list, tuple):
        return type(value)(map(_lift_array, value))
    return _lift_array(value)


def _to_tensor(value: Any) -> Any:
    return value if isinstance(value, Tensor) else tensor_from(value, "the argument")
