"""The operations of effects: nodes that show values to somebody and give the next link of a chain.

Their kernels run on arrays, whoever runs the graph: node by node, or by the host between stretches
of machine code. The state of a run is not written yet while they do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.device import current_device
from ...core.effects import current_log, logging_to, trips
from ...core.errors import (
    CheckError,
    GraphError,
    Site,
    WeftError,
    format_site,
    is_from_signal,
    note_outside,
    user_site,
)
from ...core.modes import interpret_with
from ...core.shape import TensorType
from ..node import Node, Value
from ..scope import current_scope
from ..special import NodeOp
from ..state import CHAIN_STATE, LINK
from ..tracer import Tracer

Array = np.ndarray[Any, Any]


class EffectOp(NodeOp):
    """Takes a link and values, does something with the values, and gives the next link.

    act     gets the values as arrays, a place, and the attributes before `name` and `where`
    check   raises unless it can be given so many values with these attributes
    """

    kind = "effect"
    variadic = True
    outputs = 1
    advances = True
    effect = True
    lower_rule = None

    def __init__(
        self,
        name: str,
        attrs: tuple[str, ...],
        act: Callable[..., object],
        check: Callable[..., bool],
    ) -> None:
        super().__init__(name, ("link", "operands"), (*attrs, "name", "where"))
        self._act, self._fits = act, check

    def type_rule(self, types: tuple[Any, ...], attrs: tuple[Any, ...]) -> TensorType:
        """Return the type of a link; raise if the attributes are no such (those of a file)."""
        link, operands = types
        *own, name, where = attrs
        texts = isinstance(name, str) and isinstance(where, str)
        if link != LINK or not texts or not self._fits(operands, *own):
            raise GraphError(f"{self.name}: its attributes or operands do not fit: {attrs!r:.80}")
        return LINK

    def kernel(self, link: Array, operands: Sequence[Array], *attrs: Any) -> Array:
        """Do it, unless an earlier attempt of this call has; return the next link."""
        log = current_log()
        if log is None or log.is_new():
            self.happen(operands, attrs)
        after: Array = link + 1
        return after

    def happen(self, operands: Sequence[Array], attrs: tuple[Any, ...]) -> None:
        """Do it, as Python does outside of any program."""
        *own, name, where = attrs
        place = EffectPlace(self.name, name, where, trips(), current_log())
        with logging_to(None), interpret_with(None), np.errstate(**_PLAIN):
            try:
                self._act(list(operands), place, *own)
            except Exception as error:
                if not isinstance(error, (CheckError, QuitDebugger)) and not is_from_signal(error):
                    after = "; no state was written" if name else ""
                    error.add_note(f"raised by {place}{after}")
                note_outside(error)
                raise
            except BaseException as error:  # Ctrl-C, or the end of the process
                note_outside(error)
                raise


_PLAIN: dict[str, Any] = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


class QuitDebugger(WeftError):  # noqa: N818  (says what happened)
    """A run was ended at the prompt of the debugger."""


class PythonCallback:
    """A function of Python's that a node calls with arrays: no part of a graph's text or file."""

    def __call__(self, arrays: Sequence[Array]) -> None:
        """Call the function."""
        raise NotImplementedError


class EffectPlace:
    """Where an effect happens.

    name    of its node; "" in eager code
    where   the user's line
    trips   of the loops around it
    log     of the call that it is part of
    """

    def __init__(
        self, op: str, name: str, where: str, trips: tuple[int, ...], log: Any = None
    ) -> None:
        self.op, self.name, self.where, self.trips, self.log = op, name, where, trips, log

    @property
    def trip(self) -> str:
        """Return the trips as text, e.g. `trip 3` or `trip 0, 3`; "" outside of loops."""
        return f"trip {', '.join(map(str, self.trips))}" if self.trips else ""

    def __str__(self) -> str:
        parts = [f"wf.debug.{self.op}"]
        if self.name:
            parts.append(f"node {self.name}")
        parts.append(f"built at {self.where}" if self.name else f"at {self.where}")
        return ", ".join([*parts, *([self.trip] if self.trip else [])])


def add_effect(tracer: Tracer, op: EffectOp, values: Sequence[Value], attrs: Any) -> None:
    """Append an effect behind all those that the program had before."""
    scope = current_scope()
    site: Site | str = user_site() if tracer.site is None else tracer.site
    name = tracer.graph.unique_name("/".join((*scope, op.name)))
    node = Node(
        op,
        [tracer.read_state(CHAIN_STATE), *values],
        (*attrs, name, place_text(site)),
        [LINK],
        name=name,
        scope=scope,
        site=site,
        device=current_device(),
    )
    tracer.write_state(CHAIN_STATE, tracer.graph.append(node).outputs[0])


def place_text(site: Site | str) -> str:
    """Return a line of the user's for a message."""
    known = site if isinstance(site, str) else format_site(site)
    return known or "an unknown line"
