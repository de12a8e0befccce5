"""Debuggers and breakpoints in jitted functions, and errors that look as in eager code."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

import weft as wf
from weft.capture.debugging import is_debugged

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
    import weft as wf

    weight = wf.tensor([1.0, 2.0], requires_grad=True)

    @wf.jit
    def step(x):
        loss = (weight * x).sum()
        loss.backward()
        return loss

    for _ in range(2):
        print("loss", step(wf.tensor([3.0, 4.0])).item())
    BREAK
    print("last", step(wf.tensor([3.0, 4.0])).item(), weight.grad.tolist())
"""


def debugged(tmp_path, program, commands, *options):
    """Run a program while somebody types into the debugger; return what they see."""
    path = tmp_path / "program.py"
    path.write_text(dedent(program))
    done = subprocess.run(
        [sys.executable, "-W", "ignore::RuntimeWarning", *options, str(path)],
        input="\n".join([*commands, ""]),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_breakpoint_inside(tmp_path):
    program = PROGRAM.replace("loss.backward()", "breakpoint()\n        loss.backward()")
    seen = debugged(
        tmp_path, program.replace("BREAK", ""), ["p loss", "p float(loss) + 1", "c", "c", "c"]
    )
    assert "tensor(11., grad_fn=<sum>)" in seen
    assert "(Pdb) 12.0" in seen
    assert "last 11.0 [9.0, 12.0]" in seen


def test_a_debugger_steps_into_what_is_compiled_already(tmp_path):
    commands = ["b step", "c", "n", "p loss", "c", "q"]
    program = PROGRAM.replace("BREAK", "import pdb; pdb.set_trace()")
    seen = debugged(tmp_path, program, commands)
    assert "-> loss = (weight * x).sum()" in seen
    assert "tensor(11., grad_fn=<sum>)" in seen
    assert "last 11.0 [9.0, 12.0]" in seen


def test_a_breakpoint_that_a_debugger_sets_from_outside(tmp_path):
    commands = ["b 9", "c", "p loss", "cl 1", "y", "c", "q"]
    seen = debugged(tmp_path, PROGRAM.replace("BREAK", ""), commands, "-m", "pdb")
    assert "-> loss.backward()" in seen
    assert "tensor(11., grad_fn=<sum>)" in seen
    assert "last 11.0 [9.0, 12.0]" in seen


def test_tools_that_measure_lines_are_no_debuggers():
    step = wf.jit(lambda x: x * 2)

    def trace(frame, event, argument):
        return None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert not is_debugged()
        step(wf.ones(2))
    finally:
        sys.settrace(before)
    assert step.stats()["compiled_calls"] == 1


def test_debug_interpret_runs_the_same_graph_node_by_node(monkeypatch):
    step = wf.jit(lambda x: wf.exp(x) / 3)
    x = wf.linspace(0.0, 1.0, 7)
    compiled = step(x)
    monkeypatch.setattr(wf.config, "debug_interpret", True)
    np.testing.assert_allclose(step(x).numpy(), compiled.numpy(), rtol=1e-6)
    assert step.stats()["recordings"] == 1


# -- errors ----------------------------------------------------------------------------------------


def last_lines(function, *args):
    """Return the type, the message and the innermost line of ours that an error has."""
    with pytest.raises(Exception) as caught:  # noqa: PT011  (each test names it)
        function(*args)
    error = caught.value
    ours = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == __file__]
    assert error.__context__ is None or error.__suppress_context__
    return type(error), str(error), ours[-1].lineno


def picks(x, i):
    return x[i] * 2


def refuses(x, limit):
    if x.sum() > limit:
        raise ValueError("too much")
    return x @ wf.ones(3)


@pytest.mark.parametrize(
    ("function", "good", "bad"),
    [
        (picks, (wf.ones(3), wf.tensor([1])), (wf.ones(3), wf.tensor([7]))),
        (refuses, (wf.ones(3), 9.0), (wf.ones(3), 1.0)),
        (refuses, (wf.ones(3), 9.0), (wf.ones(4), 9.0)),
    ],
)
def test_errors_are_those_of_eager_code(function, good, bad):
    jitted = wf.jit(function)
    expected = last_lines(function, *bad)
    assert last_lines(jitted, *bad) == expected  # while it is recorded
    for _ in range(3):
        jitted(*good)
    assert last_lines(jitted, *bad) == expected
