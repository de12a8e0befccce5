"""Attach the operators to Tensor as methods and Python operators.

Generated functions are built when first used, so each method starts as a stub that replaces itself
on the class by the operator's own function: from the second call on, `x + y` enters it directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .device import check_device, is_device
from .dim import Dim
from .dispatch import lift_scalar
from .dtype import as_dtype, is_float
from .errors import ShapeError
from .facade import as_method
from .lost_writes import refusing_lost_writes
from .op import F, composite_methods, elementwise, load_all, registry
from .tensor import Tensor

Function = Callable[..., Any]

OPERATORS = {
    "__add__": "add",
    "__sub__": "sub",
    "__mul__": "mul",
    "__truediv__": "div",
    "__floordiv__": "floor_divide",
    "__mod__": "mod",
    "__pow__": "pow",
    "__matmul__": "matmul",
    "__and__": "bitwise_and",
    "__or__": "bitwise_or",
    "__xor__": "bitwise_xor",
    "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift",
    "__neg__": "neg",
    "__pos__": "positive",
    "__abs__": "abs",
    "__invert__": "bitwise_not",
    "__lt__": "less",
    "__le__": "less_equal",
    "__gt__": "greater",
    "__ge__": "greater_equal",
}
UNREFLECTED = {
    "__neg__",
    "__pos__",
    "__abs__",
    "__invert__",
    "__lt__",
    "__le__",
    "__gt__",
    "__ge__",
}
REFLECTED = {f"__r{name[2:]}": name for name in OPERATORS if name not in UNREFLECTED}
IN_PLACE = {f"__i{name[3:]}": OPERATORS[f"__{name[3:]}"] for name in REFLECTED}
COMPARABLE = (Tensor, Dim, bool, int, float, complex, np.ndarray, np.generic, list, tuple)
COMPARISONS = {"__eq__": "equal", "__ne__": "not_equal"}


def attach_operators() -> None:
    """Give Tensor Python's operators and every method that is known so far."""
    for name, op_name in OPERATORS.items():
        _attach(name, op_name)
    for name, direct in REFLECTED.items():
        setattr(Tensor, name, _reflected(name, OPERATORS[direct]))
    for name, op_name in IN_PLACE.items():
        setattr(Tensor, name, _in_place(name, op_name))
    for name, op_name in COMPARISONS.items():
        setattr(Tensor, name, _comparison(name, op_name))
    attach_methods()


def attach_methods() -> None:
    """Give Tensor the methods of all operators declared so far."""
    for record in registry.values():
        names = (_method_name(record), *record.aliases) if record.method else ()
        for name in names:
            if record.method_function is not None:
                setattr(Tensor, name, record.method_function)
            else:
                _attach(name, record.name)
            if record.kind == elementwise and not hasattr(Tensor, f"{name}_"):
                setattr(Tensor, f"{name}_", _writing(name))
    for name in ("clip", "clamp"):
        setattr(Tensor, f"{name}_", _writing(name))
    for name, function in {**EXTRA_METHODS, **composite_methods}.items():
        method = function if name.startswith("_") else as_method(function)
        writes = name == "__setitem__" or (name.endswith("_") and not name.startswith("_"))
        setattr(Tensor, name, refusing_lost_writes(method, name) if writes else method)


def attach_later(names: Iterable[str]) -> None:
    """Give Tensor methods of operators that are declared when first needed.

    A `__getattr__` would do without the names, but it makes Python look up every attribute of every
    tensor the slow way.
    """
    for name in names:
        _later.add(name)
        setattr(Tensor, name, _loading(name))


def _loading(name: str) -> Function:
    def load(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        load_all()
        attach_methods()
        return getattr(self, name)(*args, **kwargs)

    load.__name__ = name
    return load


_later: set[str] = set()


def _writing(name: str) -> Function:
    """Return a method run in place, as in `x.mul_(2)`: the tensor takes the result as its value."""

    def write(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return self._rebind(getattr(self, name)(*args, **kwargs))

    return refusing_lost_writes(write, f"{name}_")


def _method_name(record: Any) -> str:
    return record.method if isinstance(record.method, str) else record.name


def _attach(name: str, op_name: str) -> None:
    """Attach an operator under a method name unless the class defines that name itself."""
    if op_name not in registry or (name in Tensor.__dict__ and name not in _later):
        return

    def stub(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        function = registry[op_name].function
        setattr(Tensor, name, function)
        return function(self, *args, **kwargs)

    stub.__name__ = name
    stub.__doc__ = registry[op_name].doc
    setattr(Tensor, name, stub)


def _reflected(name: str, op_name: str) -> Function:
    """Return `other <op> tensor`, asked of the tensor because `other` does not know how."""

    def reflected(self: Tensor, other: Any) -> Any:
        if other.__class__ is float or other.__class__ is int:
            other = lift_scalar(other, self)
        return registry[op_name].function(other, self)

    reflected.__name__ = name
    return reflected


def _in_place(name: str, op_name: str) -> Function:
    """Return `x <op>= y`: the tensor takes the result as its new value."""

    def in_place(self: Tensor, other: Any) -> Tensor:
        result = registry[op_name].function(self, other)
        return self._rebind(result)

    in_place.__name__ = name
    return in_place


def _comparison(name: str, op_name: str) -> Function:
    """Return == or !=, which Python also asks of None, strings and the like: False and True."""

    def compare(self: Tensor, other: Any) -> Any:
        if not isinstance(other, COMPARABLE):
            return NotImplemented
        return registry[op_name].function(self, other)

    compare.__name__ = name
    return compare


# -- methods that are not single operators -------------------------------------------------------


def to(self: Tensor, *targets: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return the tensor in another dtype, on another device, or both: `x.to(wf.float64)`."""
    for target in targets:
        if isinstance(target, Tensor):
            dtype = target.dtype
        elif is_device(target):
            device = target
        else:
            dtype = target
    check_device(device)
    if dtype is None or as_dtype(dtype) == self.dtype:
        return self
    return cast_to(self, dtype)


def cast_to(self: Tensor, dtype: Any) -> Tensor:
    """Return the tensor with its elements converted to a dtype."""
    result: Tensor = F.cast(self, as_dtype(dtype))
    return result


def _caster(dtype: Any) -> Function:
    def cast(self: Tensor) -> Tensor:
        return to(self, dtype)

    cast.__doc__ = f"Return the tensor converted to {np.dtype(dtype).name}."
    return cast


def clone(self: Tensor) -> Tensor:
    """Return a tensor of the same value; gradients flow through to the original."""
    result: Tensor = F.positive(self)
    return result


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the tensor converted to the dtype of another."""
    return to(self, other.dtype)


def matrix_t(self: Tensor) -> Tensor:
    """Return the transpose of a tensor with up to two dimensions."""
    if self.ndim > 2:
        raise ShapeError(
            f"t() takes up to 2 dimensions; use x.mT or x.permute(). Received: shape {self.shape}"
        )
    result: Tensor = self if self.ndim < 2 else F.permute(self, (1, 0))
    return result


def is_floating_point(self: Tensor) -> bool:
    """Tell whether the elements are floating-point numbers."""
    return is_float(self.dtype)


def same(self: Tensor) -> Tensor:
    """Return the tensor itself; here for programs written with `.contiguous()` or `.cpu()`."""
    return self


EXTRA_METHODS: dict[str, Function] = {
    "to": to,
    "astype": cast_to,
    "type": cast_to,
    "clone": clone,
    "copy": clone,
    "is_floating_point": is_floating_point,
    "t": matrix_t,
    "type_as": type_as,
    "contiguous": same,
    "cpu": same,
    "half": _caster("float16"),
    "float": _caster("float32"),
    "double": _caster("float64"),
    "int": _caster("int32"),
    "long": _caster("int64"),
    "bool": _caster("bool"),
}
