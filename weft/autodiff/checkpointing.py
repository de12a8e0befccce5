"""`checkpoint`: forget what a function computed, and compute it again for the gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.dtype import is_float
from ..core.errors import user_site
from ..core.imports import deferred_imports
from ..core.modes import current_interpreter, is_grad_enabled, no_grad
from ..core.tape import TapeNode, make_node, output_node
from ..core.tensor import Tensor, placed_like, wrap, wrap_with_node
from ..core.tree import flatten
from .arguments import check_callable
from .gradient import named_after
from .policies import as_policy
from .pullback import pull_back_of
from .region import CHECKPOINT, CheckpointRegion, Ref, RegionPlan, plain, plan_of
from .replay import RegionReplay, replay_of
from .rules import TapeOp


def checkpoint(fn: Callable[..., Any], policy: Any = None) -> Callable[..., Any]:
    """Return fn so that its gradient keeps the inputs only, and computes the rest again.

    Training n layers in sqrt(n) checkpoints of sqrt(n) layers each takes memory for about
    2 sqrt(n) of them, and the time of one more forward pass. fn may be a Module, take and return
    any trees, use tensors from outside, draw random numbers (the same again), and hold further
    checkpoints. What it read from outside is remembered, not read again.

    policy   what to keep all the same: None or "nothing"; "dots", the results of matrix products
             and convolutions; "everything"; `wf.autodiff.policies.names("a", ...)`, what
             `wf.checkpoint_name` gave these names; or a function policy(op, *types, **attrs) that
             returns whether to keep the results of an operation

    In a graph, the gradient computes its own copy of the nodes. Inside jvp and vmap nothing is
    kept or lost: put the checkpoint around the vmap.

    >>> import weft as wf
    >>> wf.grad(wf.checkpoint(lambda x: wf.sin(wf.sin(x))))(wf.tensor(0.0))
    tensor(1.)
    """
    check_callable(fn, "checkpoint")
    saves = as_policy(policy)

    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        interpreter: Any = current_interpreter()
        while getattr(interpreter, "transparent", False):
            interpreter = interpreter.below
        if hasattr(interpreter, "read_state"):
            with deferred_imports:
                from .static.checkpoint import checkpoint_in_graph  # noqa: PLC0415  (graphs only)
            return checkpoint_in_graph(fn, saves, args, kwargs)
        if isinstance(interpreter, CheckpointRegion) or (interpreter is None and is_grad_enabled()):
            return _run(CheckpointRegion(interpreter, saves), fn, args, kwargs)
        return fn(*args, **kwargs)

    return named_after(checkpointed, fn)


def _run(region: CheckpointRegion, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    leaves, structure = flatten(region.run(fn, args, kwargs))
    made = [i for i, y in enumerate(leaves) if region.is_inside(y)]
    if not made:
        return structure.unflatten(leaves)
    refs = [leaves[i].extra for i in made]
    op = Checkpointed(plan_of(region.steps, refs))
    values = tuple(plain(leaves[i]) for i in made)
    if region.around is not None:
        results = region.around.add(op, region.inputs, (), values, is_grad_enabled())
    else:
        kept = op.kept(region.inputs, region.kept, dict(zip(refs, values, strict=True)))
        results = op.record(region.inputs, values, kept)
    for i, y in zip(made, results, strict=True):
        leaves[i] = y
    return structure.unflatten(leaves)


class Checkpointed(TapeOp):
    """A region as one operation of the tape."""

    kind = CHECKPOINT
    name = "checkpoint"

    def __init__(self, plan: RegionPlan) -> None:
        self.plan = plan

    def execute(self, inputs: tuple[Tensor, ...], attrs: tuple[Any, ...]) -> tuple[Tensor, ...]:
        """Run the steps unrecorded; leave one node."""
        with no_grad():
            found = self.plan.forward(inputs)
        return self.record(inputs, found, {})

    def saved_for(self, operation: Any) -> Any:
        """Return what a node keeps that is left without running."""
        return list(operation.inputs), {}

    def kept(
        self, inputs: Sequence[Tensor], saved: dict[Ref, Any], outputs: dict[Ref, Tensor]
    ) -> dict[Ref, Any]:
        """Return what to keep beside the inputs: what the policy saves, outputs that are needed."""
        asked = self._replay([x._node for x in inputs]).all_asked
        needed = {n: y._value for n, y in outputs.items() if n in asked}
        return {n: value for n, value in (saved | needed).items() if n in self.plan.last}

    def _replay(self, parents: Sequence[Any]) -> RegionReplay:
        """Return how to run again for the gradients of inputs that have a node."""
        wanted = tuple([-1 - i for i, node in enumerate(parents) if node is not None])
        return replay_of(self.plan, wanted)

    def record(
        self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], kept: dict[Ref, Any]
    ) -> tuple[Tensor, ...]:
        """Return the outputs behind a new node of the tape, if any input requires gradients."""
        if not is_grad_enabled() or all(x._node is None for x in inputs):
            return tuple(wrap(y._value) for y in outputs)
        parents = tuple(x._node for x in inputs)
        saved = [x._value for x in inputs], kept
        node = make_node(self, parents, saved, outputs=outputs, site=user_site())
        return tuple(_output(node, i, y) for i, y in enumerate(outputs))

    def backward(self, node: TapeNode, saved: Any, gs: list[Any]) -> list[Any]:
        """Return the gradients of the inputs as arrays."""
        with no_grad():
            found = self._pull(node, saved, [wrap(g) for g in gs], linked=False)
        return [None if g is None else g._value for g in found]

    def linked(self, node: TapeNode, saved: Any, gs: list[Any]) -> list[Any]:
        """Return the gradients of the inputs as tensors that can be differentiated again."""
        return self._pull(node, saved, gs, linked=True)

    def _pull(self, node: TapeNode, saved: Any, gs: Sequence[Any], *, linked: bool) -> list[Any]:
        arrays, kept = saved
        inputs = [
            wrap_with_node(value, parent if linked else None)
            for value, parent in zip(arrays, node.parents, strict=True)
        ]
        wanted = [i for i, parent in enumerate(node.parents) if parent is not None]
        replay = self._replay(node.parents)

        def again(places: list[Any]) -> list[Any]:
            filled = list(inputs)
            for i, place in zip(wanted, places, strict=True):
                filled[i] = place
            return replay.outputs(filled, kept)

        _, pull, _ = pull_back_of(again, [inputs[i] for i in wanted], once=not linked)
        grads: list[Any] = [None] * len(inputs)
        for i, g in zip(wanted, pull(gs), strict=True):
            grads[i] = g
        return grads


def _output(node: Any, position: int, y: Tensor) -> Tensor:
    parent = output_node(node, position) if is_float(y.dtype) else None
    return placed_like(y, wrap_with_node(y._value, parent))
