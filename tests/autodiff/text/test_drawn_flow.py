"""Functions with control flow that were drawn: their programs agree with eager derivatives."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import weft as wf
from tests.programs.drawn_flow import function_text
from weft.autodiff.python_flow.kinds import CannotKeepError

POINTS = ((0.3, -0.6, 0.9), (-0.8, 0.5, 0.1))


def loaded(text, folder, seed):
    path = folder / f"drawn_{seed}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.drawn


def program(fn, mode):
    args = [wf.tensor(np.float64(v)) for v in POINTS[0]]
    scope = {}
    exec(wf.autodiff.source(fn, *args, mode=mode), scope)
    return scope["drawn"]


def check(seed, folder):
    fn = loaded(function_text(seed), folder, seed)
    try:
        reverse, forward = program(fn, "reverse"), program(fn, "forward")
    except CannotKeepError as error:
        if "the same tensor as" not in str(error):  # two names, one of them changed by +=
            raise
        return
    for point in POINTS:
        xs = [wf.tensor(np.float64(v)) for v in point]
        value = fn(*xs)
        xs = [wf.tensor(np.float64(v)) for v in point]  # += has changed the others
        gradients = [g.item() for g in wf.grad(lambda *a: fn(*a) + 0 * a[0], (0, 1, 2))(*xs)]
        found, pulled = reverse(*point)
        np.testing.assert_allclose(found, float(value), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(pulled, gradients, rtol=1e-10, atol=1e-12)
        found, (along,) = forward(*point, 1.0, 2.0, -1.0)
        np.testing.assert_allclose(found, float(value), rtol=1e-12, atol=1e-12)
        expected = np.dot(gradients, (1.0, 2.0, -1.0))
        np.testing.assert_allclose(along, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("first", range(0, 24, 6))
def test_programs_of_drawn_functions(first, tmp_path):
    for seed in range(first, first + 6):
        check(seed, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 1400, 20))
def test_programs_of_many_drawn_functions(first, tmp_path):
    for seed in range(first, first + 20):
        check(seed, tmp_path)
