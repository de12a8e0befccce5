"""The list of stages: every one gives a program that is sound, for every back end."""

from contextlib import contextmanager

import numpy as np
import pytest

import weft as wf
from weft.backends import backend_named, device_names
from weft.backends.execution import Execution
from weft.backends.reference.backend import ReferenceBackend
from weft.backends.store import ObjectStore
from weft.compiler import stages
from weft.compiler.cache import programs
from weft.core.device_array import all_to_host
from weft.graph.run import Program
from weft.graph.verify import verify as verify_graph
from weft.lower.lowering import lower
from weft.lower.verify import verify
from weft.passes.specialize import specialize
from weft.plan.run_plan import RunPlan


def training():
    net = wf.nn.Sequential(wf.nn.Linear(12, 16), wf.nn.GELU(), wf.nn.Linear(16, 3))
    with wf.Graph() as graph:
        x = wf.placeholder((None, 12), wf.float32, name="x")
        loss = wf.log(wf.softmax(net(wf.relu(x)))).mean()
        update = wf.optim.Adam(net.parameters(), lr=0.1).minimize(loss)
    targets = [symbol.value for symbol in update.symbols]
    return Program(graph, [loss.value], [x.value], targets), {x.value: (32, 12)}


@pytest.mark.parametrize("device", device_names())
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


@pytest.mark.parametrize("device", device_names())
def test_programs_are_ready_on_every_device(device):
    with wf.Graph() as graph:
        x = wf.placeholder((4,), wf.float32, name="x")
        y = wf.exp(x)
    program = Program(graph, [y.value], [x.value])
    ready = stages.compile_program(program, {x.value: (4,)}, device=device)
    (found,) = all_to_host(ready.run([np.zeros(4, np.float32)]))
    np.testing.assert_array_equal(found, np.ones(4))


class Ready(Execution):
    """A program with the plan by which it is restored."""

    def __init__(self, backend, program, plan):
        super().__init__(backend, program, plan.sources)
        self.plan = plan

    def explain_by(self, planner):
        self.planner = planner


class Keeping(ReferenceBackend):
    """Keeps programs by name, and notes what it is asked for."""

    def __init__(self):
        self.calls, self.programs = [], {}

    def build(self, planned):
        self.calls.append("build")
        self.programs[b"name"] = made = planned.program
        outputs = made.fetches, made.commits, made.flag
        plan = RunPlan(made.memory, planned.sources, *outputs, (), [], [b"name"])
        return Ready(self, made, plan)

    def restore(self, plan):
        self.calls.append("restore")
        kept = self.programs.get(*plan.objects)
        return None if kept is None else Ready(self, kept, plan)


@pytest.fixture
def keeping(tmp_path, monkeypatch):
    """Return a back end that keeps its code, in a process whose compiler keeps plans."""
    made, store, plan = Keeping(), ObjectStore(tmp_path), stages.plan_program
    monkeypatch.setattr(programs, "user_store", lambda: store)
    monkeypatch.setattr(stages, "backend_named", lambda name: made)
    monkeypatch.setattr(
        stages, "plan_program", lambda *args: made.calls.append("plan") or plan(*args)
    )
    return made


def compile_exp():
    with wf.Graph() as graph:
        x = wf.placeholder((4,), wf.float32, name="x")
        y = wf.exp(x)
    program = Program(graph, [y.value], [x.value])
    return stages.compile_program(program, {x.value: (4,)})


def test_what_was_kept_is_asked_for_before_anything_is_planned(keeping):
    compile_exp()
    assert keeping.calls == ["plan", "build"]
    restored = compile_exp()
    assert keeping.calls == ["plan", "build", "restore"]
    assert restored.run([np.zeros(4, np.float32)])[0].tolist() == [1, 1, 1, 1]
    assert len(restored.planner().program.kernels) == 1
    assert keeping.calls[3:] == ["plan"]


def test_what_is_no_longer_kept_is_built_again(keeping):
    compile_exp()
    keeping.programs.clear()
    assert compile_exp().run([np.zeros(4, np.float32)])[0].tolist() == [1, 1, 1, 1]
    assert keeping.calls == ["plan", "build", "restore", "plan", "build"]


def test_what_cannot_be_planned_is_not_built(keeping, monkeypatch):
    monkeypatch.setattr(stages, "plan_program", lambda *args: None)
    assert compile_exp() is None
    assert keeping.calls == []


class Preparing(Keeping):
    """Notes when it is to be ready, and for how large a program."""

    @contextmanager
    def ready_for(self, nodes):
        self.calls.append(nodes)
        yield
        self.calls.append("done")


def test_who_wants_to_be_ready_is_told_before_anything_is_planned(keeping):
    keeping.__class__ = Preparing
    compile_exp()
    assert keeping.calls == [1, "plan", "build", "done"]
    compile_exp()
    assert keeping.calls[4:] == ["restore"]
