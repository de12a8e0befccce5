"""Reverse mode at a level of its own: record operations on any values, then pull back.

The tape lies below all interpreters and serves plain eager code. Inside other transforms reverse
mode must come first: of `vmap(grad(f))` it is the gradient that is batched. So a recording is an
interpreter itself. It runs operations by means of the one below and keeps a node of each, with
what its vjp rules ask for; the rules then run below too, on dual numbers, batches or symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from ..core.dispatch import run
from ..core.dtype import is_float
from ..core.errors import ArgumentTypeError, GradientError
from ..core.modes import enable_grad, is_grad_enabled, no_grad, run_below
from ..core.tape import FanNode, HookHandle, Leaf, TapeNode, add_hook, make_node, output_node
from ..core.tensor import Tensor
from .engine import AnyNode, ReverseWalk
from .layered import Layered, Running, TransformLevel, make_layer
from .rules import Operation, has_rule

Parents = tuple[AnyNode | None, ...]


class Recorded(Layered):
    """A value whose origin a recording knows, by its node."""

    __slots__ = ()

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
        """Call `hook(grad)` once the gradient of this value is known; it may return another."""
        if self.extra is None:
            raise GradientError("cannot register a hook on a value that requires no gradient")
        if not callable(hook):
            raise ArgumentTypeError(f"a hook must be callable. Received: {hook!r:.60}")
        return add_hook(self.extra, hook)

    def __repr__(self) -> str:
        return f"recorded({self.primal!r})"


class Recording:
    """Runs operations by the interpreter below and remembers how to differentiate them."""

    def __init__(self, below: Any) -> None:
        self.below = below
        self.level = TransformLevel("grad or vjp")
        self.leaves: list[Leaf] = []
        self._outside = is_grad_enabled()
        self._run: Callable[..., Any] = run if below is None else below.apply

    # -- values ------------------------------------------------------------------------------------

    def watch(self, x: Tensor) -> Tensor:
        """Return a value that the recording can be differentiated with respect to."""
        self.leaves.append(Leaf())
        return make_layer(Recorded, x, self.leaves[-1], self.level)

    def node(self, x: Any) -> AnyNode | None:
        """Return the node of a value; None for a constant."""
        if isinstance(x, Recorded) and x.level is self.level:
            node: AnyNode | None = x.extra
            return node
        return None

    def inside(self, x: Any) -> Any:
        """Return the value of the level below."""
        return x.primal if isinstance(x, Recorded) and x.level is self.level else x

    def run(self, fn: Callable[..., Any], *args: Any) -> Any:
        """Call a function on watched values; what it does is recorded."""
        with Running(self), enable_grad():
            return fn(*args)

    # -- operations --------------------------------------------------------------------------------

    def apply(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Run one operation, and record it if a result depends on what is watched."""
        level, recording = self.level, is_grad_enabled()
        values: list[Any] = []
        wanted: list[AnyNode | None] = []
        watched = False
        for i, x in enumerate(inputs):
            node = None
            if isinstance(x, Recorded) and x.level is level:
                node = x.extra if recording and has_rule(op, i) else None
                watched = watched or node is not None
                x = x.primal  # noqa: PLW2901  (the value of the level below)
            values.append(x)
            wanted.append(node)
        with nullcontext() if self._outside or not recording else no_grad():
            if not watched:
                return run_below(self.below, self._run, op, tuple(values), attrs)
            return run_below(self.below, self._apply, op, tuple(values), attrs, tuple(wanted))

    def _apply(
        self, op: Any, values: tuple[Any, ...], attrs: tuple[Any, ...], parents: Parents
    ) -> Any:
        if hasattr(op, "record"):
            out, pull_back = op.record(values, attrs)
            outputs = out if isinstance(out, tuple) else None
            return self._results(make_node(op, parents, pull_back, outputs=outputs), out)
        out = self._run(op, values, attrs)
        if not isinstance(out, tuple) and not is_float(out.dtype):
            return out
        return self._results(Operation(op, values, attrs, out).node(parents), out)

    def _results(self, node: TapeNode, out: Any) -> Any:
        if not isinstance(node, FanNode):
            return make_layer(Recorded, out, node, self.level) if is_float(out.dtype) else out
        return tuple(
            make_layer(Recorded, y, output_node(node, i), self.level) if is_float(y.dtype) else y
            for i, y in enumerate(out)
        )

    # -- the way back ------------------------------------------------------------------------------

    def pull_back_of(self, outputs: Sequence[Any]) -> Callable[[Sequence[Any]], list[Any]]:
        """Return the function from the outputs' gradients to those of the watched values."""
        roots = [self.node(y) for y in outputs]

        def pull_back(gs: Sequence[Any]) -> list[Any]:
            found = ReverseWalk().run(roots, gs)
            return [found.get(leaf) for leaf in self.leaves]

        return pull_back
