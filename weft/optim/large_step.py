"""Updates of large models as machine code: the same rule, in one pass over memory, and one call.

The program is what `minimize` would build for the parameters of a group, with their gradients fed.
It reads and writes the parameters and the optimizer's slots where they are. The operators of
elementwise rules round once each, so that the bits are those of an update by NumPy; only powers of
a decay rate are not rounded correctly, to the last bit of a double.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.anomaly import detecting_anomaly
from ..core.config import config
from ..core.modes import current_transform
from ..core.tensor import Tensor
from ..graph.frontend import open_tracer, placeholder
from ..graph.graph import Graph
from ..graph.session import Session
from ..graph.update import Update
from .graph_step import GraphRule, GroupStep

MOST_STEPS = 8  # that an optimizer keeps: parameters without a gradient make a step of their own


class LargeStep(NamedTuple):
    """The compiled update of the parameters of a group.

    made_for   all that it depends on, but the learning rate
    run        takes the gradients
    """

    made_for: Any
    run: Callable[[Sequence[Any]], None]


def run_large(
    optimizer: Any, index: int, group: Mapping[str, Any], params: Sequence[Tensor]
) -> bool:
    """Update parameters by machine code; return False if there can be none."""
    if current_transform() is not None or detecting_anomaly() or not config.eager_kernels:
        return False
    settings = {n: v for n, v in optimizer._settings(index, group).items() if n != "lr"}
    gradients = [p.grad._value for p in params]
    types = [
        (p._value.shape, p._value.dtype, g.dtype) for p, g in zip(params, gradients, strict=True)
    ]
    steps, key = optimizer._large_steps, (index, *map(id, params))
    known = steps.pop(key, None)
    if known is None or known.made_for != (settings, types):
        known = LargeStep((settings, types), _compiled(optimizer, index, group, params))
    if len(steps) >= MOST_STEPS:
        del steps[next(iter(steps))]
    steps[key] = known  # the latest used stands last
    known.run(gradients)
    return True


def _compiled(
    optimizer: Any, index: int, group: Mapping[str, Any], params: Sequence[Tensor]
) -> Callable[[Sequence[Any]], None]:
    """Return the update as a function of gradients."""
    members = list(params)  # held as long as the program, which is known by who they are
    with Graph("step") as graph:
        gs = [placeholder(p.grad.shape, p.grad.dtype) for p in members]
        step = GroupStep(open_tracer("step"), optimizer, index, group)
        rule = GraphRule(optimizer.transform, {})
        assigns = step.build(members, dict(zip(members, gs, strict=True)), rule)
    session, update = Session(graph), Update(assigns)

    def run(gradients: Sequence[Any]) -> None:
        assert len(members) == len(gradients)
        session.run(update, dict(zip(gs, gradients, strict=True)))

    return run
