"""Batches by operators: stacks of many operands."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.dynamic.tape_kernels import StackKernel

W = wf.tensor(np.random.default_rng(0).normal(size=4), requires_grad=True)
LENGTHS = [9, 12, 9, 3, 20, 12]

row = wf.cell(lambda x: wf.tanh(W * x))
cost = wf.cell(lambda x: (x * x).sum())


def rows(n):
    return [row(wf.tensor(np.full(4, (i + n) / 10))) for i in range(n)]


def stacked_twice(n):
    values = rows(n)
    return wf.stack(values).mean() + (wf.stack([*values[1:], values[0]]) ** 2).sum()


REDUCTIONS = {
    "axis 0": lambda n: (wf.stack(rows(n)) ** 2).mean(),
    "axis 1": lambda n: wf.softmax(wf.stack(rows(n), 1), axis=1).max(),
    "scalars": lambda n: wf.stack([cost(x) for x in rows(n)]).mean(),
    "the stack alone": lambda n: wf.stack(rows(n), 1),
    "twice": stacked_twice,
    "without a gradient": lambda n: wf.stop_gradient(wf.stack(rows(n))).sum() + W.sum(),
    "the same rows": lambda n: wf.stack(rows(1) * n).sum(),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_stacks_of_many_operands_are_gathered_as_such(name):
    fn = REDUCTIONS[name]
    function = wf.batched(fn)

    def total(found):
        return wf.stack([(y * y).sum() for y in found]).sum()

    expected = total([fn(n) for n in LENGTHS])
    (gradient,) = wf.gradients(expected, [W])
    for _ in range(2):  # new, and seen
        found = total(function(LENGTHS))
        np.testing.assert_allclose(float(found), float(expected), rtol=1e-12)
        (g,) = wf.gradients(found, [W])
        np.testing.assert_allclose(g.numpy(), gradient.numpy(), rtol=1e-10, atol=1e-12)


def test_losses_of_a_sentence_are_stacked_by_gathering():
    function = wf.batched(REDUCTIONS["scalars"])
    function(LENGTHS)
    kernels = [s.kernel for s in function._table.all if "stack" in s.name]
    assert any(isinstance(kernel, StackKernel) for kernel in kernels)


def test_second_derivatives_go_through_stacks():
    fn = REDUCTIONS["axis 0"]

    def slope(values):
        (g,) = wf.gradients(wf.stack(values).sum(), [W], create_graph=True)
        return wf.gradients((g * g).sum(), [W])[0].numpy()

    np.testing.assert_allclose(slope(wf.batched(fn)([9, 11])), slope([fn(9), fn(11)]), rtol=1e-10)
