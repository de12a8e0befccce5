"""Graphs that tests print, hash, save and shuffle: of operators, control flow and models."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

import numpy as np

import weft as wf
from tests.ops import conformance
from weft.core.dim import evaluate, unknown_size
from weft.core.errors import WeftError
from weft.core.shape import TensorType
from weft.graph.graph import Graph
from weft.graph.node import Node, Value, is_graph, map_attr, size_variables
from weft.graph.special import PLACEHOLDER
from weft.graph.text.printer import sizes_in


@cache
def registry_graphs() -> dict[str, list[Graph]]:
    """Return a graph for each sample of each operator and composite, by its name."""
    found: dict[str, list[Graph]] = {}
    for case in conformance.cases():
        graph = Graph()
        try:
            with graph:
                arguments = conformance.Arguments.of(case.drawn()).map(conformance.to_tensor)
                arguments.call(case.function)
        except WeftError:  # it depends on values, which a graph does not have
            continue
        found.setdefault(case.name, []).append(graph)
    return found


def mlp_training(first_bias_first: bool = False) -> Graph:
    """Return the training step of a small network with dropout."""
    net = wf.nn.Sequential(
        *(wf.nn.Linear(4, 6), wf.nn.Tanh(), wf.nn.Dropout(0.5)),
        *(wf.nn.Linear(6, 6), wf.nn.Tanh(), wf.nn.Linear(6, 3)),
    )
    parameters = list(net.parameters())
    with wf.Graph() as graph:
        y = wf.placeholder(("n",), wf.int64, name="y") if first_bias_first else None
        x = wf.placeholder(("n", 4), wf.float32, name="x")
        y = wf.placeholder(("n",), wf.int64, name="y") if y is None else y
        loss = wf.nn.functional.cross_entropy(net(x), y)
        order = parameters[::-1] if first_bias_first else parameters
        wf.optim.Adam(order, lr=1e-2).minimize(loss)
    return graph


def control_flow() -> Graph:
    """Return nested control flow that captures, draws, and has unknown sizes."""
    w = wf.tensor(np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)).requires_grad_()
    total = wf.tensor(np.float32(0))
    with wf.Graph("loops") as graph:
        x = wf.placeholder((None, 3), wf.float32, name="x")
        n = wf.placeholder((), wf.int64, name="n")
        with wf.name_scope("block/inner"):
            start = x @ w + 1e-7
        _, last = wf.while_loop(
            lambda c: c[0] < n,
            lambda c: (c[0] + 1, wf.tanh(c[1] @ w) + wf.rand(3)),
            (wf.tensor(0), start),
        )
        h, ys = wf.scan(
            lambda h, row: (
                wf.cond(row.sum() > 0, lambda a: a + row, lambda a: a * w.sum() + wf.randn(3), h),
                h * 2,
            ),
            wf.zeros(3),
            last,
            reverse=True,
        )
        found = wf.nonzero(ys > 0)[0]
        (slope,) = wf.gradients(h.sum(), [x])
        total.assign(total + slope.sum() + wf.arange(x.shape[0]).sum() + found.sum())
        h.name = "total"
    return graph


def programs() -> Iterator[tuple[str, Graph]]:
    """Yield graphs of all kinds by name."""
    yield "mlp", mlp_training()
    yield "control", control_flow()
    with wf.Graph() as graph:
        pass
    yield "empty", graph
    with wf.Graph("constants") as graph:
        wf.tensor(np.arange(100.0)) * float("nan") + wf.tensor(np.array([-0.0, np.inf] * 50))
        wf.rand(2) + wf.rand(2, generator=wf.Generator(5))
    yield "constants", graph


# -- the same program, built in another way --------------------------------------------------------


def shuffled(graph: Graph, seed: int) -> Graph:
    """Return a graph with its nodes in another order, and with other names for all but inputs."""
    rng = random.Random(seed)
    sizes = {v: unknown_size(f"size_{rng.randrange(10**9)}") for v in sizes_in(graph)}
    return _shuffled(graph, rng, sizes, is_body=False)


def _shuffled(graph: Graph, rng: random.Random, sizes: dict, *, is_body: bool) -> Graph:
    made = Graph(f"shuffled_{rng.randrange(99)}")
    known: dict[Value, Value] = {}
    for node in _another_order(graph, rng):
        attrs = map_attr(lambda item: _renamed(item, rng, sizes), node.attrs)
        types = [_renamed(value.type, rng, sizes) for value in node.outputs]
        inputs = [None if x is None else known[x] for x in node.inputs]
        if node.op.name in ("add", "mul") and rng.random() < 0.5:
            inputs.reverse()
        keeps_name = node.op is PLACEHOLDER and not is_body
        name = node.name if keeps_name else f"n{rng.randrange(10**12)}"
        copy = made.append(Node(node.op, inputs, attrs, types, name=name, device=node.device))
        known.update(zip(node.outputs, copy.outputs, strict=True))
    made.inputs = [known[value] for value in graph.inputs]
    made.outputs = [known[value] for value in graph.outputs]
    return made


def _renamed(item, rng, sizes):
    if is_graph(item):
        return _shuffled(item, rng, sizes, is_body=True)
    if isinstance(item, TensorType):
        return TensorType(tuple(evaluate(size, sizes) for size in item.shape), item.dtype)
    return evaluate(item, sizes)


def _another_order(graph: Graph, rng: random.Random) -> list[Node]:
    """Return the nodes in a random order in which they can run."""
    sources = graph.size_sources()
    waiting = {}
    users: dict[Node, list[Node]] = {node: [] for node in graph.nodes}
    for node in graph.nodes:
        needs = {x.node for x in node.inputs if x is not None}
        needs |= {sources[v].node for v in size_variables(node) if v in sources} - {node}
        waiting[node] = len(needs)
        for other in needs:
            users[other].append(node)
    ready = [node for node in graph.nodes if not waiting[node]]
    order = []
    while ready:
        node = ready.pop(rng.randrange(len(ready)))
        order.append(node)
        for user in users[node]:
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    assert len(order) == len(graph.nodes)
    return order
