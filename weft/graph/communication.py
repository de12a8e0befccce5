"""The two halves of an exchange among processes: nodes that compiled programs have in its place.

The first begins it, on a copy of its operand, and gives the next link and a ticket; the second
gives the result for the ticket, when it is there. Between them machine code runs.

Both know whether what is exchanged is kept for a repetition of the program: not where nothing but
an exchange can fail any more (plan/repetition.py), which fails again if it is repeated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.effects import communicated, current_log
from ..core.imports import injected
from ..core.shape import TensorType
from .special import NodeOp
from .state import LINK

Array = np.ndarray[Any, Any]

_start = injected("start_exchange")
_take = injected("take_exchange")


class ExchangeStart(NodeOp):
    """Begins an exchange."""

    kind = "communication"
    outputs = 2
    advances = True
    communicates = True

    def __init__(self) -> None:
        attrs = ("how", "group", "size", "axis", "place", "note", "kept")
        super().__init__("exchange_start", ("link", "x"), attrs)

    def type_rule(self, types: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Return the types of the link and the ticket."""
        return LINK, LINK

    def kernel(self, link: Array, x: Array, *attrs: Any) -> tuple[Array, Array]:
        """Begin it; return the next link and the ticket."""
        *how, kept = attrs
        begun = communicated(lambda: _start(x, *how), kept=kept)
        return link + 1, np.array(begun.ticket, np.int64)


class ExchangeWait(NodeOp):
    """Waits for the result of an exchange."""

    kind = "communication"
    communicates = True

    def __init__(self) -> None:
        super().__init__("exchange_wait", ("ticket",), ("shape", "dtype", "kept"))

    def type_rule(self, types: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Return the type of the result."""
        shape, dtype, _ = attrs
        return TensorType(shape, np.dtype(dtype))

    def kernel(self, ticket: Array, shape: Any, dtype: Any, kept: bool) -> Array:
        """Return the result, when it is there; an attempt that repeats this is given the same."""
        number, log = int(ticket), current_log()
        if log is not None and not kept:
            log.forget()
        begun = _take(number) if log is None else log.kept(number, lambda: _take(number))
        found: Array = begun.wait()
        return found


START, WAIT = ExchangeStart(), ExchangeWait()
COMMUNICATION = {op.name: op for op in (START, WAIT)}
