"""Tensors on other devices than the CPU.

A tensor is on the CPU unless it has a mark. Marks are the business of an interpreter below all
others, which is there while there are marks: it sees to it that the operands of an operation lie on
one device, and marks the results. While everything lies on the CPU, operations look at nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any, TypeVar

from .device import CPU, check_device, device, scopes
from .errors import GENERATED_PREFIX, PACKAGE_DIR, ArgumentError
from .modes import modes
from .tensor import Constant, Tensor

TensorT = TypeVar("TensorT", bound=Tensor)


class Mark:
    """Says where a tensor is, for as long as there is the tensor."""

    __slots__ = ("device",)

    def __init__(self, where: device) -> None:
        self.device = where
        _marks.add(id(self))  # by atomic operations: no lock may be taken where objects are freed
        if not _marked_before:
            _marked_before.append(True)
            modes.count_interpreter(+1)
        modes.base = MARKING

    def __del__(self) -> None:
        _marks.discard(id(self))
        if not _marks:
            modes.base = None
            if _marks:  # another thread has made one in the meantime
                modes.base = MARKING


_marks: set[int] = set()
_marked_before: list[bool] = []


def place(tensor: TensorT, where: device) -> TensorT:
    """Put a tensor itself on a device, and return it."""
    held: Any = tensor
    while hasattr(held, "primal"):  # the values of transforms are tensors around others
        held = held.primal
    if held.device == where:
        return tensor
    if held.symbolic:
        raise ArgumentError(_symbol_message(held.device, where))
    if where == CPU:
        del held._mark
    else:
        held._mark = Mark(where)
    return tensor


def _symbol_message(here: device, there: device) -> str:
    return (
        f"a graph runs on one device: this symbol is on {str(here)!r}. To run it on "
        f"{str(there)!r}, build it inside `with wf.device({str(there)!r}):`, or say "
        f"wf.Session(graph, device={str(there)!r})"
    )


def made_on(tensor: TensorT, given: Any) -> TensorT:
    """Return a new tensor on the device that an argument names, by default that of the context."""
    if given is None and not scopes:
        return tensor
    return place(tensor, check_device(given))


class Marking:
    """Runs operations as without it, on operands of one device, and marks their results."""

    transparent = True  # what it runs is what would run without it
    below = None

    def apply(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Run one operation."""
        found = {x.device: None for x in inputs if x is not None and x.__class__ is not Constant}
        where = common_device(op.name, found) if found else check_device(None)
        result = op.specialized.execute(inputs, attrs)
        for y in result if isinstance(result, tuple) else (result,):
            place(y, where)
        return result


MARKING = Marking()


def common_device(what: str, found: Iterable[device]) -> device:
    """Return the device that all operands are on; raise if the user mixes two.

    What Weft makes itself on the way, a mask say, goes where it is needed.
    """
    first, *others = sorted(found, key=lambda where: where == CPU)
    if others and (others != [CPU] or not _is_called_by_weft()):
        raise ArgumentError(
            f"{what}: operands are on {first!r} and {others[0]!r}; move one of them first, "
            f"x.to({str(others[0])!r}) for example"
        )
    return first


def _is_called_by_weft() -> bool:
    """Tell whether an operation is a step of a function of Weft's own."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_DISPATCH):
        frame = frame.f_back
    return frame.f_code.co_filename.startswith(PACKAGE_DIR)


_DISPATCH = (os.path.dirname(__file__), GENERATED_PREFIX)  # files that an operation comes through
