"""16-bit floats: gradients have the dtype of their inputs, limits are those of the dtype.

bfloat16 is not one of NumPy's own dtypes: beside it a Python float widens a result to float32, so a
rule that computes on raw arrays must bring its constants into the dtype of its operands.
"""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.ops import conformance as c
from weft.autodiff.reverse import gradients
from weft.core.dtype import as_dtype, float_limits, is_float
from weft.core.errors import GradientError, LinalgError
from weft.core.op import registry
from weft.core.tensor import Tensor, make_leaf

DIFFERENTIABLE = sorted(name for name, op in registry.items() if op.differentiable)


def halved_leaf(array: np.ndarray, dtype: np.dtype) -> Tensor:
    """Return an array as a tensor; if it is floating, as a leaf of a 16-bit dtype."""
    floating = array.dtype.kind == "f"
    with np.errstate(over="ignore"):
        value = array.astype(dtype) if floating else array
    return make_leaf(value, floating, None)


def gradient_dtypes(case: c.Case, dtype: np.dtype) -> set[str]:
    """Return the dtypes of the gradients of all floating inputs."""
    leaves: list[Tensor] = []

    def convert(array: np.ndarray) -> Tensor:
        leaves.append(halved_leaf(array, dtype))
        return leaves[-1]

    result = c.Arguments.of(case.drawn()).map(convert).call(case.function)
    outputs = [y for y in c.outputs_of(result) if y.requires_grad]
    inputs = [x for x in leaves if x.requires_grad]
    if not outputs or any(not is_float(y.dtype) for y in outputs):
        return set()
    return {g.dtype.name for g in gradients(outputs, inputs) if g is not None}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients_keep_the_dtype(name, dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    for i, sample in enumerate(c._draw(c.sample_rule(name))):
        try:
            found = gradient_dtypes(c.Case(name, sample, i), as_dtype(dtype))
        except (GradientError, LinalgError):  # the sample has none, or is singular when rounded
            continue
        assert found <= {dtype}, f"{name}-{i}"


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_nan_to_num_gives_the_largest_of_the_dtype(dtype, compiled):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    x = wf.tensor(np.array([np.nan, np.inf, -np.inf, -2.5]).astype(as_dtype(dtype)))
    replace = wf.compile(wf.nan_to_num, x) if compiled else wf.nan_to_num
    largest = float(float_limits(x.dtype).max)
    found = replace(x)
    assert found.dtype == x.dtype
    assert found.numpy().astype(float).tolist() == [0.0, largest, -largest, -2.5]
    chosen = wf.nan_to_num(x, nan=1.0, posinf=2.0, neginf=-3)
    assert chosen.numpy().astype(float).tolist() == [1.0, 2.0, -3.0, -2.5]
