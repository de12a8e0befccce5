"""The one path every operation takes.

    lift      numbers, arrays and lists become tensors
    promote   operands meet in a common dtype, by recorded casts
    run       by the current interpreter if there is one, else eagerly: kernel, then tape

`apply` is this path in general. The function that `specialize` generates for an operator is the
same path with everything known beforehand left out; it falls back to `apply` whenever an operand is
not a plain tensor of the expected dtype or an interpreter is active.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from sys import settrace
from typing import TYPE_CHECKING, Any

import numpy as np

from . import dtype as dt
from .dim import Dim
from .errors import (
    AllocationError,
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    IndexOutOfRange,
    LinalgError,
    WeftError,
    site_of_user,
)
from .modes import current_interpreter
from .operands import Number, common_dtype, find, scalar_array, tensor_from, to_dtype
from .shape import type_of
from .sums import sum_array_to
from .tape import FanNode, output_node
from .tensor import Tensor, constant, site_of, wrap, wrap_with_node
from .watching import look_away, watchers
from .wording import worded

if TYPE_CHECKING:
    from .op import Op

FLOAT_WARNINGS = (RuntimeWarning, FloatingPointError)
ERRORS = (ValueError, TypeError, IndexError, ArithmeticError, MemoryError, WeftError)


def apply(op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
    """Apply an operator to anything tensor-like and return its output or tuple of outputs."""
    watcher = None
    if watchers:
        watcher = look_away(inputs, attrs, rules=(op, op.infer_rule, op.canonicalize))
    if watcher is None:
        return _applied(op, inputs, attrs)
    try:
        return _applied(op, inputs, attrs)
    finally:
        settrace(watcher)


def _applied(op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
    tensors = inputs
    if op.promote is None or not _agree(inputs, floats=op.promote == "float"):
        try:
            tensors = promote(op, tuple([lift(op, i, x) for i, x in enumerate(inputs)]))
        except _OtherClass as other:
            return other.operand.__weft_apply__(op, inputs, attrs)
        except WeftError as error:
            raise explain(op, error, inputs, attrs) from None
    interpreter = current_interpreter()
    if interpreter is None:
        return op.specialized.execute(tensors, attrs)
    if op.canonicalize is not None:
        attrs = canonical(op, tensors, attrs)
    return interpreter.apply(op, tensors, attrs)


def run(op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
    """Run an operation on lifted operands, with canonical attributes."""
    interpreter = current_interpreter()
    if interpreter is None:
        return op.specialized.execute(inputs, attrs)
    return interpreter.apply(op, inputs, attrs)


def canonical(op: Op, tensors: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an operation's attributes checked and in canonical form."""
    if op.canonicalize is None:
        return attrs
    try:
        result = op.canonicalize(*group(op, tensors), *attrs)
    except ERRORS as error:
        raise explain(op, error, tensors, attrs) from None
    return tuple(result)


def group(op: Op, flat: Sequence[Any]) -> tuple[Any, ...]:
    """Return flat operands as the operator's parameters: a trailing list if it is variadic."""
    if not op.variadic:
        return tuple(flat)
    fixed = len(op.inputs) - 1
    return (*flat[:fixed], list(flat[fixed:]))


# -- lift -------------------------------------------------------------------------------------


class _OtherClass(Exception):  # noqa: N818  (no error: the operation goes to the operand's class)
    """An operand that is no tensor, but says itself what operators do with it."""

    def __init__(self, operand: Any) -> None:
        super().__init__()
        self.operand = operand


def lift(op: Op, position: int, x: Any) -> Any:
    """Return an operand as a tensor; Python numbers stay as they are, None only where optional."""
    if isinstance(x, (Tensor, bool, int, float, Dim)):
        return x
    name = op.inputs[min(position, len(op.inputs) - 1)]
    if x is None and name in op.optional:
        return None
    if isinstance(x, (np.ndarray, np.generic, list, tuple)):
        return tensor_from(x, f"{op.name}: {name}")
    if hasattr(type(x), "__weft_apply__"):
        raise _OtherClass(x)
    raise ArgumentTypeError(
        f"{name} must be a tensor, an array or a number. Received: {type(x).__name__} {x!r:.60}"
    )


def sequence(op: Op, tensors: Any) -> Sequence[Any]:
    """Return the operands of a variadic operator as a sequence; raise if they are not one."""
    return as_sequence(tensors, f"{op.name}: {op.inputs[-1]}")


def as_sequence(tensors: Any, what: str) -> Sequence[Any]:
    """Return a list or tuple as it is and a tensor as the list of its rows; else raise."""
    if isinstance(tensors, (Tensor, np.ndarray)) and tensors.ndim > 0:
        return list(tensors)
    if isinstance(tensors, (list, tuple)):
        return tensors
    raise ArgumentTypeError(
        f"{what} must be a list or tuple of tensors. "
        f"Received: {type(tensors).__name__} {tensors!r:.60}"
    )


_SCALARS: dict[dt.DType, dict[Number, Tensor]] = {}
_MAX_SCALARS = 1024


def lift_scalar(scalar: float, other: Any) -> Any:
    """Return a number as a constant of the other operand's dtype, or unchanged.

    Constants are cached by value: programs use few numbers many times, and NumPy takes a 0-d array
    twice as fast as a Python float. Zero is left out because 0.0 and -0.0 are equal keys.
    """
    value = getattr(other, "_value", None)
    if value is None:
        return scalar
    kind = value.dtype.kind
    if kind != "f" and (kind not in "iu" or scalar.__class__ is not int):
        return scalar  # they meet in another dtype
    try:
        return _scalar_constant(scalar, value.dtype)
    except DTypeError:
        return scalar  # the general path raises it again, with the operator's name


def _scalar_constant(scalar: Number, dtype: dt.DType) -> Tensor:
    known = _SCALARS.get(dtype)
    if known is None:
        known = _SCALARS.setdefault(dtype, {})
    tensor = known.get(scalar)
    if tensor is None:
        tensor = constant(scalar_array(scalar, dtype))
        if scalar != 0 and len(known) < _MAX_SCALARS:
            known[scalar if type(scalar) is int else float(scalar)] = tensor
    return tensor


# -- promote ----------------------------------------------------------------------------------


def promote(op: Op, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the operands as tensors, those the operator promotes in their common dtype."""
    if op.promote is None:
        return tuple(_alone(x) for x in inputs)
    if len(inputs) == 2 and isinstance(op.promote, str) and _is_float_beside_number(*inputs):
        x, y = inputs
        if isinstance(x, Tensor):
            return x, _scalar_constant(y, x.dtype)
        return _scalar_constant(x, y.dtype), y
    numbers = _are_numbers(inputs)
    if numbers:
        inputs = tuple([x.among_numbers() if isinstance(x, Dim) else x for x in inputs])
    last = len(op.inputs) - 1
    members = [op.inputs[min(i, last)] in op.promoted for i in range(len(inputs))]
    promoted = [x for x, member in zip(inputs, members, strict=True) if member]
    if numbers:
        dtype = _number_dtype(promoted, whole=op.promote != "float")
    else:
        dtype = common_dtype(promoted)
        if op.promote == "float":
            dtype = dt.to_float(dtype)
    return tuple(
        to_dtype(x, dtype) if member else _alone(x)
        for x, member in zip(inputs, members, strict=True)
    )


def _agree(inputs: Sequence[Any], *, floats: bool) -> bool:
    """Tell whether the operands are tensors of one dtype already: the common case, found fast."""
    if not inputs:
        return False
    first = inputs[0]
    if not isinstance(first, Tensor) or first.weak:
        return False
    dtype = first.dtype
    if floats and not dt.is_float(dtype):
        return False
    for x in inputs:
        if x is not first and (not isinstance(x, Tensor) or x.dtype is not dtype or x.weak):
            return False
    return True


def _is_float_beside_number(x: Any, y: Any) -> bool:
    """Tell whether one operand is a floating-point tensor and the other a Python number."""
    if isinstance(y, Tensor):
        x, y = y, x
    number = y.__class__ is float or y.__class__ is int
    return number and isinstance(x, Tensor) and not x.weak and dt.is_float(x.dtype)


def _are_numbers(inputs: Sequence[Any]) -> bool:
    """Tell whether the operands are numbers of a graph: weak symbols and Python numbers only."""
    tensors = [x for x in inputs if isinstance(x, Tensor)]
    return bool(tensors) and all(x.weak for x in tensors)


def _number_dtype(operands: Sequence[Any], *, whole: bool) -> dt.DType:
    """Return the dtype in which a graph computes with numbers: double precision, as Python does."""
    kinds = {type(x) if isinstance(x, (bool, int, float)) else _kind(x) for x in operands}
    if float in kinds or not whole:
        return dt.float64
    return dt.int64 if int in kinds else dt.bool_


def _kind(x: Any) -> type:
    return type(x.dtype.type(1).item()) if isinstance(x, Tensor) else int


def _alone(x: Any) -> Any:
    if isinstance(x, (bool, int, float)):
        return constant(scalar_array(x, dt.scalar_dtype(x)))
    return find("size_value")(x) if isinstance(x, Dim) else x


# -- run --------------------------------------------------------------------------------------


def wrap_outputs(values: Sequence[Any], node: FanNode | None) -> tuple[Tensor, ...]:
    """Return the outputs of an operation with several of them as tensors behind its node."""
    arrays = [v if v.__class__ is np.ndarray else np.asarray(v) for v in values]
    return wrap_values(arrays, node)


def wrap_values(values: Sequence[Any], node: FanNode | None) -> tuple[Tensor, ...]:
    """Return values, arrays or in memory of a device, as tensors behind a node of theirs."""
    if node is None:
        return tuple(wrap(v) for v in values)
    node.outputs = tuple((v.shape, v.dtype) for v in values)
    return tuple(
        wrap_with_node(v, output_node(node, i) if dt.is_float(v.dtype) else None)
        for i, v in enumerate(values)
    )


def quietly(kernel: Callable[..., Any], *args: Any) -> Any:
    """Run a kernel again whose floating-point warning the user's settings turned into an error.

    log(0) is -inf and 0/0 is NaN without comment, as in every framework. Weft's own warning filter
    sees to that; entering np.errstate on every call would cost more than the call.
    """
    with np.errstate(all="ignore"):
        return kernel(*args)


def sum_to(g: Any, shape: tuple[int, ...]) -> Any:
    """Return a gradient summed over the axes along which its input was broadcast to `shape`."""
    if g.shape == shape:
        return g
    if isinstance(g, Tensor):
        return find("sum_to")(g, shape)
    return sum_array_to(g, shape)


# -- errors -----------------------------------------------------------------------------------


def explain(op: Op, error: Exception, inputs: Sequence[Any], attrs: tuple[Any, ...]) -> Exception:
    """Return the error to raise: the operator, what was wrong, and where the operands came from."""
    if not isinstance(error, WeftError):
        error = _shape_rule_error(op, inputs, attrs) or _translate(error, inputs)
    message = str(error)
    if not message.startswith(f"{op.name}: "):
        message = f"{op.name}: {message}"
    named = type(error)(message + _origins(op, message, inputs), **error.facts)
    return worded(named, op.name, partial(_arguments, op, inputs, attrs), inputs)


def _arguments(op: Op, inputs: Sequence[Any], attrs: tuple[Any, ...]) -> dict[str, Any]:
    """Return the operands and attributes of an operation by their names."""
    operands = dict(zip(op.inputs, group(op, inputs), strict=False))
    return operands | dict(zip(op.attrs, attrs, strict=False))


def _shape_rule_error(op: Op, inputs: Sequence[Any], attrs: tuple[Any, ...]) -> WeftError | None:
    """Ask the shape rule, which knows why operands do not fit, for a better message."""
    try:
        types = tuple(None if x is None else type_of(x) for x in inputs)
        op.type_rule(group(op, types), attrs)
    except WeftError as better:
        return better.with_traceback(None)  # which would hold these frames in a cycle
    except Exception:  # the kernel's own error is reported then
        return None
    return None


_TRANSLATIONS: tuple[tuple[type[Exception], type[WeftError]], ...] = (
    (MemoryError, AllocationError),
    (np.linalg.LinAlgError, LinalgError),
    (IndexError, IndexOutOfRange),
    (TypeError, ArgumentTypeError),
    (Exception, ArgumentError),
)


def _translate(error: Exception, inputs: Sequence[Any]) -> WeftError:
    kind = next(ours for theirs, ours in _TRANSLATIONS if isinstance(error, theirs))
    shown = ", ".join(f"{x.dtype}{list(x.shape)}" for x in inputs if hasattr(x, "shape"))
    return kind(f"{error}; received {shown}" if shown else str(error))


def _origins(op: Op, message: str, inputs: Sequence[Any]) -> str:
    """Return " (x from train.py:12, y from model.py:8)" for the operands whose origin is known."""
    if message.endswith(")") and " from " in message:
        return ""
    last = len(op.inputs) - 1
    found = []
    for i, x in enumerate(inputs):
        where = site_of_user(site_of(x))
        if where is not None:
            position = f"[{i - last}]" if op.variadic and i >= last else ""
            found.append(f"{op.inputs[min(i, last)]}{position} from {where}")
    return f" ({', '.join(found)})" if found else ""
