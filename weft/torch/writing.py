"""Writing into tensors: what PyTorch's in-place operations do, over Weft's values.

A write computes a new value by an ordinary operation; the tensor then is that result. What shares
its memory hears of it.
"""

from __future__ import annotations

from typing import Any

from ..core import dtype as dt
from ..core import tensor as core
from ..core.modes import current_recorder, is_grad_enabled, is_transformed, modes, no_grad
from ..core.op import F
from ..core.tape import Leaf, TapeNode, next_order
from ..nn import Parameter
from .adoption import adopt
from .storage import note_replaced, relate, relatives, replace_parts
from .types import check_cast

LEAF_VIEW: list[Any] = []  # what gives a view of a leaf; views.py stands above this module
LEAF_WRITTEN = "a leaf Variable that requires grad is being used in an in-place operation."


def overwrite(tensor: Any, result: Any, begun: int | None = None) -> Any:
    """Let a tensor take a result as its value, cast to its dtype; return the tensor.

    begun   the number from which on nodes of the tape belong to this write
    """
    fitted = fitting(tensor, result)
    if fitted is tensor:
        return tensor
    if tensor.symbolic or is_transformed():
        return _overwrite_recorded(tensor, fitted)
    node = tensor._node
    if isinstance(node, Leaf) and is_grad_enabled():
        raise RuntimeError(LEAF_WRITTEN)
    before = tensor._value
    if fitted._value is before and fitted is not tensor:
        fitted = core.wrap_with_node(before.copy(), fitted._node)
    tensor._take(fitted)
    if isinstance(node, TapeNode) and not is_grad_enabled():
        tensor._node = node  # values change behind the back of what was recorded
    first = begun or _first_of(fitted)
    note_replaced(before, first)
    replace_parts(tensor, first)
    for other in relatives(tensor):
        other._value = tensor._value
        replace_parts(other, first)
    return tensor


def fitting(tensor: Any, result: Any) -> Any:
    """Return a result in the dtype of the tensor that is to take it; raise if it cannot."""
    if result.__class__ in core.PLAIN and not tensor.symbolic and not is_transformed():
        mine, given = tensor._value, result._value
        if given.dtype is mine.dtype and given.shape == mine.shape:
            return result
    if tuple(result.shape) != tuple(tensor.shape):
        raise RuntimeError(
            f"output with shape {list(tensor.shape)} doesn't match the broadcast shape "
            f"{list(result.shape)}"
        )
    if result.dtype == tensor.dtype:
        return result
    check_cast(result.dtype, tensor.dtype)
    return F.cast(result, tensor.dtype)


def _first_of(result: Any) -> int:
    node = result._node
    return next_order() if node is None else node.order


def _overwrite_recorded(tensor: Any, result: Any) -> Any:
    """Do the same where operations are recorded: values are those of the graph."""
    recorder: Any = current_recorder()
    if recorder is not None and tensor.requires_grad and not is_grad_enabled():
        if not tensor.is_leaf:
            recorder.refuse("it writes into a result of recorded operations under no_grad")
    elif recorder is not None and tensor.requires_grad and tensor.is_leaf:
        raise RuntimeError(LEAF_WRITTEN)
    tensor._take(result)
    for other in relatives(tensor):
        with no_grad():
            other._take(F.stop_gradient(result))
    return tensor


def detached(tensor: Any) -> Any:
    """Return a tensor of the same memory that is cut off from the graph."""
    window = getattr(tensor, "_window", None)
    if window is not None:
        if getattr(tensor, "_own", None) is not None or window.detaches:
            return LEAF_VIEW[0](tensor)
        return tensor.seen_from(detached(tensor.is_view_of))
    if isinstance(tensor._node, Leaf) or isinstance(tensor, Parameter):
        return LEAF_VIEW[0](tensor)
    if tensor.symbolic or is_transformed():
        alone = adopt(
            core.Tensor.detach(tensor) if not tensor.symbolic else F.stop_gradient(tensor)
        )
    else:
        alone = adopt(core.wrap(tensor._value))
    relate(tensor, alone)
    return alone


def replace_value(tensor: Any, value: Any) -> None:
    """Let a tensor hold another value, as `x.data = value` does; its dtype and shape may change."""
    if not isinstance(value, core.Tensor):
        raise TypeError("Variable data has to be a tensor, but got " + type(value).__name__)
    alike = tuple(value.shape) == tuple(tensor.shape) and value.dtype == tensor.dtype
    if alike and (tensor.symbolic or is_transformed()):
        with no_grad():
            tensor._take(value)
        return
    recorder: Any = current_recorder() if modes.interpreters else None
    if recorder is not None:
        recorder.refuse("it replaces the data of a tensor by one of another shape")
    tensor._value = value._value
    if isinstance(tensor._node, TapeNode) and not dt.is_float(tensor.dtype):
        tensor._node = None
