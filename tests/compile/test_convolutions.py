"""Programs with convolutions: as interpreted, and the same on any number of threads."""

from __future__ import annotations

import pytest

import weft as wf
from tests.compile.test_prologues import assert_agrees
from tests.lower.test_epilogues import array
from weft.core.op import F

TOLERANCES = {"float32": 1e-4, "float64": 1e-10}
SHAPES = {
    "lines of whole vectors": ((3, 16, 16, 16), (24, 16, 3, 3)),
    "odd lines": ((3, 7, 29, 31), (13, 7, 3, 3)),
    "lines shorter than vectors": ((5, 33, 3, 3), (20, 33, 3, 3)),
    "panels packed for several blocks of rows": ((1, 64, 16, 16), (800, 64, 3, 3)),
}


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("name", SHAPES)
def test_a_layer_and_its_gradients(name, stride, dtype):
    arrays = [array(*shape, dtype=dtype) for shape in SHAPES[name]]
    settings = {"padding": 1, "stride": stride}

    def build(x, weight):
        y = wf.tanh(F.conv(x, weight, **settings))
        of_x = F.conv_input_grad(y, weight, tuple(x.shape[2:]), **settings)
        of_weight = F.conv_weight_grad(x, y, tuple(weight.shape[2:]), **settings)
        return wf.concat([y.reshape(-1), of_x.reshape(-1), of_weight.reshape(-1)])

    assert_agrees(build, arrays, TOLERANCES[dtype])


def test_results_that_are_joined():
    def build(x, narrow, wide):
        parts = [F.conv(x, narrow), F.conv(x, wide, padding=1)]
        return wf.concat(parts, axis=1)

    assert_agrees(build, (array(2, 5, 9, 9), array(4, 5, 1, 1), array(6, 5, 3, 3)), 1e-4)


def test_steps_of_a_loop():
    def build(x, weight):
        def step(state, _):
            state = wf.tanh(F.conv(state, weight, padding=1))
            return state, state.mean((1, 2, 3))

        final, means = wf.scan(step, x, length=4)
        return final + means.sum()

    assert_agrees(build, (array(2, 3, 9, 11), array(3, 3, 3, 3)), 1e-4)
