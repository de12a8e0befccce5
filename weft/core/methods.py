"""Attach the operators to Tensor as methods and Python operators.

Generated functions are built when first used, so each method starts as a stub that replaces itself
on the class by the operator's own function: from the second call on, `x + y` enters it directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from . import device as places
from .device import check_device, is_device
from .dim import Dim, may_equal
from .dispatch import lift_scalar
from .dtype import as_dtype, is_float
from .errors import ArgumentError, ShapeError
from .facade import as_method
from .keywords import MISSING, pass_calls
from .lost_writes import refusing_lost_writes
from .op import F, Op, composite_methods, elementwise, load_all, registry
from .placing import place
from .tensor import PLAIN, Tensor

Function = Callable[..., Any]

COMPARABLE = (Tensor, Dim, bool, int, float, complex, np.ndarray, np.generic, list, tuple)
EQUALITIES = ("__eq__", "__ne__")
UNREFLECTED = ("__lt__", "__le__", "__gt__", "__ge__")  # Python exchanges the operands itself


def attach_operators() -> None:
    """Give Tensor Python's operators and every method that is known so far."""
    for record in registry.values():
        if record.operator is not None:
            _attach_operator(record.operator, record)
    attach_methods()


def _attach_operator(name: str, record: Op) -> None:
    if name in EQUALITIES:
        setattr(Tensor, name, _comparison(name, record.name))
        return
    _attach(name, record.name, operator=True)
    if len(record.inputs) == 2 and name not in UNREFLECTED:
        for kind, make in (("r", _reflected), ("i", _in_place)):
            other = f"__{kind}{name[2:]}"
            setattr(Tensor, other, make(other, record.name))


def attach_methods() -> None:
    """Give Tensor the methods of all operators declared so far."""
    for record in registry.values():
        names = (_method_name(record), *record.aliases) if record.method else ()
        for name in names:
            if record.method_function is not None:
                setattr(Tensor, name, record.method_function)
            else:
                _attach(name, record.name)
            in_place = f"{name}_"
            if record.kind == elementwise and not (
                name in EXTRA_METHODS or hasattr(Tensor, in_place)
            ):
                setattr(Tensor, in_place, _writing(name))
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


def _attach(name: str, op_name: str, *, operator: bool = False) -> None:
    """Attach an operator under a method name unless the class defines that name itself."""
    if op_name not in registry or (name in Tensor.__dict__ and name not in _later):
        return

    def stub(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        made = registry[op_name].specialized
        function = made.operation if operator else made.call
        setattr(Tensor, name, function)
        return function(self, *args, **kwargs)

    stub.__name__ = name
    stub.__doc__ = registry[op_name].doc
    pass_calls(stub.__code__)
    setattr(Tensor, name, stub)


def _reflected(name: str, op_name: str) -> Function:
    """Return `other <op> tensor`, asked of the tensor because `other` does not know how."""

    def reflected(self: Tensor, other: Any) -> Any:
        if other.__class__ is float or other.__class__ is int:
            other = lift_scalar(other, self)
        return registry[op_name].specialized.operation(other, self)

    reflected.__name__ = name
    return reflected


def _in_place(name: str, op_name: str) -> Function:
    """Return `x <op>= y`: the tensor takes the result as its new value."""

    def in_place(self: Tensor, other: Any) -> Tensor:
        result = registry[op_name].specialized.operation(self, other)
        return self._rebind(result)

    in_place.__name__ = name
    return in_place


def _comparison(name: str, op_name: str) -> Function:
    """Return == or !=, which Python also asks of None, strings and the like: False and True."""

    def compare(self: Tensor, other: Any) -> Any:
        if not isinstance(other, COMPARABLE):
            return NotImplemented
        return registry[op_name].specialized.operation(self, other)

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
    where = self.device if device is None else check_device(device)
    result = self if dtype is None or as_dtype(dtype) == self.dtype else cast_to(self, dtype)
    return result if where == result.device else _moved(result, where)


def _moved(x: Tensor, where: places.device) -> Tensor:
    """Return a tensor on another device: a copy, and a step of the tape or a node of a graph."""
    with where:  # the device that a node, and so its result, is on
        moved: Tensor = F.transfer(x, str(where), str(x.device))
    return place(moved, where)


def cpu(self: Tensor) -> Tensor:
    """Return the tensor on the CPU: itself, or a copy if it is elsewhere."""
    return to(self, device=places.CPU)


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


# -- methods that NumPy's arrays and PyTorch's tensors do not share ------------------------------
# Nothing here gives other numbers than either of them silently: what both would read in their own
# way is refused, and the message names the spellings that say which is meant.


def median(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Return the median by `axis=` (NumPy's, as `wf.median`) or by `dim=` (PyTorch's pair)."""
    if args or not kwargs.keys() & {"axis", "dim"}:
        raise ArgumentError(
            "median: x.median() takes the lower of two middle elements in PyTorch, and wf.median "
            "their mean, as NumPy; write wf.median(x) or x.median(axis=0) for the mean, "
            "x.median(dim=0) for PyTorch's values and indices, or "
            f"x.quantile(0.5, method='lower'). Received: {args}"
        )
    return F.median(self, **kwargs)


def repeat(self: Tensor, *repeats: Any, axis: Any = MISSING, dim: Any = MISSING) -> Any:
    """Return each element along an axis repeated (NumPy's), which must be named.

    Three numbers or more, which only PyTorch takes, lay out the whole tensor as `tile` does.
    """
    named = [a for a in (axis, dim) if a is not MISSING]
    if len(named) == 1 and len(repeats) == 1:
        return F.repeat(self, repeats[0], named[0])
    if not named and len(repeats) > 2:
        return F.tile(self, *repeats)
    shown = ", ".join(map(repr, repeats))
    raise ArgumentError(
        "repeat: x.repeat repeats single elements in NumPy and the whole tensor in PyTorch; write "
        "x.repeat(2, axis=0) or x.repeat_interleave(2, 0) for elements (axis=None: of the flat "
        f"tensor), or x.tile(2, 1) for the whole. Received: x.repeat({shown})"
    )


def equal(self: Tensor, other: Any) -> Any:
    """Tell whether two tensors have one shape and equal elements, as PyTorch's method does.

    Element by element it is `x == y`, `x.eq(y)` or `wf.equal(x, y)`.
    """
    if not may_equal(self.shape, other.shape):
        return False
    result = F.all(F.equal(self, other))
    return bool(result) if type(result) in PLAIN else result


def is_floating_point(self: Tensor) -> bool:
    """Tell whether the elements are floating-point numbers."""
    return is_float(self.dtype)


def same(self: Tensor) -> Tensor:
    """Return the tensor itself; here for programs written with `.contiguous()`."""
    return self


EXTRA_METHODS: dict[str, Function] = {
    "to": to,
    "astype": cast_to,
    "type": cast_to,
    "clone": clone,
    "copy": clone,
    "equal": equal,
    "is_floating_point": is_floating_point,
    "median": median,
    "repeat": repeat,
    "t": matrix_t,
    "type_as": type_as,
    "contiguous": same,
    "cpu": cpu,
    "half": _caster("float16"),
    "float": _caster("float32"),
    "double": _caster("float64"),
    "int": _caster("int32"),
    "long": _caster("int64"),
    "bool": _caster("bool"),
}
