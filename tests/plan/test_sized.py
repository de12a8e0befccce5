"""A program for many sizes gets memory and chunks for those of a run."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.lower.verify import verify


@pytest.fixture
def code():
    """Return the code of a program for many sizes, and the variable of its size."""
    with wf.Graph() as graph:
        x = wf.placeholder((None, 8), wf.float32)
        rows = wf.sort(wf.exp(x), axis=1)
        fetches = [(rows * 2.0).sum(0), wf.softmax(rows, 1)]
    session = wf.Session(graph)
    for size in (4, 9):
        session.run(fetches, {x: np.ones((size, 8), np.float32)})
    (call,) = session._prepared(fetches).calls.values()
    (made,) = call._sized._made
    ((variable,),) = [set(made.pattern[0][0].variables())]
    return made.code, variable


def test_each_size_has_a_layout_that_holds(code):
    code, n = code
    for size in (2, 50, 7):
        executable = code.bind({n: size})
        verify(executable.program)
        assert executable.program.memory.arena_bytes >= size * 8 * 4


def test_equal_sizes_have_one_executable(code):
    code, n = code
    assert code.bind({n: 5}) is code.bind({n: 5})


def test_the_program_of_a_size_has_numbers_only(code):
    code, n = code
    program = code.bind({n: 6}).program
    assert not program.is_sized
    assert code.plan.program.is_sized
