"""Models as functions of columns: an array for each input and output, items along the first axis.

A module runs by `wf.jit`, as in `weft predict`; a graph by a Session. Both make one program for all
sizes of a batch where the compiler can; `fixed_because` says why not where it cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..core.dim import Dim
from ..core.dtype import Array
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.modes import no_grad
from ..core.tensor import Tensor, wrap
from ..core.tree import flatten_with_paths
from ..graph.edit_call import call_results
from ..graph.frontend import placeholder
from ..graph.graph import Graph
from ..graph.members import wanted_values
from ..graph.node import Value, type_text
from ..graph.session import Session
from ..graph.special import ASSIGN
from ..nn import Module
from ..train.captured import Compile, as_compiled, checked_compile

ITEMS = "n"  # what the size of a batch is called


class ServedProgram(Protocol):
    """What a server needs of a model.

    name          of the model
    inputs        with a first axis for the items, which may be a known size
    item_shapes   of an item that it can be tried on; None if that is not known
    outputs       their names; none until it has run
    """

    name: str
    inputs: Sequence[Value]
    item_shapes: Sequence[tuple[int, ...]] | None
    outputs: list[str]

    def __call__(self, columns: Sequence[Array]) -> list[Array]:
        """Return the outputs of all items."""

    def fixed_because(self) -> str | None:
        """Return why there is a program for each size of a batch, if there is."""


class ModuleProgram:
    """A module, or a function of tensors, with the types of its inputs."""

    def __init__(
        self,
        model: Callable[..., Any],
        inputs: Sequence[Value],
        compile: Compile = "auto",
        item_shapes: Sequence[tuple[int, ...]] | None = None,
    ) -> None:
        if isinstance(model, Module):
            model.eval()
        self.name = str(getattr(model, "__name__", type(model).__name__))
        self.inputs = inputs
        self.item_shapes = item_shapes or known_shapes(inputs)
        self.outputs: list[str] = []
        self._run = as_compiled(model, checked_compile(compile))

    def __call__(self, columns: Sequence[Array]) -> list[Array]:
        """Return the outputs of all items."""
        with no_grad():
            result = self._run(*[wrap(column) for column in columns])
        if isinstance(result, Tensor):
            self.outputs = ["output"]
            return [result.numpy()]
        found = flatten_with_paths(result)
        self.outputs = [_output_name(path) for path, _ in found]
        return [_as_array(path, leaf) for path, leaf in found]

    def fixed_because(self) -> str | None:
        """Return why there is a program for each size of a batch, if there is."""
        stats = getattr(self._run, "stats", None)
        return None if stats is None else stats().get("fixed_because")


class GraphProgram:
    """A graph: what it computes of its placeholders."""

    def __init__(self, graph: Graph, outputs: Sequence[Any] | None = None) -> None:
        chosen = call_results(graph) if outputs is None else _chosen(graph, outputs)
        if not chosen:
            raise ArgumentError(f"serve: {graph.name} computes nothing; say what: outputs=...")
        needed = set(graph.ancestors(chosen))
        self.name = graph.name
        self.inputs: Sequence[Value] = [v for v in graph.inputs if v.node in needed]
        if not self.inputs:
            raise ArgumentError(f"serve: {graph.name} computes {chosen[0].name} of no placeholder")
        self.item_shapes = known_shapes(self.inputs)
        self.outputs = [value.name for value in chosen]
        self._session, self._fetches = Session(graph), chosen
        # Feeds by the size of the batch, until somebody asks why sizes are fixed.
        self._seen: dict[int, dict[Any, Any]] | None = {} if self.item_shapes else None

    def __call__(self, columns: Sequence[Array]) -> list[Array]:
        """Return the outputs of all items."""
        feeds = dict(zip(self.inputs, columns, strict=True))
        if self._seen is not None:
            self._seen[len(columns[0])] = feeds
        fetched: list[Array] = self._session.run(self._fetches, feeds)
        return fetched

    def fixed_because(self) -> str | None:
        """Return why there is a program for each size of a batch, if there is."""
        seen, self._seen = self._seen or {}, None
        codes = [self._session.executable(self._fetches, feeds) for feeds in seen.values()]
        reasons = [code.stats().get("fixed_because") for code in codes if code is not None]
        return next((reason for reason in reasons if reason is not None), None)


# -- inputs ----------------------------------------------------------------------------------------


def input_values(specs: Any) -> list[Value]:
    """Return inputs with a first axis for items.

    specs   (shape of an item, dtype), an example of an item, or a dictionary or list of those;
            None in a shape is a size that may differ from request to request
    """
    named = specs.items() if isinstance(specs, Mapping) else _numbered(specs)
    with Graph("inputs"):
        return [_input(str(name), spec) for name, spec in named]


def request_value(value: Value) -> Value:
    """Return an input as requests give it: with any number of items."""
    if not value.shape or isinstance(value.shape[0], Dim):
        return value
    with Graph("inputs"):
        return placeholder((ITEMS, *value.shape[1:]), value.dtype, name=value.name).value


def _numbered(specs: Any) -> list[tuple[str, Any]]:
    if isinstance(specs, list):
        return [(f"input{i}", spec) for i, spec in enumerate(specs)]
    return [("input", specs)]


def _input(name: str, spec: Any) -> Value:
    if isinstance(spec, Tensor | np.ndarray):
        shape, dtype = tuple(spec.shape), spec.dtype
    elif isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[0], tuple | list):
        shape, dtype = tuple(spec[0]), spec[1]
    else:
        raise ArgumentTypeError(
            f"serve: {name} must be (shape of an item, dtype), e.g. ((784,), 'float32'), or an "
            f"example of an item. Received: {spec!r:.60}"
        )
    return placeholder((ITEMS, *shape), dtype, name=name).value


def _chosen(graph: Graph, outputs: Sequence[Any]) -> list[Value]:
    wanted = wanted_values(graph, list(outputs), "serve")
    if wanted.targets or any(value.node.op is ASSIGN for value in wanted.fetches):
        raise ArgumentError("serve: an output is an update; a server changes no states")
    return list(wanted.fetches)


def batch_size(inputs: Sequence[Value]) -> int | None:
    """Return the only size of a batch that inputs allow, or None if any will do."""
    sizes = set()
    for value in inputs:
        if not value.shape:
            raise ArgumentError(
                f"serve: {value.name} is {type_text(value.type)}, which has no axis for items; "
                "make it a constant of the graph, or give it a first axis"
            )
        sizes.add(None if isinstance(value.shape[0], Dim) else int(value.shape[0]))
    if len(sizes) > 1:
        shown = ", ".join(f"{value.name} {type_text(value.type)}" for value in inputs)
        raise ArgumentError(f"serve: the inputs differ in the size of a batch: {shown}")
    return sizes.pop()


def known_shapes(inputs: Sequence[Value]) -> Sequence[tuple[int, ...]] | None:
    """Return the shapes of an item, if all of their sizes are known."""
    shapes = [tuple(value.shape[1:]) for value in inputs]
    return None if any(isinstance(n, Dim) for shape in shapes for n in shape) else shapes


# -- outputs ---------------------------------------------------------------------------------------


def _output_name(path: str) -> str:
    """Return a name for the output at a path: logits for ['logits'], output0 for [0]."""
    plain = path.replace("['", ".").replace("']", "").replace("[", ".").replace("]", "").strip(".")
    return f"output{plain}" if plain[:1].isdigit() else plain


def _as_array(path: str, leaf: Any) -> Array:
    if not isinstance(leaf, Tensor):
        raise ArgumentTypeError(
            f"serve: the model must return tensors, or a nest of them. Received: {leaf!r:.60} "
            f"at output{path}"
        )
    return leaf.numpy()
