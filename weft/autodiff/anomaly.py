"""Anomaly detection: stop at the first operation, forward or backward, that makes a NaN.

Forward, it is an interpreter that runs every operation eagerly and looks at the result; backward,
it checks the gradients that each node hands on and names the line that recorded the node. Graphs
look for themselves while it is on: they run node by node (see graph/run).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import Token
from typing import Any

from ..core.anomaly import detecting, detecting_anomaly, has_nan
from ..core.dispatch import run
from ..core.errors import AnomalyError, SiteSearch, format_site, user_site
from ..core.modes import current_interpreter, interpret_with, refuse_recording
from ..core.tensor import Tensor


class detect_anomaly:  # noqa: N801  (used like a function, as in PyTorch)
    """Raise AnomalyError, naming operator and line, where the first NaN is made.

    >>> import weft as wf
    >>> with wf.detect_anomaly():
    ...     wf.log(wf.tensor(-1.0))
    Traceback (most recent call last):
        ...
    weft.core.errors.AnomalyError: log made the first NaN: ...
    """

    def __init__(self) -> None:
        self._tokens: list[tuple[Token[bool], interpret_with]] = []

    def __enter__(self) -> detect_anomaly:
        """Switch detection on."""
        refuse_recording("NaNs are looked for")
        context = interpret_with(AnomalyInterpreter(current_interpreter()))
        self._tokens.append((detecting.set(True), context))
        SiteSearch.depth = SiteSearch.FULL
        context.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        """Restore the state of before."""
        token, context = self._tokens.pop()
        context.__exit__(*exc)
        detecting.reset(token)
        if not detecting_anomaly():
            SiteSearch.depth = SiteSearch.QUICK


class AnomalyInterpreter:
    """Runs operations as before and refuses results that introduce a NaN."""

    transparent = True  # what it runs is what would run without it

    def __init__(self, below: Any) -> None:
        self.below = below

    def apply(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Run one operation and check its outputs."""
        with interpret_with(self.below):
            result = run(op, inputs, attrs)
        outputs = result if isinstance(result, tuple) else (result,)
        if any(map(has_nan, outputs)) and not any(map(has_nan, inputs)):
            raise AnomalyError(_forward_message(op, inputs))
        return result


def checked(
    rules: Callable[[Any, Any], Iterable[Any]],
) -> Callable[[Any, Any], Iterable[Any]]:
    """Return rules that raise when a node turns a gradient without NaN into one with NaN."""

    def gradients_of(node: Any, g: Any) -> Iterable[Any]:
        with interpret_with(None):
            gradients = tuple(rules(node, g))
        clean = not any(map(has_nan, g if isinstance(g, list) else (g,)))
        if clean and any(map(has_nan, gradients)):
            where = format_site(node.site)
            raise AnomalyError(
                f"the backward of {node.op.name} made the first NaN; the operation was recorded "
                f"at {where or 'an unknown line'}"
            )
        return gradients

    return gradients_of


def _forward_message(op: Any, inputs: tuple[Any, ...]) -> str:
    where = format_site(user_site())
    shown = ", ".join(f"{x.dtype}{list(x.shape)}" for x in inputs if isinstance(x, Tensor))
    return f"{op.name} made the first NaN: inputs {shown or 'none'}, at {where or 'unknown line'}"
