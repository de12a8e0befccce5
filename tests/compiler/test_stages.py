"""The list of stages: every one gives a program that is sound, for every back end."""

import numpy as np
import pytest

import weft as wf
from weft.backends import backend_named, backend_names
from weft.compiler import stages
from weft.graph.run import Program
from weft.graph.verify import verify as verify_graph
from weft.lower.lowering import lower
from weft.lower.verify import verify
from weft.passes.specialize import specialize


def training():
    net = wf.nn.Sequential(wf.nn.Linear(12, 16), wf.nn.GELU(), wf.nn.Linear(16, 3))
    with wf.Graph() as graph:
        x = wf.placeholder((None, 12), wf.float32, name="x")
        loss = wf.log(wf.softmax(net(wf.relu(x)))).mean()
        update = wf.optim.Adam(net.parameters(), lr=0.1).minimize(loss)
    targets = [symbol.value for symbol in update.symbols]
    return Program(graph, [loss.value], [x.value], targets), {x.value: (32, 12)}


@pytest.mark.parametrize("device", backend_names())
def test_every_stage_gives_a_sound_program(device):
    program, shapes = training()
    graph = specialize(program, shapes)
    for stage in stages.ON_GRAPHS.values():
        graph = stage(graph)
        verify_graph(graph)
    made, sources = lower(graph, [state for state, _ in program.commits])
    verify(made, sources)
    for stage in stages.ON_PROGRAMS.values():
        made = stage(made, backend_named(device).describe())
        verify(made, sources)
    planned = stages.plan_program(program, shapes, backend_named(device).describe())
    assert len(planned.program.kernels) == len(made.kernels)
    assert planned.program.memory.arena_bytes == made.memory.arena_bytes
    assert planned.program.schedule.names == made.schedule.names


@pytest.mark.parametrize("device", backend_names())
def test_programs_are_ready_on_every_device(device):
    with wf.Graph() as graph:
        x = wf.placeholder((4,), wf.float32, name="x")
        y = wf.exp(x)
    program = Program(graph, [y.value], [x.value])
    ready = stages.compile_program(program, {x.value: (4,)}, device=device)
    np.testing.assert_array_equal(ready.run([np.zeros(4, np.float32)])[0], np.ones(4))
