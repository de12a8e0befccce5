"""Tensors on other devices than the CPU.

A device works in the host's memory, and a tensor there is an array with a mark that says where it
is; or in memory of its own, and a tensor there holds that (core/device_array.py) and has no array.
Both are the business of an interpreter below all others, which is there while there is anything
elsewhere: it sees to it that the operands of an operation lie on one device, runs it there, and
marks the results. While everything lies on the CPU, operations look at nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from .device import CPU, check_device, device, scopes
from .device_array import (
    PRESENCE,
    DeviceArray,
    has_own_memory,
    is_placed,
    moved,
    runtime,
    to_device,
)
from .dispatch import wrap_values
from .errors import GENERATED_PREFIX, PACKAGE_DIR, ArgumentError
from .op import F, Op
from .specialize import with_kernel
from .tensor import Constant, Tensor, wrap_with_node
from .tree import tree_map

TensorT = TypeVar("TensorT", bound=Tensor)


class Mark:
    """Says where a tensor is, for as long as there is the tensor."""

    __slots__ = ("device",)

    def __init__(self, where: device) -> None:
        self.device = where
        PRESENCE.enter(self)

    def __del__(self) -> None:
        PRESENCE.leave(self)


def place(tensor: TensorT, where: device) -> TensorT:
    """Put a tensor itself on a device, and return it."""
    held: Any = tensor
    while hasattr(held, "primal"):  # the values of transforms are tensors around others
        held = held.primal
    if held.device == where:
        return tensor
    if held.symbolic or held.waits:
        moved_symbol: TensorT = _symbol_on(tensor, where)
        return moved_symbol
    held._value = moved(held._value, where)
    if hasattr(held, "_mark"):
        del held._mark
    _marked_as(held, where)
    return tensor


def _symbol_on(symbol: Any, where: device) -> Any:
    """Return what has no value yet on another device: a step of its own copies it."""
    with where:
        return F.transfer(symbol, str(where), str(symbol.device))


def made_on(tensor: TensorT, given: Any) -> TensorT:
    """Return a new tensor on the device that an argument names, by default that of the context."""
    if given is None and not scopes:
        return tensor
    return place(tensor, check_device(given))


def moved_tensors(batch: Any, where: device) -> Any:
    """Return any nest with its tensors on a device."""
    return tree_map(lambda leaf: leaf.to(where) if isinstance(leaf, Tensor) else leaf, batch)


class Marking:
    """Runs operations where their operands are: on one device, with the results there too."""

    transparent = True  # what it runs is what would run without it
    below = None

    def apply(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Run one operation."""
        if not isinstance(op, Op):
            return self._run_function(op, inputs, attrs)
        if op.transfers:
            return place(op.specialized.execute(inputs, attrs), device(attrs[0]))
        where = _device_among(op.name, inputs)
        if has_own_memory(where):
            return _placed_execute(op, where)(tuple([_on(x, where) for x in inputs]), attrs)
        return self._marked(op.specialized.execute(inputs, attrs), where)

    def _run_function(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Run a function of the user's that has its own derivative; its operations come here."""
        where = _device_among(op.name, inputs)
        result = op.specialized.execute(inputs, attrs)
        return result if has_own_memory(where) else self._marked(result, where)

    @staticmethod
    def _marked(result: Any, where: device) -> Any:
        for y in result if isinstance(result, tuple) else (result,):
            _marked_as(y, where)
        return result


def _marked_as(tensor: Any, where: device) -> Any:
    """Say of a new tensor where it is, if that is not to be seen from its value."""
    if where != CPU and tensor._value.__class__ is not DeviceArray:
        tensor._mark = Mark(where)
    return tensor


MARKING = Marking()
PRESENCE.base = MARKING

_executes: dict[tuple[Any, device], Callable[..., Any]] = {}


def _placed_execute(op: Any, where: device) -> Callable[..., Any]:
    """Return the generated `execute` of an operator with a launch on a device as its kernel.

    So what is recorded for gradients is decided in one place, wherever the kernel runs.
    """
    known = _executes.get((op, where))
    if known is None:
        known = with_kernel(op.specialized, partial(_launch, op, where), DeviceArray, wrap_values)
        _executes[op, where] = known
    return known


def _launch(op: Any, where: device, *args: Any) -> Any:
    """Run an operator on a device; called as its kernel is, a sequence of operands in one list."""
    count = len(op.inputs)
    operands = args[:count]
    if op.variadic:
        operands = (*operands[:-1], *operands[-1])
    return runtime.get().launch(op, operands, args[count:], where)


def _on(x: Any, where: device) -> Any:
    """Return an operand on a device: numbers, and what Weft made on the way, are copied there."""
    if x is None or x._value.__class__ is DeviceArray:
        return x
    return wrap_with_node(to_device(x._value, where), x._node)


def _device_among(what: str, inputs: Iterable[Any]) -> device:
    """Return the device of operands; that of the context if they are literals only."""
    operands = [x for x in inputs if x is not None and x.__class__ is not Constant]
    found = {x.device: None for x in operands}
    if not found:
        return check_device(None)
    learned = len(found) > 1 and any(_is_learned_array(x) for x in operands)
    return common_device(what, found, learned=learned)


def _is_learned_array(x: Tensor) -> bool:
    """Tell whether a tensor is an array with a gradient: one on a device would not fit it."""
    return x.requires_grad and not is_placed(x._value)


def common_device(
    what: str, found: Iterable[device], *, learned: bool = False, passed: tuple[str, ...] = ()
) -> device:
    """Return the device that all operands are on; raise if the user mixes two.

    What Weft makes itself on the way, a mask say, goes where it is needed. That is never `learned`:
    parameters of a module that was not moved are the user's, however they come here.

    passed   further packages, by their folders, that an operation comes through
    """
    first, *others = sorted(found, key=lambda where: where == CPU)
    left = learned and has_own_memory(first)
    if others and (others != [CPU] or left or not is_called_by_weft(passed)):
        move = f"x.to({str(others[0])!r})"
        if left:
            move = f"x.to({str(first)!r}) or model.to({str(first)!r})"
        raise ArgumentError(
            f"{what}: operands are on {first!r} and {others[0]!r}; move one of them first, "
            f"{move} for example"
        )
    return first


def is_called_by_weft(passed: tuple[str, ...] = ()) -> bool:
    """Tell whether an operation is a step of a function of Weft's own.

    passed   further packages, by their folders, that an operation comes through
    """
    through = (*_DISPATCH, *passed)
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(through):
        frame = frame.f_back
    return frame.f_code.co_filename.startswith(PACKAGE_DIR)


_DISPATCH = (os.path.dirname(__file__), GENERATED_PREFIX)  # files that an operation comes through
