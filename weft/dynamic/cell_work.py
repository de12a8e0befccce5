"""A cell as a graph: what it computes of one member, run on tensors of many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..autodiff.batching import vmap
from ..core.dispatch import run
from ..core.op import random
from ..core.shape import TensorType, size_of
from ..core.tensor import Tensor, constant
from ..core.tree import flatten
from ..graph.frontend import placeholder
from ..graph.graph import Graph
from ..graph.node import Node, attr_items, is_graph
from ..graph.special import CONSTANT, PLACEHOLDER, STATE
from .outside import FunctionSurroundings

LEAF = object()  # stands where a cell was given a tensor
LEAST_WORK = 4096  # results and products of a member, from which on machine code is made


class NotAUnitError(Exception):
    """Says that a cell cannot be put off as a whole."""


class CellWork:
    """A cell, called with arguments of one form.

    captured   tensors from outside that it uses, which become operands behind those of the call
    """

    many = True
    kind = "scope"  # how pictures show it

    def __init__(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        types: Sequence[TensorType],
    ) -> None:
        self.name = getattr(fn, "__name__", type(fn).__name__)
        leaves, structure = flatten((args, kwargs))
        fixed = [LEAF if isinstance(x, (Tensor, np.ndarray, np.generic)) else x for x in leaves]
        with Graph(self.name) as graph:
            graph.tracer.sequential = True
            self._inputs = [placeholder(t.shape, t.dtype) for t in types]
            rest = iter(self._inputs)
            given, named = structure.unflatten([next(rest) if x is LEAF else x for x in fixed])
            found, self.result = flatten(fn(*given, **named))
            if not all(isinstance(y, Tensor) for y in found):
                raise NotAUnitError
            self.outputs = [graph.tracer.value_of(y) for y in found]
        self.graph = graph
        self._check()
        states = graph.states_by_key().values()
        self._states = [value for value in states if value.node in set(self._order())]
        self.captured: list[Tensor] = [value.node.attrs[0].owner for value in self._states]
        self._around = FunctionSurroundings(fn, *[x for x in leaves if not isinstance(x, Tensor)])
        if self._around.reason is not None:  # nobody could tell when it is another function
            raise NotAUnitError
        self.is_large = self._work() >= LEAST_WORK
        self.is_single = self.result.kind is None
        self.is_flat = self.result.kind is tuple and all(
            c.kind is None for c in self.result.children
        )

    def _order(self) -> list[Node]:
        return [node for node in self.graph.nodes if node in self._needed]

    def _check(self) -> None:
        """Raise if there is more to the graph than tensors computed from tensors."""
        self._needed = set(self.graph.ancestors(self.outputs))
        if self.graph.pending_updates():
            raise NotAUnitError
        for node in self._needed:
            plain = node.op in (PLACEHOLDER, CONSTANT) or (
                isinstance(node.attrs[0].owner, Tensor) if node.op is STATE else _is_plain(node)
            )
            if not plain:
                raise NotAUnitError

    def _work(self) -> int:
        """Return how much a member takes: elements of results, and multiplications of products."""
        total = 0
        for node in self._order():
            total += sum(size_of(y.shape) for y in node.outputs)
            if node.op.multilinear:
                total += max(size_of(x.shape) for x in node.inputs if x is not None)
        return total

    def holds(self) -> bool:
        """Tell whether what the graph depends on is as it was."""
        return self._around.is_same()

    def types(self, types: Any, inputs: Any) -> list[TensorType]:
        """Return the types of the results."""
        return [y.type for y in self.outputs]

    def replay(self, *operands: Any) -> tuple[Any, ...]:
        """Compute the results of one member from its operands and the captured tensors."""
        known: dict[Any, Any] = dict(
            zip([*[x.value for x in self._inputs], *self._states], operands, strict=True)
        )
        for node in self._order():
            if node.op is CONSTANT:
                known[node.outputs[0]] = constant(node.attrs[0].array)
            elif node.op is not PLACEHOLDER and node.op is not STATE:
                given = tuple([None if x is None else known[x] for x in node.inputs])
                made = run(node.op, given, node.attrs)
                known.update(
                    zip(node.outputs, made if isinstance(made, tuple) else (made,), strict=True)
                )
        return tuple([known[y] for y in self.outputs])

    def together(self, operands: tuple[Any, ...], flags: tuple[bool, ...], size: Any) -> Any:
        """Run all members."""
        axes = tuple([0 if flag else None for flag in flags])
        return vmap(self.replay, axes, axis_size=size)(*operands)

    def nested(self, results: tuple[Any, ...]) -> Any:
        """Return results in the nest in which the function returns them."""
        if self.is_flat:
            return results
        return results[0] if self.is_single else self.result.unflatten(results)


def _is_plain(node: Node) -> bool:
    """Tell whether an operation is one of Weft's own, without bodies, draws or effects."""
    op = node.op
    if not hasattr(op, "specialized") or op.kind == random or op.effect:
        return False
    return not any(is_graph(item) for item in attr_items(node.attrs))
