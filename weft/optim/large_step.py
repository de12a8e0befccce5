"""Updates of very large parameters as machine code: the same rule, in one pass over memory.

The program is what `minimize` would build for the parameter alone, with its gradient fed. It reads
and writes the parameter and the optimizer's slots where they are. Operators of elementwise rules
round once each, so that the bits are those of an update by NumPy; only powers of a decay rate are
not rounded correctly, to the last bit of a double.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..core.anomaly import detecting_anomaly
from ..core.modes import current_interpreter
from ..core.tensor import Tensor
from ..graph.frontend import open_tracer, placeholder
from ..graph.graph import Graph
from ..graph.session import Session
from ..graph.update import Update
from .graph_step import GraphRule, GroupStep


class LargeStep(NamedTuple):
    """The compiled update of one parameter.

    made_for   all that it depends on, but the learning rate
    run        takes the gradient
    """

    made_for: Any
    run: Callable[[Any], None]


def run_large(optimizer: Any, index: int, group: Mapping[str, Any], p: Tensor) -> bool:
    """Update a parameter by machine code; return False if there can be none."""
    if current_interpreter() is not None or detecting_anomaly():
        return False
    settings = {n: v for n, v in optimizer._settings(index, group).items() if n != "lr"}
    made_for = index, settings, p.shape, p.dtype, p.grad.dtype
    known = optimizer._large_steps.get(p)
    if known is None or known.made_for != made_for:
        known = LargeStep(made_for, _compiled(optimizer, index, group, p))
        optimizer._large_steps[p] = known
    known.run(p.grad._value)
    return True


def _compiled(
    optimizer: Any, index: int, group: Mapping[str, Any], p: Tensor
) -> Callable[[Any], None]:
    with Graph("step") as graph:
        g = placeholder(p.grad.shape, p.grad.dtype, name="gradient")
        step = GroupStep(open_tracer("step"), optimizer, index, group)
        assigns = step.build([p], {p: g}, GraphRule(optimizer.transform, {}))
    session, update = Session(graph), Update(assigns)
    return lambda gradient: session.run(update, {g: gradient})
