"""Memory plans: sharing is safe, offsets are right, figures are what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft as wf
from weft import nn
from weft.core.errors import ArgumentError, ArgumentTypeError, GraphError, ShapeError
from weft.graph import Graph, Session, Update, placeholder
from weft.passes.arena import ALIGNMENT, Block, _in_order_of_time, _largest_first, place_blocks
from weft.passes.liveness import live_profile
from weft.passes.memory import bytes_text, memory_plan

from ..programs.chains import STEPS, apply_steps, run_apart, run_in_arena


def chain_of(count: int, size: int = 256) -> tuple[Graph, Any, Any]:
    with Graph() as graph:
        x = placeholder((size,), wf.float32, name="x")
        y = x
        for _ in range(count):
            y = wf.sin(y)
    return graph, x, y


# -- sharing is safe -------------------------------------------------------------------------------


@given(steps=STEPS, kept=st.integers(0, 3))
def test_a_run_inside_the_planned_arena_gives_the_same_bits(steps, kept):
    with Graph() as graph:
        x = placeholder((4, 6), wf.float64, name="x")
        pool = apply_steps(x, steps)
    wanted = [s.value for s in pool[-1 - kept :]]
    plan = memory_plan(graph, wanted)
    plan.check()
    array = np.random.default_rng(0).standard_normal((4, 6))
    expected = run_apart(graph, wanted, {x.value: array})
    found = run_in_arena(graph, plan, wanted, {x.value: array})
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a, b)
    assert plan.peak_bytes <= plan.shared_bytes <= plan.arena_bytes
    assert plan.shared_bytes <= plan.unshared_bytes
    assert all((plan.offset(v) or 0) % v.dtype.itemsize == 0 for v in wanted)


@given(steps=STEPS)
def test_a_training_step_inside_the_planned_arena_gives_the_same_bits(steps):
    weight = wf.tensor(np.random.default_rng(1).standard_normal((4, 6)))
    with Graph() as graph:
        x = placeholder((4, 6), wf.float64, name="x")
        loss = apply_steps(x * weight, steps)[-1].sum()
        (gradient,) = wf.gradients(loss, [weight])
    if gradient is None:
        return
    wanted = [loss.value, gradient.value]
    array = np.random.default_rng(0).standard_normal((4, 6))
    plan = memory_plan(graph, wanted)
    plan.check()
    expected = run_apart(graph, wanted, {x.value: array})
    found = run_in_arena(graph, plan, wanted, {x.value: array})
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a, b)


BLOCKS = st.lists(
    st.builds(
        lambda size, birth, length: Block(size * ALIGNMENT, birth, birth + length),
        st.integers(0, 20),
        st.integers(0, 40),
        st.integers(0, 25),
    ),
    max_size=60,
)


@given(blocks=BLOCKS)
@pytest.mark.parametrize("heuristic", [_in_order_of_time, _largest_first, place_blocks])
def test_blocks_alive_together_never_overlap(heuristic, blocks):
    offsets, total = heuristic(blocks)
    for i, a in enumerate(blocks):
        assert 0 <= offsets[i] <= offsets[i] + a.bytes <= max(total, offsets[i])
        assert offsets[i] % ALIGNMENT == 0
        for j, b in enumerate(blocks[:i]):
            together = a.birth <= b.death and b.birth <= a.death
            apart = offsets[i] >= offsets[j] + b.bytes or offsets[j] >= offsets[i] + a.bytes
            assert apart or not together or 0 in (a.bytes, b.bytes)
    assert total >= max(live_profile(blocks, 70), default=0)


def test_largest_first_is_used_where_the_order_of_time_wastes_room():
    # In the order of time the large block cannot use the gaps that the small ones leave.
    unit = ALIGNMENT
    blocks = [Block(unit, 0, 1), Block(unit, 0, 9), Block(unit, 0, 1), Block(2 * unit, 2, 9)]
    assert _in_order_of_time(blocks).bytes == 4 * unit
    assert place_blocks(blocks).bytes == 3 * unit


def test_check_finds_an_overlap():
    graph, _, y = chain_of(2)
    with graph:
        both = y + wf.cos(y)
    plan = memory_plan(graph, [both, y])
    plan.check()
    plan._offsets = dict.fromkeys(plan._offsets, 0)
    with pytest.raises(GraphError, match="overlap"):
        plan.check()


# -- what shares -----------------------------------------------------------------------------------


def test_an_elementwise_chain_lives_in_one_buffer():
    graph, _, y = chain_of(50)
    plan = memory_plan(graph, y)
    assert plan.arena_bytes == plan.peak_bytes == 1024
    assert plan.unshared_bytes == 50 * 1024
    assert plan.feed_bytes == 1024
    assert plan.ratio == pytest.approx(1 / 50)


def test_feeds_are_never_overwritten():
    graph, x, y = chain_of(1)
    plan = memory_plan(graph, y)
    assert plan.offset(x) is None
    assert not plan.shares(x, y)


def test_what_is_needed_later_is_not_overwritten():
    with Graph() as graph:
        x = placeholder((8,), wf.float32, name="x")
        a = wf.sin(x)
        b = wf.cos(a)
        c = a + b
    plan = memory_plan(graph, c)
    assert not plan.shares(a, b)
    assert plan.shares(a, c) or plan.shares(b, c)


def test_what_is_fetched_is_not_overwritten():
    with Graph() as graph:
        a = wf.sin(placeholder((8,), wf.float32, name="x"))
        b = wf.cos(a)
    assert memory_plan(graph, b).shares(a, b)
    assert not memory_plan(graph, [a, b]).shares(a, b)


def test_a_view_of_an_operand_forbids_overwriting_it():
    with Graph() as graph:
        a = wf.sin(placeholder((4, 4), wf.float32, name="x"))
        b = a + a.T
    assert not memory_plan(graph, b).shares(a, b)


def test_the_same_operand_twice_may_be_overwritten():
    with Graph() as graph:
        a = wf.sin(placeholder((4, 4), wf.float32, name="x"))
        b = a * a
    assert memory_plan(graph, b).shares(a, b)


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.reshape(6, 4),
        lambda a: a.T,
        lambda a: a[1:3, ::2],
        lambda a: wf.flip(a, 0),
        lambda a: wf.broadcast_to(a, (2, 4, 6)),
        lambda a: wf.unsqueeze(a, 1),
        lambda a: a.T[1:4].T,
        wf.diagonal,
        lambda a: wf.split(a, 2, 1)[1],
        lambda a: wf.unbind(a, 0)[2],
        wf.stop_gradient,
        lambda a: a.T.reshape(3, 2, 4),
    ],
)
def test_views_live_in_their_input(view):
    with Graph() as graph:
        x = placeholder((4, 6), wf.float32, name="x")
        a = wf.sin(x)
        b = view(a)
    plan = memory_plan(graph, b)
    assert plan.shares(a, b)
    assert plan.is_view(b)
    assert plan.unshared_bytes == 96
    array = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    (found,) = run_in_arena(graph, plan, [b.value], {x.value: array})
    np.testing.assert_array_equal(found, Session(graph).run(b, {x: array}))


def test_a_reshape_that_must_copy_is_no_view():
    with Graph() as graph:
        a = wf.sin(placeholder((4, 6), wf.float32, name="x"))
        b = a.T.reshape(24)
    assert not memory_plan(graph, b).shares(a, b)


def test_another_element_size_is_not_written_over_its_input():
    with Graph() as graph:
        a = wf.sin(placeholder((8,), wf.float32, name="x"))
        b = a.astype(wf.float64)
        c = a > 0
    plan = memory_plan(graph, [b, c])
    assert not plan.shares(a, b)
    assert not plan.shares(a, c)
    assert plan.bytes(b) == 64
    assert plan.bytes(c) == 8


def test_setting_elements_reuses_the_storage():
    with Graph() as graph:
        a = wf.sin(placeholder((8,), wf.float32, name="x"))
        before = a.value
        a[2:4] = 0.0
    assert memory_plan(graph, a).shares(before, a)


# -- states and subgraphs --------------------------------------------------------------------------


def test_states_and_constants_are_reported_apart():
    weight = wf.tensor(np.ones((16, 16), np.float32))
    with Graph() as graph:
        x = placeholder((4, 16), wf.float32, name="x")
        y = x @ weight + wf.tensor(np.arange(16, dtype=np.float32))
        new = weight.assign(weight - 0.5)
    plan = memory_plan(graph, [y, new])
    assert plan.state_bytes in (1024, 1024 + 64)
    assert plan.state_bytes + plan.constant_bytes >= 1024 + 64
    assert plan.offset(new) is not None
    assert plan.lifetime(new)[1] == len(graph.ancestors([y.value, new.value]))


def test_the_arena_of_a_body_counts_once():
    with Graph() as graph:
        x = placeholder((256,), wf.float32, name="x")
        start = wf.tensor(0), x
        y = wf.while_loop(lambda c: c[0] < 99, lambda c: (c[0] + 1, wf.sin(c[1]).cos()), start)[1]
    plan = memory_plan(graph, y)
    plan.check()
    (loop,) = [node for node in graph.nodes if node.op.name.startswith("while")]
    assert plan.scratch_offset(loop) is not None
    assert 2 * 1024 <= plan.arena_bytes <= 4 * 1024


# -- unknown sizes ---------------------------------------------------------------------------------


def batch_graph() -> tuple[Graph, Any, Any]:
    with Graph() as graph:
        x = placeholder(("batch", 3), wf.float32, name="x")
        y = wf.tanh(x @ wf.ones(3, 5)).reshape(-1)
    return graph, x, y


def test_sizes_by_name_and_by_placeholder_agree():
    graph, x, y = batch_graph()
    by_name = memory_plan(graph, y, sizes={"batch": 7})
    assert by_name.bytes(y) == 7 * 5 * 4
    for key in (x, x.value, "x"):
        assert memory_plan(graph, y, sizes={key: (7, 3)}).arena_bytes == by_name.arena_bytes


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
    assert plan.bytes(z) == 0
    assert plan.arena_bytes <= 2 * ALIGNMENT


def test_alignment_is_not_counted_as_use():
    """What folding leaves of a small graph takes no more with sharing than without."""
    with Graph() as graph:
        x = placeholder((10,), wf.float32, name="x")
        scale = wf.exp(wf.tensor([1.0] * 10)) + 1.0  # folded: a constant
        total = (x * scale).sum()
    plan = graph.optimize(total).memory_plan()
    assert plan.arena_bytes == 2 * ALIGNMENT
    assert (plan.shared_bytes, plan.unshared_bytes, plan.ratio) == (44, 44, 1.0)
    assert plan.constant_bytes == 40
    assert repr(plan) == "<MemoryPlan: 44 B with sharing, 44 B without (1.00x)>"


def test_a_graph_without_nodes():
    plan = memory_plan(Graph())
    plan.check()
    assert (plan.arena_bytes, plan.unshared_bytes, plan.ratio) == (0, 0, 1.0)


def test_results_are_kept_by_default():
    graph, _, y = chain_of(3)
    with graph:
        z = wf.cos(y)
    plan = memory_plan(graph)
    assert plan.lifetime(z)[1] == len(graph)


def test_foreign_and_unplanned_values_are_refused():
    graph, _, y = chain_of(2)
    _other, _, z = chain_of(2)
    with pytest.raises(GraphError, match="does not belong"):
        memory_plan(graph, z)
    with pytest.raises(GraphError, match="does not contain"):
        memory_plan(graph, y).offset(z)
    with pytest.raises(ArgumentTypeError, match="outputs must be"):
        memory_plan(graph, 5)


def test_outputs_in_any_nest():
    graph, _, y = chain_of(2)
    with graph:
        y.name = "y"
    for outputs in (y, y.value, "y", [y], {"a": (y,)}, Update([y])):
        assert memory_plan(graph, outputs).arena_bytes == 1024


def test_text_shows_the_figures_and_the_largest():
    graph, _, y = chain_of(3)
    plan = memory_plan(graph, y)
    shown = str(plan)
    assert "with sharing" in shown
    assert "arena, aligned" in shown
    assert "0.333x" in shown
    assert "sin +2  float32[256]" in shown
    assert repr(plan) == "<MemoryPlan: 1.0 KiB with sharing, 3.0 KiB without (0.33x)>"


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
