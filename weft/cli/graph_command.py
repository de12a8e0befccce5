"""`weft graph`: a picture of the graph of a declared model, and what is in it."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..core.errors import UnknownSizeError, WeftError
from ..core.tensor import Tensor
from ..core.tree import tree_map
from ..graph.frontend import placeholder
from ..graph.graph import Graph
from ..graph.node import Node
from ..graph.special import STATE
from ..nn import Parameter
from ..viz.draw import SUFFIXES, draw
from ..viz.tensorboard import write_tensorboard_graph
from .assemble import Run, build_optimizer, build_run
from .data import example_batch
from .errors import UsageError
from .saved_runs import open_source

LEVELS = 2  # of scopes in the table, unless --depth asks for another number
BATCH = "batch"


def draw_graph(options: Namespace) -> int:
    """Draw a model, and print its scopes with their nodes and parameters."""
    path = _checked_path(options.out)
    graph, note = _graph(options)
    draw(graph, path, depth=options.depth)
    levels = LEVELS if options.depth is None else max(1, options.depth)
    print("\n".join(table(graph, levels)))
    if note:
        print(note)
    if options.tensorboard:
        write_tensorboard_graph(graph, options.tensorboard)
        print(f"for TensorBoard: {options.tensorboard}")
    print(f"drawn to {path}")
    return 0


def _checked_path(out: str) -> Path:
    """Refuse a path that cannot be drawn to before the work of building a model."""
    path = Path(out)
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"--out must end in {', '.join(SUFFIXES)}. Received: {out}")
    if not path.parent.is_dir():
        raise UsageError(f"--out: there is no directory {path.parent}")
    return path


def _graph(options: Namespace) -> tuple[Graph, str]:
    """Return the graph to draw, and what the user should know of it."""
    target = Path(options.run)
    if target.is_file() and target.suffix.lower() != ".toml":
        if options.training or options.set:
            raise UsageError(f"{target} is a saved graph: --training and --set need a TOML file")
        return Graph.load(target), ""
    source, _ = open_source(options.run, options.set)
    return model_graph(build_run(source, ("train",)), training=options.training)


# -- building --------------------------------------------------------------------------------------


def model_graph(run: Run, *, training: bool) -> tuple[Graph, str]:
    """Return the graph of a run's model, with loss and update if it is to train; and a note.

    The size of the batch is unknown where the model allows that.
    """
    try:
        return _build(run, training, BATCH), ""
    except UnknownSizeError:
        size = _batch_size(run.example)
        return _build(run, training, size), f"the model needs a known batch size: {size} was used"


def _build(run: Run, training: bool, batch: int | str) -> Graph:
    run.model.train(training)
    graph = Graph(run.config["name"])
    try:
        with graph:
            inputs = _placeholders(run.example, input_names(run), batch)
            output = run.model(*inputs)
            if training:
                _add_step(run, inputs, output, batch)
    except UnknownSizeError:
        raise
    except WeftError as error:
        raise run.source.error(
            ("model",), f"the model cannot be built as a graph: {error}"
        ) from error
    return graph


def _add_step(run: Run, inputs: tuple[Any, ...], output: Any, batch: int | str) -> None:
    """Add the loss, its gradients and the update of the parameters."""
    if run.prepare.position is None:
        loss = run.loss(output)
    elif run.prepare.target == "input":
        loss = run.loss(output, inputs[0])
    else:
        example = run.prepare(example_batch(run.source, run.data, "train"))
        (target,) = _placeholders(example[-1:], ["target"], batch)
        loss = run.loss(output, target)
    total = loss["loss"] if isinstance(loss, dict) else loss
    build_optimizer(run).minimize(total)


def input_names(run: Run) -> list[str]:
    """Return what the inputs of a run's model are called."""
    names = getattr(run.model, "inputs", None)
    count = len(run.example)
    if isinstance(names, tuple) and len(names) == count:
        return list(names)
    return ["input"] if count == 1 else [f"input{i + 1}" for i in range(count)]


def _placeholders(values: Sequence[Any], names: Sequence[str], batch: int | str) -> tuple[Any, ...]:
    """Return placeholders like some tensors, which may be nested; all else stays as it is."""

    def made(value: Any, name: str) -> Any:
        if not isinstance(value, Tensor):
            return value
        sizes = (batch, *value.shape[1:]) if value.ndim else ()
        return placeholder(sizes, value.dtype, name=name)

    return tuple(
        tree_map(partial(made, name=name), value) for name, value in zip(names, values, strict=True)
    )


def _batch_size(values: Sequence[Any]) -> int:
    shapes = [value.shape for value in values if isinstance(value, Tensor) and value.ndim]
    return int(shapes[0][0]) if shapes else 1


# -- the table -------------------------------------------------------------------------------------


def table(graph: Graph, levels: int) -> Iterator[str]:
    """Yield lines: the scopes of a graph with their numbers of nodes and of parameters."""
    rows = list(_rows(graph, levels))
    width = max([len("scope"), *(len(label) for label, *_ in rows)])
    head = f"{'scope':<{width}}  {'nodes':>7}  {'parameters':>12}"
    yield from (head, "-" * len(head))
    for label, nodes, parameters in rows:
        shown = f"{parameters:>12,}" if parameters else ""
        yield f"{label:<{width}}  {nodes:>7,}  {shown}".rstrip()
    yield "-" * len(head)
    total = sum(_parameters(node) for node in graph)
    yield f"{'all':<{width}}  {len(graph):>7,}  {total:>12,}"


def _rows(graph: Graph, levels: int) -> Iterator[tuple[str, int, int]]:
    counts: dict[tuple[str, ...], list[int]] = {}
    for node in graph:
        scope = _scope(node)
        for depth in range(min(1, len(scope)), min(levels, len(scope)) + 1):
            found = counts.setdefault(scope[:depth], [0, 0])
            found[0] += 1
            found[1] += _parameters(node)
    for scope in _nested(counts):
        label = "  " * (len(scope) - 1) + scope[-1] if scope else "(no scope)"
        nodes, parameters = counts[scope]
        yield label, nodes, parameters


def _nested(scopes: Any) -> list[tuple[str, ...]]:
    """Return scopes in the order of the program, each followed by those inside it."""
    first = {scope: i for i, scope in enumerate(scopes)}
    return sorted(
        first, key=lambda scope: [first.get(scope[: i + 1], -1) for i in range(len(scope))]
    )


def _scope(node: Node) -> tuple[str, ...]:
    """Return the scope of a node; a state is in the one that its name says."""
    return tuple(node.name.split("/")[:-1]) if node.op is STATE else node.scope


def _parameters(node: Node) -> int:
    """Return how many numbers of the model are learned, if a node reads them."""
    if node.op is not STATE:
        return 0
    state = node.attrs[0]
    is_parameter = isinstance(state.owner, Parameter) and not state.label  # nor a slot of it
    return math.prod(state.type.shape) if is_parameter else 0
