"""Cheap results are computed again where they are wanted."""

from __future__ import annotations

import pytest

import weft as wf
from tests.lower.test_epilogues import array, compiled, executable_of
from weft.lower.kernels import GemmKernel, RowKernel


def stored(kernels):
    return sum(len(k.outputs) or 1 for k in kernels if isinstance(k, (GemmKernel, RowKernel)))


def test_the_mask_of_relu_is_not_stored():
    def build(x, w, v):
        loss = (wf.relu(x @ w) @ v).sum()
        return tuple(wf.gradients(loss, [x, w, v]))

    made = executable_of(build, array(9, 20), array(20, 30), array(30, 4))
    origins = made.analysis.sources.origins
    masked = [k for k in made.program.kernels if "greater" in {n.op.name for n in origins(k)}]
    assert len(masked) == 1
    assert len(masked[0].outputs) == 1


SLOPES = {
    "relu": wf.relu,
    "sigmoid": wf.sigmoid,
    "tanh": wf.tanh,
    "square": wf.square,
    "chain": lambda x: wf.tanh(wf.relu(x) * 2.0 + 1.0),
    "wide": lambda x: wf.relu(x).astype(wf.float64),
}


@pytest.mark.parametrize("name", SLOPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_through_layers(name, dtype):
    def build(x, w):
        a = SLOPES[name](x @ w)
        b = SLOPES[name](a.astype(x.dtype) @ w)
        return b, *wf.gradients((b * b).sum(), [x, w])

    compiled(build, array(7, 17, dtype=dtype) * 0.3, array(17, 17, dtype=dtype) * 0.3)


def test_results_that_are_fetched_are_stored():
    def build(x):
        y = wf.relu(x)
        return y, (y > 0).astype(wf.float32), ((y > 0).astype(wf.float32) * x).sum()

    compiled(build, array(11, 13))


def test_results_that_products_read_are_stored():
    def build(x):
        y = wf.relu(x)
        mask = (y > 0).astype(wf.float32)
        return y, mask @ mask.mT

    kernels = compiled(build, array(11, 13))
    assert stored(kernels) == 3


def test_column_sums_beside_a_cheap_result():
    """The gradient of a bias is summed in the kernel that makes the gradient of its layer."""

    def build(x, w, b, v):
        loss = (wf.relu(x @ w + b) @ v).sum()
        return tuple(wf.gradients(loss, [x, w, b, v]))

    compiled(build, array(65, 20), array(20, 33), array(33), array(33, 4))
