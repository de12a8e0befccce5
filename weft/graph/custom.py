"""A node that passes values on and whose derivative a user's function gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..core.dtype import Array
from ..core.errors import GradientError
from ..core.shape import TensorType
from .node import Node, subgraphs
from .special import NodeOp


class CustomGradient(NodeOp):
    """Returns `results` operands behind the first `arguments`; to differentiation, a function.

    Further operands are what the gradient needs.
    A graph that was saved and loaded keeps the values, not the Python function for the gradient.
    """

    kind = "control"
    variadic = True
    outputs = None
    differentiable = True
    nodes: Sequence[Node] = ()  # what it computes again for its gradient, as they were built

    def __init__(self) -> None:
        super().__init__("custom_gradient", ("operands",), ("label", "arguments", "results"))
        self.vjps = {"operands": self}

    def type_rule(self, types: tuple[Any, ...], attrs: tuple[Any, ...]) -> list[TensorType]:
        """Return the types of what is passed on."""
        return self.passed_on(types[0], attrs)

    @staticmethod
    def passed_on(operands: Sequence[Any], attrs: tuple[Any, ...]) -> list[Any]:
        """Return the operands, or their types, that the results are."""
        _, arguments, results = attrs
        return list(operands[arguments : arguments + results])

    def kernel(
        self, operands: Sequence[Array], label: str, arguments: int, results: int
    ) -> list[Array]:
        """Pass the values on."""
        return self.passed_on(operands, (label, arguments, results))

    def pull_back_node(self, tracer: Any, node: Node, *_: Any) -> Any:
        """Refuse: the function is not there."""
        raise GradientError(
            f"the derivative of {node.attrs[0]} is a Python function that was not saved with the "
            "graph; build the gradients before saving"
        )

    push_forward_node = pull_back_node


def passes_python(nodes: Iterable[Node]) -> bool:
    """Tell whether gradients through some nodes, or their bodies, run functions of the user's."""
    return any(
        isinstance(n.op, CustomGradient) or any(passes_python(g.nodes) for g in subgraphs(n))
        for n in nodes
    )
