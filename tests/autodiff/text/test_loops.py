"""Sixty functions as NumPy programs: forward, reverse and forward mode, where there is no Weft."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import weft as wf
from tests.programs.control_flow_functions import FUNCTIONS, arguments
from weft.core.tree import tree_leaves

# Runs programs of a file, each on its arguments, in a process in which Weft cannot be imported.
RUNNER = """
import json, sys
sys.modules["weft"] = None
import numpy as np
found = []
for text, name, args in json.load(open(sys.argv[1])):
    scope = {}
    exec(text, scope)
    got = scope[name](*(np.array(a, np.float64) for a in args))
    flat = []
    for part in got if isinstance(got, tuple) else (got,):
        flat += part if isinstance(part, tuple) else [part]
    found.append([np.asarray(x, np.float64).tolist() for x in flat])
assert not any(name.partition(".")[0] == "weft" for name, m in sys.modules.items() if m)
json.dump(found, open(sys.argv[2], "w"))
"""


def tensors(arrays):
    return [wf.tensor(a) for a in arrays]


def leaves(tree):
    return [np.asarray(y.numpy(), np.float64) for y in tree_leaves(tree)]


def derivatives(fn, args, mode):
    """Return what a program takes behind the arguments, and what it returns."""
    xs = tensors(args)
    ys = fn(*xs)
    if mode == "value":
        return [], leaves(ys)
    rng = np.random.default_rng(3)
    if mode == "forward":
        directions = [rng.normal(size=np.shape(a)) for a in args]
        _, along = wf.jvp(fn, tuple(xs), tuple(tensors(directions)))
        return directions, leaves((ys, along))
    parts = tree_leaves(ys)
    seeds = [np.ones(()) if y.shape == () else rng.normal(size=y.shape) for y in parts]
    _, pull = wf.vjp(fn, *xs)
    given = tuple(tensors(seeds)) if isinstance(ys, tuple) else wf.tensor(seeds[0])
    return [s for s in seeds if s.shape], leaves((ys, pull(given)))


@pytest.mark.parametrize("mode", ["value", "reverse", "forward"])
def test_programs_of_sixty_functions_run_with_numpy_alone(mode, tmp_path):
    assert len(FUNCTIONS) == 60
    jobs, expected = [], []
    for fn, makers in FUNCTIONS:
        args = arguments(makers)
        more, wanted = derivatives(fn, args, mode)
        text = wf.autodiff.source(fn, *tensors(args), mode=mode)
        assert "weft" not in text
        assert "wf." not in text
        jobs.append([text, fn.__name__, [np.asarray(a).tolist() for a in (*args, *more)]])
        expected.append(wanted)
    given, made = tmp_path / "programs.json", tmp_path / "results.json"
    given.write_text(json.dumps(jobs))
    command = [sys.executable, "-I", "-c", RUNNER, str(given), str(made)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    for job, found, wanted in zip(jobs, json.loads(made.read_text()), expected, strict=True):
        assert len(found) == len(wanted), job[1]
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=job[1])


def test_loops_and_branches_are_kept():
    """Functions with loops have loops in their programs, and no more lines than twelve a loop."""
    for fn, makers in FUNCTIONS:
        text = wf.autodiff.source(fn, *tensors(arguments(makers)), mode="value", check=False)
        code = fn.__code__.co_names
        assert len(text.splitlines()) < 40, fn.__name__
        if "range" in code or "zip" in code:
            assert "for " in text, fn.__name__


def newton(a):
    x = a
    while abs(x * x - a) > 1e-10:
        x = 0.5 * (x + a / x)
    return x


def test_what_the_adjoint_needs_is_pushed_and_popped():
    text = wf.autodiff.source(newton, wf.tensor(np.float64(2.0)))
    assert "stack.append((x, " in text
    assert "while stack:" in text
    assert text.count("while ") == 2  # one loop, and one that runs back
    forward = wf.autodiff.source(newton, wf.tensor(np.float64(2.0)), mode="forward")
    assert forward.count("while ") == 1
    assert "stack" not in forward


def test_results_of_all_trips_become_an_array_if_others_need_them():
    def kept(x):
        last, rows = wf.scan(lambda c, row: (wf.sin(c) * row, c * row), x[0], x)
        return last.sum() + (rows**2).sum()

    x = np.random.default_rng(0).normal(size=(3, 2))
    text = wf.autodiff.source(kept, wf.tensor(x))
    assert "np.stack(" in text
    scope = {}
    exec(text, scope)
    _, (dx,) = scope["kept"](x)
    np.testing.assert_allclose(dx, wf.grad(kept)(wf.tensor(x)).numpy(), rtol=1e-12)


def test_a_loop_may_take_no_trip():
    scope = {}
    exec(wf.autodiff.source(newton, wf.tensor(np.float64(2.0))), scope)
    assert scope["newton"](1.0) == (1.0, (1.0,))  # starts at its root
