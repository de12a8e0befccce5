"""Programs are run beside their functions, and refused if they give something else."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.errors import GraphError

CALLS = []


def counted(x):
    CALLS.append(1)
    return x * len(CALLS)


def test_a_program_of_a_function_that_depends_on_more_is_refused():
    with pytest.raises(GraphError, match="may depend on more than its arguments"):
        wf.autodiff.source(counted, wf.tensor(1.0))
    assert "def counted" in wf.autodiff.source(counted, wf.tensor(1.0), check=False)


def test_nan_agrees_with_nan():
    text = wf.autodiff.source(lambda x: wf.log(x * 1), wf.tensor(np.float64(-1.0)), mode="value")
    assert "np.log(x)" in text


def test_results_that_are_no_number_and_tensors_from_outside():
    w = wf.tensor(np.arange(3.0), requires_grad=True)
    for mode in ("value", "reverse", "forward"):
        assert wf.autodiff.source(lambda x: (x * w, x.sum()), wf.ones(3), mode=mode)


def test_examples_are_not_changed():
    def changing(x):
        x += 1
        return x * x

    x = wf.tensor(np.float64(2.0))
    assert "x" in wf.autodiff.source(changing, x)
    assert x.item() == 2.0
