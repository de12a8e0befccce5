"""`tf.gradients`: gradients as further operations of the graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..autodiff.reverse import gradients as weft_gradients
from ..core.op import F
from .dtypes import as_dtype
from .filling import zeros_like
from .graph import Graph, Operation
from .math_ops import add_n
from .recording import Tensor, convert_to_tensor, given, graph_of
from .variable import Variable


class Gradients(Operation):
    """The gradients of the sum of ys (with weights) with respect to xs."""

    def __init__(
        self,
        graph: Graph,
        ys: Sequence[Tensor],
        seeds: Sequence[Any],
        xs: Sequence[Tensor],
        name: str,
    ) -> None:
        self.weights = [seed is not None for seed in seeds]
        self.ys, self.xs = len(ys), len(xs)
        inputs = [*ys, *xs, *[seed for seed in seeds if seed is not None]]
        super().__init__(graph, "Gradients", inputs, name=name)
        for x in xs:
            given(self, x.shape, x.dtype)

    def evaluate(self, env: Any, values: Sequence[Any]) -> Any:
        """Extend the graph by the gradients."""
        ys, xs = values[: self.ys], values[self.ys : self.ys + self.xs]
        rest = iter(values[self.ys + self.xs :])
        seeds = [next(rest) if weighted else None for weighted in self.weights]
        made = weft_gradients(list(ys), list(xs), seeds)
        return tuple(F.zeros_like(x) if g is None else g for g, x in zip(made, xs, strict=True))


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str | None = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: Any = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = "none",
) -> list[Any]:
    """Return the gradients of the sum of ys with respect to each x; None where no path leads.

    >>> from weft import tf1 as tf
    >>> x = tf.constant(3.0)
    >>> float(tf.Session().run(tf.gradients(x * x, x)[0]))
    6.0
    """
    if stop_gradients is not None:
        raise ValueError("stop_gradients is not served: use tf.stop_gradient(x) where x is used")
    outputs = [convert_to_tensor(y) for y in _listed(ys)]
    inputs = [_target(x) for x in _listed(xs)]
    for y in outputs:
        if not as_dtype(y.dtype).is_floating:
            raise TypeError(
                f"Gradients of tensors must be floating; got tf.{y.dtype.name} for {y.name}"
            )
    seeds = [None] * len(outputs) if grad_ys is None else _seeds(outputs, _listed(grad_ys))
    reached = Reached(outputs)
    wanted = [x for x in dict.fromkeys(inputs) if reached.leads_to(x)]
    for x in wanted:
        x.differentiated = True
    found: dict[Tensor, Any] = {}
    if wanted:
        graph = graph_of(outputs)
        operation = Gradients(graph, outputs, seeds, wanted, name or "gradients")
        found = dict(zip(wanted, operation.outputs, strict=True))
    zero = getattr(unconnected_gradients, "value", unconnected_gradients) == "zero"
    return [found.get(x, zeros_like(x) if zero and x not in found else None) for x in inputs]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _target(x: Any) -> Tensor:
    if isinstance(x, Variable):
        found: Tensor = x._snapshot
        return found
    if not isinstance(x, Tensor) and not hasattr(x, "_as_tensor"):
        raise TypeError(f"Argument xs must be tensors or variables. Received: {x!r:.60}")
    return convert_to_tensor(x)


def _seeds(ys: Sequence[Tensor], given_seeds: Sequence[Any]) -> list[Any]:
    if len(given_seeds) != len(ys):
        raise ValueError(f"Passed {len(given_seeds)} grad_ys for {len(ys)} ys")
    return [
        None if g is None else convert_to_tensor(g, None if isinstance(g, Tensor) else y.dtype)
        for g, y in zip(given_seeds, ys, strict=True)
    ]


class Reached:
    """What gradients of tensors pass through: tensors, and variables that are read on the way."""

    def __init__(self, ys: Iterable[Tensor]) -> None:
        self.tensors: set[Tensor] = set()
        self.variables: set[Any] = set()
        stack = list(ys)
        while stack:
            tensor = stack.pop()
            if tensor in self.tensors or not tensor.dtype.is_floating:
                continue
            self.tensors.add(tensor)
            operation = tensor.op
            if hasattr(operation, "variable"):
                self.variables.add(operation.variable)
            for body in getattr(operation, "bodies", ()):
                self.variables.update(body.variables("reads"))
            if operation.differentiable:
                stack += operation.inputs

    def leads_to(self, x: Tensor) -> bool:
        """Tell whether there is a path to a tensor."""
        return x in self.tensors or getattr(x.op, "variable", None) in self.variables


def hessians(ys: Any, xs: Any, name: str = "hessians", **options: Any) -> list[Tensor]:
    """Return the second derivatives of ys with respect to each x, which is a vector."""
    found = []
    for x in _listed(xs):
        (first,) = gradients(ys, x)
        sizes = _target(x).shape.sizes
        if sizes is None or len(sizes) != 1 or sizes[0] is None:
            raise ValueError("hessians: x must be a vector of known length")
        from_rows = [gradients(first[i], x)[0] for i in range(sizes[0])]
        found.append(
            convert_to_tensor([zeros_like(x) if row is None else row for row in from_rows])
        )
    return found


class AggregationMethod:
    """How gradients of several uses are added; all names mean the same here."""

    ADD_N = DEFAULT = EXPERIMENTAL_TREE = EXPERIMENTAL_ACCUMULATE_N = 0


def accumulated(values: Sequence[Tensor]) -> Tensor:
    """Return the sum of gradients."""
    return values[0] if len(values) == 1 else add_n(list(values))
