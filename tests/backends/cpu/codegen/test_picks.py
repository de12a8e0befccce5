"""Sums that are one element of a row: which ones are, and what they give."""

import numpy as np
import pytest

import weft as wf
from tests.lower.test_epilogues import compiled
from tests.programs.running import check_native
from weft.backends.cpu.codegen.phases import Phases
from weft.core.errors import IndexOutOfRange
from weft.lower.kernels import RowKernel
from weft.nn import functional as F

RNG = np.random.default_rng(5)


def numbers(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def loss(x, target):
    return F.nll_loss(F.log_softmax(x, -1), target, ignore_index=1)


def loss_and_gradient(x, target):
    value = loss(x, target)
    return value, wf.gradients(value, x)


def phases_of(function, *arrays):
    rows = [k for k in compiled(function, *arrays) if isinstance(k, RowKernel)]
    return [Phases(kernel) for kernel in rows]


@pytest.mark.parametrize("classes", [2, 17, 70, 5000])
def test_losses_and_gradients(classes):
    target = RNG.integers(0, classes, 9)
    target[:2] = 1
    check_native(loss_and_gradient, numbers(9, classes), target, tolerance=1e-6)


def test_no_pass_looks_for_a_class():
    found = phases_of(loss_and_gradient, numbers(70, 500), RNG.integers(0, 500, 70))
    assert sum(len(phases.picks) for phases in found) == 2
    # the largest, the sum of the exponentials, the sum of losses and the number of them
    assert sum(len(phases.reductions) for phases in found) == 4


def test_what_is_not_picked_does_not_matter():
    x = numbers(6, 40)
    index = RNG.integers(0, 40, 6)
    kept = x[np.arange(6), index].copy()
    x[:] = np.nan
    x[np.arange(6), index] = kept
    with wf.Graph() as graph:
        a, i = wf.placeholder(x.shape, x.dtype), wf.placeholder(index.shape, index.dtype)
        picked = (wf.gather(a * 2.0, 1, i.reshape((6, 1)))).reshape((6,)) - 1.0
    found = wf.Session(graph).run(picked, {a: x, i: index})
    np.testing.assert_array_equal(found, kept * 2 - 1)


def test_places_that_are_not_there():
    with wf.Graph() as graph:
        x, t = wf.placeholder((3, 40), "float32"), wf.placeholder((3,), "int64")
        value = loss(x, t)
    with pytest.raises(IndexOutOfRange):
        wf.Session(graph).run(value, {x: numbers(3, 40), t: np.array([0, 40, 2])})


def test_rows_of_a_length_that_only_a_run_knows():
    with wf.Graph() as graph:
        x, t = wf.placeholder((None, None), "float32"), wf.placeholder((None,), "int64")
        made = [loss(x, t), wf.gradients(loss(x, t), x)]
    native, plain = wf.Session(graph), wf.Session(graph, compiled=False)
    for rows, classes in ((3, 5), (9, 40), (4, 333)):
        feeds = {x: numbers(rows, classes), t: RNG.integers(0, classes, rows)}
        for a, b in zip(native.run(made, feeds), plain.run(made, feeds), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_other_sums_are_none():
    x = numbers(70, 100)
    others = phases_of(lambda x: (x.sum(-1), wf.where(x > 0, x, 0).sum(-1)), x)
    assert not any(phases.picks for phases in others)
