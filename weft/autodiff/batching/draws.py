"""Random draws inside vmap.

"different": each example has numbers of its own. They come from one draw of the whole batch, for
which as many blocks of the generator are reserved as all examples would take.
"same": all examples have the same numbers, those that a call without vmap would draw.
"""

from __future__ import annotations

from typing import Any

from ...core.batching import BatchedCall, with_rank
from ...core.dispatch import run
from ...core.op import F
from .fallback import example, one_by_one

RANDOMNESS = ("error", "different", "same")


def drawn_apart(call: BatchedCall) -> Any:
    """Draw different numbers for all examples."""
    if call.op.batch_rule is not None:
        return call.apply(call.op.batch_rule)
    return _of_whole_shape(call) if "shape" in call.op.attrs else _in_turn(call)


def _of_whole_shape(call: BatchedCall) -> Any:
    """Draw the whole batch at once; parameters broadcast to the shape of the draw."""
    named = dict(zip(call.op.attrs, call.attrs, strict=True))
    shape = named["shape"]
    attrs = tuple((call.size, *v) if n == "shape" else v for n, v in named.items())
    state, *parameters = call.inputs
    pairs = zip(parameters, call.batched[1:], strict=True)
    return run(call.op, (state, *(with_rank(p, len(shape)) if b else p for p, b in pairs)), attrs)


def _in_turn(call: BatchedCall) -> Any:
    """Draw one example after another, each from a state of its own."""
    state, *rest = call.inputs
    assert call.op.blocks_rule is not None, call.op
    blocks = call.op.blocks_rule(*example(call, 0)[1:], *call.attrs) if call.size else 0
    states = [F.advance_state(state, i * blocks) for i in range(call.size)]
    stacked = F.stack(states) if states else F.unsqueeze(state, 0)[:0]
    apart = BatchedCall(call.op, (stacked, *rest), (True, *call.batched[1:]), call.attrs, call.size)
    return one_by_one(apart, quiet=True)


def drawn_alike(call: BatchedCall) -> Any:
    """Draw the same numbers for all examples, whose parameters differ."""
    return one_by_one(call, quiet=True)


DRAWS = {"different": drawn_apart, "same": drawn_alike}
