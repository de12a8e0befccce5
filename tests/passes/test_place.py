"""Placement: devices from scopes, rules and operands; transfers where values change devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentError, GraphError
from weft.graph import Graph, Session, placeholder
from weft.graph.verify import verify
from weft.passes.place import TRANSFER, check_placement, device_of, place


def small_graph() -> tuple[Graph, Any, Any]:
    with Graph() as graph:
        x = placeholder((None, 3), wf.float32, name="x")
        y = wf.exp(x @ wf.ones(3, 2)).sum() + x.mean()
    return graph, x, y


def on(name: str, device: str) -> Any:
    return lambda node: device if node.op.name == name else None


def devices(graph: Graph) -> dict[str, str]:
    return {node.op.name: node.device for node in graph.nodes if node.op is not TRANSFER}


def transfers(graph: Graph) -> list[tuple[str, str]]:
    return [node.attrs for node in graph.nodes if node.op is TRANSFER]


@pytest.mark.parametrize("rule", [None, "cpu", lambda node: None, lambda node: "cpu"])
def test_everything_on_the_cpu_changes_nothing(rule):
    graph, x, y = small_graph()
    placed = place(graph, rule)
    assert all(a is b for a, b in zip(graph.nodes, placed.nodes, strict=True))
    array = np.ones((2, 3), np.float32)
    assert Session(placed).run(y, {x: array}) == Session(graph).run(y, {x: array})


def test_nodes_follow_their_operands():
    graph, _, y = small_graph()
    placed = place(graph, on("matmul", "cuda:0"), y)
    verify(placed)
    found = devices(placed)
    assert found["matmul"] == found["exp"] == found["sum"] == "cuda:0"
    assert found["mean"] == found["add"] == found["placeholder"] == found["constant"] == "cpu"
    assert transfers(placed) == [("cpu", "cuda:0"), ("cpu", "cuda:0"), ("cuda:0", "cpu")]


def test_a_value_is_moved_once_for_all_who_take_it():
    with Graph() as graph:
        x = placeholder((4,), wf.float32, name="x")
        y = wf.sin(x) + wf.cos(x)
    placed = place(graph, "cuda", y)
    assert transfers(placed) == [("cpu", "cuda"), ("cuda", "cpu")]


def test_outputs_and_assignments_are_on_the_cpu():
    weight = wf.tensor([1.0, 2.0])
    with Graph() as graph:
        new = weight.assign(weight * 2.0)
        y = wf.sin(weight)
    placed = place(graph, "gpu", [new, y])
    assert [device_of(value) for value in placed.outputs] == ["cpu", "cpu"]
    assert devices(placed)["assign"] == "cpu"
    assert devices(placed)["mul"] == "gpu"


def test_bodies_run_where_their_node_does():
    with Graph() as graph:
        x = placeholder((), wf.float32, name="x")
        y = wf.while_loop(lambda v: v < 10.0, lambda v: v * 2.0, x)
    placed = place(graph, on("while_loop", "tpu"), y)
    verify(placed)
    (loop,) = [node for node in placed.nodes if node.op.name == "while_loop"]
    assert {node.device for node in loop.attrs[1].nodes} == {loop.device} == {"tpu"}


def test_a_node_placed_before_stays_and_transfers_are_made_anew():
    graph, _, y = small_graph()
    once = place(graph, on("matmul", "cuda"), y)
    twice = place(once, on("mean", "cuda"), y)
    assert devices(twice)["matmul"] == devices(twice)["mean"] == devices(twice)["add"] == "cuda"
    assert transfers(twice) == [("cpu", "cuda"), ("cpu", "cuda"), ("cuda", "cpu")]


def test_running_on_another_device_is_refused():
    graph, x, y = small_graph()
    placed = place(graph, on("matmul", "cuda:1"), y)
    with pytest.raises(ArgumentError, match="device 'cuda:1' is not supported, only cpu"):
        Session(placed).run(y, {x: np.ones((2, 3), np.float32)})


def test_a_missing_transfer_is_found():
    graph, _, y = small_graph()
    other = Graph()
    for node in graph.nodes:
        is_sum = node is y.value.node
        other.append(node.rebuilt(node.inputs, device="cuda") if is_sum else node)
    with pytest.raises(GraphError, match=r"add runs on cuda and takes .* on cpu; place\(graph\)"):
        check_placement(other)


@pytest.mark.parametrize("rule", ["abacus", 3, lambda node: "abacus", lambda node: 3])
def test_unknown_devices_are_refused(rule):
    graph, _, y = small_graph()
    with pytest.raises(ArgumentError, match="place: a device is one of cpu, cuda"):
        place(graph, rule, y)


def test_fetching_from_a_placed_graph_that_is_back_on_the_cpu():
    graph, x, _ = small_graph()
    value = graph.find("mean")
    placed = place(graph, on("matmul", "cuda"))
    array = np.ones((2, 3), np.float32)
    assert Session(placed).run(value, {x: array}) == 1.0
