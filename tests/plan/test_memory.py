"""Memory of programs: what is written in place, handed out, or kept side by side."""

import numpy as np
import pytest

import weft as wf
from weft.compiler.stages import plan_program
from weft.graph.run import Program
from weft.lower.verify import verify


def planned(graph, fetches, targets=()):
    """Return the memory of what a graph runs."""
    feeds = {value: value.shape for value in graph.inputs}
    asked = Program(graph, [y.value for y in fetches], list(feeds), [t.value for t in targets])
    made = plan_program(asked, feeds).program
    verify(made)
    return made, made.memory


def stepped(change, fetch=()):
    """Return the memory of a program that gives a state another value."""
    weight = wf.tensor(np.ones((4, 6), np.float32))
    with wf.Graph() as graph:
        x = wf.placeholder((4, 6), wf.float32, name="x")
        new = weight.assign(change(weight, x))
        fetches = [f(weight, x) for f in fetch]
    return planned(graph, fetches, [new])


@pytest.mark.parametrize(
    ("change", "fetch", "changed"),
    [
        (lambda w, x: w - 0.5 * x, (), 1),
        (lambda w, x: wf.flip(w, 0) - x, (), 0),  # reads other elements than it writes
        (lambda w, x: w - x, (lambda w, x: wf.positive(w),), 0),  # the old value is handed out
        (lambda w, x: w.T.reshape(4, 6) + x, (), 1),  # a copy is read
    ],
)
def test_states_are_changed_in_place_where_nobody_needs_the_old_value(change, fetch, changed):
    _, memory = stepped(change, fetch)
    assert memory.changed == len(memory.in_place) == changed
    assert len(memory.shared) == changed
    assert len(memory.copied) == 1 - changed


def test_results_are_handed_out_as_they_are():
    with wf.Graph() as graph:
        x = wf.placeholder((8, 4), wf.float32, name="x")
        y = wf.sort(x)
        z = wf.exp(y)
    program, memory = planned(graph, [z, y])
    assert {b.name for b in memory.fresh} == {view.buffer.name for view in program.fetches}
    assert memory.arguments == (*[b for b in program.buffers if b.kind == "feed"], *memory.fresh)
    assert memory.arena_bytes == 0
    assert not memory.in_arena()


def test_feeds_that_nothing_uses_are_no_arguments():
    with wf.Graph() as graph:
        wf.placeholder((3,), wf.float32, name="unused")
        y = wf.exp(wf.placeholder((3,), wf.float32, name="x"))
    _, memory = planned(graph, [y])
    assert memory.feeds == 2
    assert memory.first_state == len(memory.used_feeds)
    assert memory.arguments[: memory.first_state][-1].name == "x"


def test_numbers_lie_side_by_side():
    net = wf.nn.Linear(3, 4)
    optimizer = wf.optim.Adam(net.parameters(), lr=0.1)
    with wf.Graph() as graph:
        x = wf.placeholder((5, 3), wf.float32, name="x")
        update = optimizer.minimize((net(x) ** 2).mean())
    _, memory = planned(graph, [], update.symbols)
    offsets = [memory.places[view.buffer].offset for _, view in memory.new_numbers]
    assert len(offsets) > 1
    assert offsets == list(range(offsets[0], offsets[0] + 8 * len(offsets), 8))
    read = [memory.places[b].offset for b in memory.numbers]
    assert read == [8 * i for i in range(len(memory.numbers))]


def test_what_lives_at_other_times_shares_memory():
    with wf.Graph() as graph:
        y = wf.placeholder((64,), wf.float32, name="x")
        for _ in range(10):
            y = wf.sort(y)
    _, memory = planned(graph, [y])
    assert len(memory.in_arena()) == 9
    assert memory.arena_bytes == 2 * 256
