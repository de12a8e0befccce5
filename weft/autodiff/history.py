"""The history of an eager tensor: operations, types, lines, and what is kept for backward.

The tape knows operations and what they saved, not the results. Their types are those of their
gradients, so one walk over the tape that looks at gradients and changes nothing finds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import GradientError, site_of_user
from ..core.shape import TensorType
from ..core.tape import FREED, OUTPUT, TapeNode
from ..core.tensor import Tensor, wrap
from .engine import AnyNode, GradientsOf, nodes_behind
from .reverse import TapeWalk


class TensorHistory:
    """What tensors were computed from.

    nodes   operations and leaves, the earliest first
    types   of their results, where they are known: not behind an operation that backward freed
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.roots = [tensor._node for tensor in tensors]
        if not any(self.roots):
            raise GradientError(
                "this tensor has no history: it does not depend on a tensor that requires "
                "gradients, or was computed under no_grad()"
            )
        behind = nodes_behind(self.roots)
        self.nodes: list[AnyNode] = sorted(behind, key=lambda node: node.order)
        self.types: dict[AnyNode, TensorType] = {}
        for node, tensor in zip(self.roots, tensors, strict=True):
            if node is not None:
                self.types[node] = TensorType(tensor.shape, tensor.dtype)
        if not any(isinstance(n, TapeNode) and n.saved is FREED for n in self.nodes):
            self._look(tensors)
        self._counted: set[int] = set()
        self.saved = {node: self._own_bytes(node) for node in self.nodes}

    def _look(self, tensors: Sequence[Tensor]) -> None:
        """Learn the types of results from those of their gradients."""
        walk = _TypeWalk(self.types)
        seeds = [wrap(np.ones(x.shape, x.dtype)) if x._node is not None else None for x in tensors]
        try:
            found = walk.run(self.roots, seeds)
        except Exception:  # an operation without a derivative: what lies behind stays unknown
            return
        for leaf, g in found.items():
            self.types[leaf] = TensorType(g.shape, g.dtype)

    def _own_bytes(self, node: AnyNode) -> int:
        """Return the bytes that a node keeps, and no node before it in this history does."""
        if not isinstance(node, TapeNode):
            return 0
        found = 0
        for _, array in node.saved_arrays():
            buffer = _buffer(array)
            if id(buffer) not in self._counted:
                self._counted.add(id(buffer))
                found += buffer.nbytes
        return found

    @property
    def saved_bytes(self) -> int:
        """Return all that is kept for backward."""
        return sum(self.saved.values())

    def __len__(self) -> int:
        """Return the number of operations and leaves."""
        return len(self.nodes)

    def where(self, node: AnyNode) -> str | None:
        """Return the user's line that made a node."""
        return site_of_user(node.site)


class _TypeWalk(TapeWalk):
    """A walk that notes the types of gradients, runs no hooks, and keeps the tape as it is."""

    def __init__(self, types: dict[AnyNode, TensorType]) -> None:
        super().__init__(raw=True, retain=True)
        self.types = types

    def _special(self) -> GradientsOf | None:
        def noted(node: Any, g: Any) -> Sequence[Any]:
            if not isinstance(g, list):
                self.types[node] = TensorType(g.shape, g.dtype)
            return self._gradients(node, g)

        return noted

    def _deposit(self, output: TapeNode, g: Any) -> None:
        self.types[output] = TensorType(g.shape, g.dtype)
        super()._deposit(output, g)

    def _settle(self, node: AnyNode, g: Any) -> Any:
        return g


def _buffer(array: Any) -> Any:
    """Return the array that owns the memory of a saved one."""
    while isinstance(getattr(array, "base", None), np.ndarray):
        array = array.base
    return array


def is_output(node: AnyNode) -> bool:
    """Tell whether a node only stands for one of several results of an operation."""
    return isinstance(node, TapeNode) and node.op is OUTPUT
