"""How functions of Weft's become functions of this face.

face_function(fn)   results are tensors of this face, `out=` is written into, and operands
                    without dimensions take the dtype of the others
of_tensor(fn)       the same of functions whose first operand is a tensor, and nothing else
in_place(fn)        the same as a method that writes into its tensor
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ..core import tensor as core
from ..core.errors import WeftError
from ..core.tape import next_order
from .adoption import FACES, adopt
from .deferred import Deferred
from .legacy import by_place
from .phrasing import phrase
from .types import aligned

Function = Callable[..., Any]
NUMBERS = (float, int, bool)
PLAIN = core.PLAIN
NO_PAIR = (None, None)
# What PyTorch calls operands, where Weft calls them otherwise.
OPERANDS: dict[str, tuple[str, ...]] = {
    "addbmm": ("input", "batch1", "batch2"),
    "addmm": ("input", "mat1", "mat2"),
    "addmv": ("input", "mat", "vec"),
    "addr": ("input", "vec1", "vec2"),
    "baddbmm": ("input", "batch1", "batch2"),
    "bmm": ("input", "mat2"),
    "column_stack": ("tensors",),
    "dot": ("input", "tensor"),
    "float_power": ("input", "exponent"),
    "isin": ("elements", "test_elements"),
    "ldl_solve": ("LD", "pivots", "B"),
    "lu_solve": ("LU", "pivots", "B"),
    "lu_unpack": ("LU_data", "LU_pivots"),
    "pow": ("input", "exponent"),
    **dict.fromkeys(("det", "inv", "inv_ex", "lu", "lu_factor", "lu_factor_ex", "svdvals"), ("A",)),
}


def face_function(fn: Function, name: str | None = None, *, aligns: bool = False) -> Function:
    """Return a function of Weft's as one of this face.

    aligns   whether tensors without dimensions take the dtype of the others
    """
    operands = OPERANDS.get(name or "", ())

    def call(*args: Any, **kwargs: Any) -> Any:
        out = None
        if kwargs:
            args, out = by_place(operands, args, kwargs), kwargs.pop("out", None)
        if aligns:  # the commonest operands, without a call
            pair: Any = args if len(args) == 2 else NO_PAIR
            x, y = pair
            kind = y.__class__
            alike = kind is float or kind is int
            if not alike and kind in PLAIN and x.__class__ in PLAIN:
                alike = x._value.dtype is y._value.dtype
            if not alike:
                args = _aligned(args)
        if out is not None:
            return write_out(adopt(fn(*args, **kwargs)), out, call.__name__)
        try:
            result = fn(*args, **kwargs)
        except WeftError as error:  # of arguments among which there is no tensor of this face
            raise phrase(error, call.__name__, {"args": args, **kwargs}) from None
        face = FACES[result.__class__]
        if face is None:
            return adopt(result)
        result.__class__ = face
        return result

    _introduce(call, fn, name)

    def settle(made: Function) -> None:
        nonlocal fn
        fn = made  # which later calls reach without a detour

    _tell(fn, settle)
    return call


def of_tensor(fn: Function, name: str | None = None) -> Function:
    """Return a function of Weft's as one of this face, whose first operand must be a tensor."""
    general: Function | None = None

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal general
        if args and args[0].__class__ not in PLAIN:
            check_tensor(args[0], call.__name__)
        if kwargs or len(args) != 1:
            if general is None:
                general = face_function(fn, call.__name__)
            return general(*args, **kwargs)
        try:
            result = fn(args[0])
        except WeftError as error:  # of a tensor that is Weft's
            raise phrase(error, call.__name__, {"args": args}) from None
        face = FACES[result.__class__]  # as above: a call of its own would cost as much again
        if face is None:
            return adopt(result)
        result.__class__ = face
        return result

    _introduce(call, fn, name)

    def settle(made: Function) -> None:
        nonlocal fn
        fn = made

    _tell(fn, settle)
    return call


def check_tensor(x: Any, function: str, name: str = "input", place: int = 1) -> None:
    """Raise if an operand is no tensor, in PyTorch's words."""
    if not isinstance(x, core.Tensor):
        raise TypeError(
            f"{function}(): argument '{name}' (position {place}) must be Tensor, not "
            f"{type(x).__name__}"
        )


def _introduce(call: Any, fn: Function, name: str | None) -> None:
    """Give a function of this face the name and the text of what it calls."""
    call.__name__ = call.__qualname__ = name or str(getattr(fn, "__name__", "function"))
    call.__doc__ = getattr(fn, "__doc__", None)
    call.__wrapped__ = fn  # whose signature help() shows


def _tell(fn: Function, settle: Callable[[Function], None]) -> None:
    """Let the function itself be given, once it is made, in place of what makes it."""
    if isinstance(fn, Deferred):
        fn.when_made(settle)


def _aligned(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return arguments of which tensors without dimensions have taken the dtype of the others."""
    if len(args) < 2 or not isinstance(args[1], core.Tensor):
        return args
    first, second = args[0], args[1]
    if first.__class__ in NUMBERS and len(args) == 2:
        return args  # one tensor, and nothing that it could give way to
    if isinstance(first, core.Tensor) and first.dtype is second.dtype and len(args) == 2:
        return args
    count = next((i for i, x in enumerate(args) if not _is_operand(x)), len(args))
    return (*aligned(*args[:count]), *args[count:])


def _is_operand(x: Any) -> bool:
    return isinstance(x, (core.Tensor, bool, int, float))


def write_out(result: Any, out: Any, name: str = "") -> Any:
    """Write results into the tensors given for them, and return these.

    name   of the function that gave them, for errors
    """
    if isinstance(result, core.Tensor):
        write_result(out, result, name)
        return out
    for target, part in zip(out, result, strict=True):
        write_result(target, part, name)
    kind = type(result)
    return kind(*out) if hasattr(kind, "_fields") else tuple(out)


def write_result(out: Any, result: Any, name: str = "") -> None:
    """Write a result into a tensor, which takes its shape."""
    if not isinstance(out, core.Tensor):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    if out.requires_grad or result.requires_grad:
        raise RuntimeError(
            f"{f'{name}(): ' if name else ''}functions with out=... arguments don't support "
            "automatic differentiation, but one of the arguments requires grad."
        )
    if tuple(out.shape) != tuple(result.shape) and not hasattr(out, "_window"):
        out._value = np.empty(result.shape, out.dtype)
    out._rebind(result)


def in_place(fn: Function, name: str) -> Function:
    """Return a function as a method that writes its result into its tensor."""

    def write(self: Any, *args: Any, **kwargs: Any) -> Any:
        begun = next_order()
        return self._overwritten(fn(self, *args, **kwargs), begun)

    write.__name__ = write.__qualname__ = name
    write.__doc__ = f"Do what `{name[:-1]}` does, in place."
    return write


def named(function: Function, name: str) -> Function:
    """Return a function under another name."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    return call
