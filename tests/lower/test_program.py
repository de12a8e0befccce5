"""Kernel programs: what they hold, how they are numbered, and that planning leaves them alone."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, is_dataclass

import numpy as np
import pytest

import weft as wf
from tests.programs.mixed import MixedProgram
from weft.backends import backend_named
from weft.compiler.stages import ON_PROGRAMS, optimize_static, specialized
from weft.core.dtype import float32
from weft.core.op import Op
from weft.core.scalar.builder import Expr, postorder
from weft.graph.graph import Graph
from weft.graph.node import Node, Value
from weft.graph.run import Program
from weft.graph.state import State
from weft.lower.kernels import CallKernel
from weft.lower.lowering import lower
from weft.lower.program import KernelProgram, NewBuffers

OUTSIDE = (Graph, Node, Value, State, np.ndarray, wf.Tensor)


def lowered(made):
    """Return the program of a random graph and what its numbers stand for."""
    targets = [update.value for update in made.updates]
    fetches, feeds = ([x.value for x in some] for some in (made.fetches, made.feeds))
    program = Program(made.graph, fetches, feeds, targets)
    static = specialized(program, {value: value.shape for value in feeds})
    return lower(optimize_static(static), [state for state, _ in program.commits])


def parts(root):
    """Yield everything that a program holds, but for the attributes of operators."""
    stack, seen = [root], set()
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, Expr):
            stack += [e.data for e in postorder([part])]
        elif isinstance(part, (tuple, list)):
            stack += part
        elif is_dataclass(part):
            hidden = {"attrs", "op"} if isinstance(part, CallKernel) else set()
            stack += [getattr(part, f.name) for f in fields(part) if f.name not in hidden]


@pytest.mark.parametrize("seed", range(6))
def test_a_program_holds_nothing_of_graphs(seed):
    program, _ = lowered(MixedProgram(seed, 12, states=True))
    assert not [part for part in parts(program) if isinstance(part, OUTSIDE)]
    assert all(isinstance(k.op, Op) for k in program.kernels if isinstance(k, CallKernel))


@pytest.mark.parametrize("seed", range(6))
def test_numbers_stand_for_what_lies_beside(seed):
    made = MixedProgram(seed, 12, states=True)
    program, sources = lowered(made)
    assert [buffer.number for buffer in program.buffers] == list(range(len(program.buffers)))
    for buffer in program.buffers:
        if buffer.kind == "feed":
            assert sources.feeds[buffer.slot].type == buffer.type
        elif buffer.kind == "constant":
            assert sources.constants[buffer.slot].shape == buffer.shape
        elif buffer.kind == "state":
            assert sources.states[buffer.slot].type == buffer.type
    assert len(sources.states) == len(program.states)
    assert {sources.states[number] for number, _ in program.commits} <= set(sources.states)
    assert all(sources.origins(kernel) for kernel in program.kernels if kernel.origins)


@pytest.mark.parametrize("seed", range(3))
def test_planning_returns_other_programs(seed):
    program, _ = lowered(MixedProgram(seed, 12, states=True))
    device = backend_named("cpu").describe()
    for stage in ON_PROGRAMS.values():
        before = repr(program), program.memory, program.schedule
        made = stage(program, device)
        assert (repr(program), program.memory, program.schedule) == before
        assert made.buffers[: len(program.buffers)] == program.buffers
        program = made
    assert program.memory is not None


def test_nothing_of_a_program_can_be_assigned():
    program, _ = lowered(MixedProgram(1, 8))
    for part in (program, program.kernels[0], program.buffers[0], program.fetches[0]):
        with pytest.raises(FrozenInstanceError):
            setattr(part, fields(part)[0].name, None)


def test_new_buffers_are_numbered_behind_the_others():
    program = KernelProgram((), (), 0, (), (), ())
    new = NewBuffers(program)
    views = [new.arena((2, 3), float32, "a"), new.arena((), float32, "b")]
    made = program.with_kernels((), new)
    assert [view.buffer for view in views] == list(made.buffers)
    assert [buffer.number for buffer in made.buffers] == [0, 1]
    assert views[0].strides == (3, 1)
