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


def test_what_is_no_sum_of_a_stack_is_stacked_by_gathering():
    function = wf.batched(REDUCTIONS["axis 1"])
    function(LENGTHS)
    kernels = [s.kernel for s in function._table.all if "stack" in s.name]
    assert any(isinstance(kernel, StackKernel) for kernel in kernels)


def test_second_derivatives_go_through_stacks():
    fn = REDUCTIONS["axis 0"]

    def slope(values):
        (g,) = wf.gradients(wf.stack(values).sum(), [W], create_graph=True)
        return wf.gradients((g * g).sum(), [W])[0].numpy()

    np.testing.assert_allclose(slope(wf.batched(fn)([9, 11])), slope([fn(9), fn(11)]), rtol=1e-10)


SEGMENTS = {
    "mean of numbers": lambda n: wf.stack([cost(x) for x in rows(n)]).mean(),
    "sum of numbers": lambda n: wf.stack([cost(x) for x in rows(n)]).sum() * 2,
    "sum of rows": lambda n: wf.stack(rows(n)).sum(0),
    "mean of rows": lambda n: wf.stack(rows(n), 1).mean(1),
    "mean of all": lambda n: wf.stack(rows(n), 1).mean(),
    "one row again and again": lambda n: wf.stack(rows(1) * n).sum(0),
    "of sums": lambda n: wf.stack([wf.stack([cost(x)] * n).sum() for x in rows(n)]).mean(),
    "operators": lambda n: wf.stack([x * x - W for x in rows(n)]).sum(0) - W,
    "added up": lambda n: sum(cost(x) for x in rows(n)) / n,
    "rows added up": lambda n: wf.tanh(sum(rows(n))),
    "half": lambda n: wf.stack([wf.cast(x, wf.float16) for x in rows(n)]).mean(0) ** 2,
}


@pytest.mark.parametrize("name", SEGMENTS)
def test_sums_of_stacks_are_one_batch_whatever_their_lengths(name):
    fn = SEGMENTS[name]
    function = wf.batched(fn)
    within = 2e-3 if name == "half" else 1e-12
    expected = [fn(n) for n in LENGTHS]
    (gradient,) = wf.gradients(wf.stack([(y * y).sum() for y in expected]).sum(), [W])
    before = None
    for _ in range(2):  # new, and seen: the same to the last bit
        found = function(LENGTHS)
        (g,) = wf.gradients(wf.stack([(y * y).sum() for y in found]).sum(), [W])
        sums = [b for b in function.plan().batches if b.signature.ragged]
        assert len(sums) == (2 if name == "of sums" else 1)
        for y, own in zip(found, expected, strict=True):
            assert (y.dtype, y.shape) == (own.dtype, own.shape)
            np.testing.assert_allclose(y.numpy(), own.numpy(), within, within)
        np.testing.assert_allclose(g.numpy(), gradient.numpy(), within, within)
        values = [*[y.numpy().tobytes() for y in found], g.numpy().tobytes()]
        assert before is None or values == before
        before = values


def test_sums_of_short_stacks_stay_in_their_clusters():
    function = wf.batched(lambda n: wf.tanh(wf.stack([x * W for x in rows(n)]).sum(0)))
    function([2, 3, 2])
    names = [b.signature.name for b in function.plan().batches]
    assert any("stack+sum+tanh" in name for name in names)


def test_few_values_are_added_up_one_after_another():
    function = wf.batched(lambda n: sum(cost(x) for x in rows(n)))
    function([2, 3, 5])
    assert not any(b.signature.ragged for b in function.plan().batches)


def test_sums_of_very_many_values():
    def fn(n):
        x, total, parts = cost(rows(1)[0]), W[0], []
        for _ in range(n):
            total = total + x
            parts.append(total)
        return total, parts

    kept = []

    def loss(n):
        total, parts = fn(n)
        kept.append(parts)
        return total

    found = wf.batched(loss)([1000, 700])
    for n, total, parts in zip([1000, 700], found, kept, strict=True):
        expected, alone = fn(n)
        np.testing.assert_allclose(float(total), float(expected), rtol=1e-12)
        np.testing.assert_allclose(float(parts[600]), float(alone[600]), rtol=1e-12)


MANY = ["mean of numbers", "sum of rows", "mean of all", "of sums", "added up"]


@pytest.mark.parametrize("name", MANY)
def test_second_derivatives_go_through_sums_of_stacks(name):
    fn = SEGMENTS[name]

    def slope(values):
        (g,) = wf.gradients(wf.stack([(y * y).sum() for y in values]).sum(), [W], create_graph=True)
        return wf.gradients((g * g).sum(), [W])[0].numpy()

    expected = slope([fn(9), fn(11)])
    np.testing.assert_allclose(slope(wf.batched(fn)([9, 11])), expected, rtol=1e-10)


def under_transforms(call):
    def loss(scale):
        parts = call(lambda n: wf.stack([cost(x * scale) for x in rows(n)]).mean())
        return wf.stack(parts).sum()

    scales = wf.tensor([0.5, 1.0, 2.0], dtype=wf.float64)
    tangent = wf.jvp(loss, (scales[0],), (wf.ones((), dtype=wf.float64),))
    return [*map(float, tangent), *wf.vmap(loss)(scales).numpy().tolist()]


def test_sums_of_stacks_under_transforms():
    expected = under_transforms(lambda fn: [fn(n) for n in LENGTHS])
    found = under_transforms(lambda fn: wf.batched(fn)(LENGTHS))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_traps_see_sums_of_stacks():
    function = wf.batched(SEGMENTS["mean of numbers"])
    expected = [float(y) for y in function(LENGTHS)]
    with wf.detect_anomaly():
        found = [float(y) for y in function(LENGTHS)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("total", [lambda xs: wf.stack(xs).mean(0), sum])
def test_sums_of_many_on_devices(total):
    x = wf.tensor([1.0, 2.0], device="reference", requires_grad=True)
    function = wf.batched(
        lambda n: total([x * wf.tensor(float(i), device="reference") for i in range(n)])
    )
    found = function([9, 12, 3])
    assert str(found[0].device) == "reference"
    assert sum(b.signature.ragged for b in function.plan().batches) == 1
    wf.stack([y.sum() for y in found]).sum().backward()
    count = 1 if total is sum else np.repeat([9, 12, 3], [9, 12, 3])
    every = np.concatenate([np.arange(9), np.arange(12), np.arange(3)])
    np.testing.assert_allclose(x.grad.numpy(), (every / count).sum(), rtol=1e-6)
