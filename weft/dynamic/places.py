"""On which device put-off operations run.

A type of values lies on one device (signatures.py), so that operations on two devices are never of
one batch, and where a result will be is known as soon as its shape is. What may be on two devices
where nothing is put off may be so here: numbers, and indices that go to a function of Weft's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from ..core.device import CPU, device, device_named
from ..core.dtype import is_float
from ..core.modes import modes
from ..core.placing import common_device
from ..core.tensor import Constant, Tensor
from .deferred import DeferredTensor

if TYPE_CHECKING:
    from .signatures import SignatureTable

_THROUGH = (os.path.dirname(__file__),)  # folders that an operation comes through on its way here


def moves(work: Any) -> bool:
    """Tell whether an operation moves its operand to another device."""
    op = getattr(work, "op", None)
    return op is not None and bool(op.transfers)


def place_of_results(
    work: Any, specs: Sequence[Any], inputs: Sequence[Any], table: SignatureTable
) -> device:
    """Return where the results of an operation are; raise if its operands are on two devices.

    inputs   the operands, as far as code gave them
    """
    if moves(work):
        return device_named(work.attrs[0])
    operands = [(spec, x) for spec, x in zip_longest(specs, inputs) if spec is not None]
    found: dict[device, None] = {}
    for spec, x in operands:
        where = table.places[spec] if spec.__class__ is int else spec.where
        if where != CPU or not _goes_along(work, spec, x):
            found[where] = None
    if len(found) < 2:
        return next(iter(found), CPU)
    return _common(work.name, found, inputs)


def refuse_two_places(work: Any, inputs: Sequence[Any]) -> None:
    """Raise if operands of an operation that runs at once are on two devices."""
    if modes.base is not None:
        known = [x for x in inputs if x is not None and x.__class__ is not Constant]
        found = dict.fromkeys([x.device for x in known])
        if len(found) > 1:
            _common(work.name, found, inputs)


def _common(what: str, found: Iterable[device], inputs: Sequence[Any]) -> device:
    learned = any(_is_learned_on_host(x) for x in inputs)
    return common_device(what, found, learned=learned, passed=_THROUGH)


def _goes_along(work: Any, spec: Any, x: Any) -> bool:
    """Tell whether an operand that is on the CPU goes where it is needed.

    Of what runs together with others was asked when it was put off; an index that a cell is given
    it looks something up with, as a rule.
    """
    if x is None:
        return spec.__class__ is int or spec.tensor.__class__ is Constant
    if x.__class__ is Constant:
        return True
    return not hasattr(work, "op") and _is_made(x) and not is_float(x.dtype)


def _is_made(x: Any) -> bool:
    """Tell whether a tensor stands for what an example made, and no operation computed."""
    return x.__class__ is DeferredTensor and x.level == 0


def _is_learned_on_host(x: Any) -> bool:
    return (
        isinstance(x, Tensor)
        and x.__class__ is not DeferredTensor
        and x.device == CPU
        and x.requires_grad
    )


def brought_to(operands: Iterable[Any], where: device) -> tuple[Any, ...]:
    """Return operands on the device where an operation runs: what goes along is copied there."""
    return tuple([x if x is None or x.__class__ is Constant else x.to(where) for x in operands])
