"""Memory plans: figures are what they say, and the program that runs has that memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft as wf
from weft import nn
from weft.compiler.memory import bytes_text, memory_plan
from weft.core.errors import ArgumentError, ArgumentTypeError, GraphError, ShapeError
from weft.graph import Graph, Session, Update, placeholder
from weft.lower.memory import ARENA, Place
from weft.lower.verify import VerificationError
from weft.plan.arena import ALIGNMENT

from ..programs.chains import STEPS, apply_steps


def chain_of(count: int, size: int = 256) -> tuple[Graph, Any, Any]:
    with Graph() as graph:
        x = placeholder((size,), wf.float32, name="x")
        y = x
        for _ in range(count):
            y = wf.sin(y)
    return graph, x, y


# -- what a program takes --------------------------------------------------------------------------


@given(steps=STEPS, kept=st.integers(0, 3))
def test_figures_are_those_of_the_program_that_runs(steps, kept):
    with Graph() as graph:
        x = placeholder((4, 6), wf.float64, name="x")
        wanted = apply_steps(x, steps)[-1 - kept :]
    plan = memory_plan(graph, wanted)
    plan.check()
    assert plan.peak_bytes <= plan.shared_bytes <= plan.run_bytes
    executable = Session(graph).executable(wanted, {x: np.zeros((4, 6))})
    assert plan.arena_bytes == executable.layout.arena_bytes


def test_check_finds_an_overlap():
    graph, x, y = chain_of(2)
    with graph:
        z = wf.sort(wf.sort(y) * wf.flip(wf.sort(x), 0))
    plan = memory_plan(graph, z)
    plan.check()
    program, memory = plan._program, plan._program.memory
    here = {b: Place(False, ARENA) if p.in_arena else p for b, p in memory.places.items()}
    plan._program = replace(program, memory=replace(memory, places=here))
    with pytest.raises(VerificationError, match="in the same memory at the same time"):
        plan.check()
    plan._program = replace(program, memory=replace(memory, arena_bytes=1))
    with pytest.raises(VerificationError, match="outside of 1 bytes"):
        plan.check()


def test_an_elementwise_chain_takes_what_it_hands_out():
    graph, _, y = chain_of(50)
    plan = memory_plan(graph, y)
    assert (plan.arena_bytes, plan.fetch_bytes, plan.peak_bytes) == (0, 1024, 1024)
    assert plan.unshared_bytes == 50 * 1024
    assert plan.feed_bytes == 1024
    assert plan.ratio == pytest.approx(1 / 50)


def test_views_are_no_results():
    with Graph() as graph:
        a = wf.sin(placeholder((4, 6), wf.float32, name="x"))
        b = wf.flip(a.reshape(6, 4).T[1:3, ::2], 0)
    assert memory_plan(graph, b).unshared_bytes == 96


def test_storages_are_found_by_value():
    with Graph() as graph:
        x = placeholder((8, 8), wf.float32, name="x")
        inner = wf.sort(x)
        y = wf.sort(inner.T)
    plan = memory_plan(graph, y)
    storage = plan.storage(inner)
    assert (storage.bytes, storage.offset % ALIGNMENT) == (256, 0)
    assert 0 <= storage.birth <= storage.death
    with pytest.raises(GraphError, match="no memory for 'x'"):
        plan.storage(x)


# -- states and subgraphs --------------------------------------------------------------------------


def test_states_and_constants_are_reported_apart():
    weight = wf.tensor(np.ones((16, 16), np.float32))
    with Graph() as graph:
        x = placeholder((4, 16), wf.float32, name="x")
        y = x @ weight + wf.asarray(np.arange(16, dtype=np.float32))
        new = weight.assign(weight - 0.5)
    plan = memory_plan(graph, [y, Update([new])])
    assert (plan.state_bytes, plan.constant_bytes) == (1024, 64 + 4)
    assert (plan.fetch_bytes, plan.feed_bytes) == (256, 256)


def test_bodies_compute_in_the_same_arena():
    with Graph() as graph:
        x = placeholder((256,), wf.float32, name="x")
        start = wf.tensor(0), x
        y = wf.while_loop(lambda c: c[0] < 99, lambda c: (c[0] + 1, wf.sort(c[1]).cos()), start)[1]
    plan = memory_plan(graph, y)
    plan.check()
    assert 1024 <= plan.run_bytes <= 6 * 1024


def test_sizes_that_depend_on_values_are_refused():
    with Graph() as graph:
        y = wf.nonzero(placeholder((8,), wf.float32, name="x"))
    with pytest.raises(ShapeError, match="depends on values"):
        memory_plan(graph, y)


# -- unknown sizes ---------------------------------------------------------------------------------


def batch_graph() -> tuple[Graph, Any, Any]:
    with Graph() as graph:
        x = placeholder(("batch", 3), wf.float32, name="x")
        y = wf.tanh(x @ wf.ones(3, 5)).reshape(-1)
    return graph, x, y


def test_sizes_by_name_and_by_placeholder_agree():
    graph, x, y = batch_graph()
    by_name = memory_plan(graph, y, sizes={"batch": 7})
    assert by_name.fetch_bytes == 7 * 5 * 4
    for key in (x, x.value, "x"):
        assert memory_plan(graph, y, sizes={key: (7, 3)}).run_bytes == by_name.run_bytes


def test_a_missing_size_is_named():
    graph, _, y = batch_graph()
    with pytest.raises(ShapeError, match=r"batch is not known; give it as sizes=\{'batch'"):
        memory_plan(graph, y)


@pytest.mark.parametrize(
    ("sizes", "error", "match"),
    [
        ({"rows": 3}, ArgumentError, "no unknown size is named 'rows'; there are: batch"),
        ({"batch": -1}, ArgumentError, "must not be negative"),
        ({"x": (7, 4)}, ArgumentError, r"x is float32\[batch, 3\]"),
        ({"x": (7,)}, ArgumentError, "needs a shape of that form"),
        ({"x": "7"}, ArgumentError, "needs a shape of that form"),
        ({5: (7, 3)}, ArgumentTypeError, "by a name or a placeholder"),
        ([7], ArgumentTypeError, "must be a dictionary"),
    ],
)
def test_bad_sizes_are_refused(sizes, error, match):
    graph, _, y = batch_graph()
    with pytest.raises(error, match=match):
        memory_plan(graph, y, sizes=sizes)


# -- edges and text --------------------------------------------------------------------------------


def test_empty_and_scalar_values():
    with Graph() as graph:
        x = placeholder((0, 3), wf.float32, name="x")
        y = wf.sin(x).sum() + 1.0
        z = wf.sin(x)[:, 1:]
    plan = memory_plan(graph, [y, z])
    plan.check()
    assert plan.fetch_bytes == 4
    assert plan.arena_bytes <= 2 * ALIGNMENT


def test_a_graph_without_nodes():
    plan = memory_plan(Graph())
    plan.check()
    assert (plan.arena_bytes, plan.unshared_bytes, plan.ratio) == (0, 0, 1.0)


def test_results_are_fetched_by_default():
    graph, _, y = chain_of(3)
    with graph:
        wf.cos(y)
        wf.sin(y)
    assert memory_plan(graph).fetch_bytes == 2 * 1024


def test_foreign_and_unplanned_values_are_refused():
    graph, _, y = chain_of(2)
    _other, _, z = chain_of(2)
    with pytest.raises(GraphError, match="does not belong"):
        memory_plan(graph, z)
    with pytest.raises(GraphError, match="no memory for"):
        memory_plan(graph, y).storage(z)
    with pytest.raises(ArgumentTypeError, match="memory_plan: cannot fetch int 5"):
        memory_plan(graph, 5)


def test_outputs_in_any_nest():
    graph, _, y = chain_of(2)
    with graph:
        y.name = "y"
    for outputs in (y, y.value, "y", [y], {"a": (y,)}):
        assert memory_plan(graph, outputs).run_bytes == 1024


def test_text_shows_the_figures_and_the_largest():
    with Graph() as graph:
        x = placeholder((256,), wf.float32, name="x")
        y = wf.sort(wf.sort(x))
    shown = str(memory_plan(graph, y))
    assert "with sharing" in shown
    assert "arena, aligned" in shown
    assert "sort  float32[256]" in shown
    graph, _, y = chain_of(3)
    plan = memory_plan(graph, y)
    assert repr(plan) == "<MemoryReport: 1.0 KiB with sharing, 3.0 KiB without (0.33x)>"


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB"), (5 << 30, "5.0 GiB")],
)
def test_bytes_as_text(count, text):
    assert bytes_text(count) == text


# -- networks --------------------------------------------------------------------------------------


def convolutional(depth: int, channels: int = 8) -> Any:
    layers: list[Any] = []
    for i in range(depth):
        entering = channels if i else 3
        layers += [nn.Conv2d(entering, channels, 3, padding=1, bias=False)]
        layers += [nn.BatchNorm2d(channels), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


def test_a_convolutional_net_of_fifty_layers_shares_its_memory():
    model = convolutional(49)
    with Graph() as graph:
        x = placeholder((16, 3, 32, 32), wf.float32, name="x")
        y = placeholder((16,), wf.int64, name="y")
        loss = nn.functional.cross_entropy(model(x), y)
        parameters = list(model.parameters())
        gradients = wf.gradients(loss, parameters)
        pairs = zip(parameters, gradients, strict=True)
        update = Update([p.assign(p - 0.1 * g) for p, g in pairs])
    training = memory_plan(graph, [loss, update])
    training.check()
    assert training.ratio <= 0.5
    model.eval()
    with Graph() as graph:
        scores = model(placeholder((16, 3, 32, 32), wf.float32, name="x"))
    inference = memory_plan(graph, scores)
    inference.check()
    assert inference.ratio <= 0.15
