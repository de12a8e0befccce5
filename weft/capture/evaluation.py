"""Values of a recording when they are asked for: nodes are run then, each once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.device_array import to_host
from ..core.dim import SizeVar
from ..core.dispatch import group
from ..core.effects import muted
from ..graph.node import Node, Value, attr_items, is_graph, resolve_attrs
from ..graph.special import ASSIGN, CONSTANT, STATE

Array = np.ndarray[Any, Any]


class Evaluation:
    """Computes values of a graph that grows, from what its placeholders are given.

    expand   what nodes without a kernel stand for: the values that are their results
    sizes    those that the recording is for, as they are in this call
    refuse   ends the recording
    """

    def __init__(
        self,
        expand: Callable[[Node], Sequence[Value]],
        sizes: Mapping[SizeVar, int] | None = None,
        refuse: Callable[[str], object] | None = None,
    ) -> None:
        self.known: dict[Value, Array] = {}
        self._expand = expand
        self._refuse = refuse
        self._sizes: Mapping[SizeVar, int] = {} if sizes is None else sizes

    def give(self, arrays: Mapping[Value, Array]) -> None:
        """Say what placeholders are."""
        self.known.update(arrays)

    def __call__(self, wanted: Value) -> Array:
        """Return a value; what it needs is computed first, by a walk that needs no recursion."""
        pending = [wanted]
        while pending:
            value = pending[-1]
            if value in self.known:
                pending.pop()
                continue
            missing = [x for x in value.node.inputs if x is not None and x not in self.known]
            if missing:
                pending += missing
            else:
                self._run(value.node)
        return self._here(wanted)

    def _here(self, value: Value) -> Array:
        """Return a known value as an array; one of a device is copied, since it is looked at."""
        array: Array = to_host(self.known[value])
        self.known[value] = array
        return array

    def _run(self, node: Node) -> None:
        """Compute the results of a node whose operands are known; nothing is shown by that."""
        with np.errstate(all="ignore"), muted():
            made = self._made(node)
        for value, array in zip(node.outputs, made, strict=True):
            self.known[value] = array if array.__class__ is np.ndarray else np.asarray(array)

    def _made(self, node: Node) -> Any:
        if node.op is CONSTANT:
            return (node.attrs[0].array,)
        if node.op is STATE:
            return (to_host(node.attrs[0].read()),)
        operands = [None if x is None else self._here(x) for x in node.inputs]
        if node.op is ASSIGN:
            return operands
        if node.op.kernel is None:
            return [self(value) for value in self._expand(node)]
        if node.op.communicates and self._refuse is not None:
            self._refuse("Python reads what several processes compute together")
        nested = any(is_graph(item) for item in attr_items(node.attrs))
        options: dict[str, Any] = {"sizes": dict(self._sizes)} if nested else {}
        attrs = resolve_attrs(node.attrs, self._sizes) if self._sizes else node.attrs
        made = node.op.kernel(*group(node.op, operands), *attrs, **options)
        return (made,) if node.op.outputs == 1 else made
