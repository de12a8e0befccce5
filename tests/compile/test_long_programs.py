"""The cost of compiling a long program grows with its length, not with the square of it."""

from __future__ import annotations

import sys

import pytest

import weft as wf
from weft.backends.cpu.codegen.program import CALLS
from weft.backends.cpu.runtime.analysis import analyse
from weft.compiler.stages import plan_program
from weft.graph.run import Program

STEPS = {
    "elementwise": lambda h, w: wf.tanh(h * w + 0.1),
    "products": lambda h, w: wf.tanh(h @ w),
    "rows": lambda h, w: h / (h * h).sum().sqrt() + w,
}
MARKS = {"elementwise": pytest.mark.long, "rows": pytest.mark.long}


def chain(step, length):
    """Return a program of many steps with the gradient of their weight, and the feeds' shapes."""
    weight = wf.nn.Parameter(wf.ones(4, 4))
    with wf.Graph() as graph:
        x = h = wf.placeholder((4, 4), wf.float32, name="x")
        for _ in range(length):
            h = STEPS[step](h, weight)
        slope = wf.gradients(h.sum(), weight)
    return Program(graph, [slope.value], [x.value]), {x.value: (4, 4)}


def compiled(program, shapes):
    """Go through all stages up to the text of the code."""
    return analyse(plan_program(program, shapes))


def calls_of(function, *args):
    """Return how many functions of Python's a call runs, and what it returns."""
    count = 0

    def note(frame, event, arg):
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        result = function(*args)
    finally:
        sys.setprofile(None)
    return count, result


@pytest.mark.parametrize("step", [pytest.param(s, marks=MARKS.get(s, ())) for s in STEPS])
def test_work_grows_with_the_length(step):
    compiled(*chain(step, 3))  # what is imported and remembered at first use
    short, _ = calls_of(compiled, *chain(step, 40))
    long, analysis = calls_of(compiled, *chain(step, 160))
    assert long < 5 * short
    entry = analysis.text.modules[analysis.text.entry]
    longest = max(function.count(" call ") for function in entry.split("define "))
    assert longest <= 4 * CALLS
