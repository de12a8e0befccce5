"""Operations that come together are found, and run as one."""

from __future__ import annotations

import numpy as np

import weft as wf
from tests.dynamic.trees import TreeNet, random_trees


def names_of(function):
    return [batch.signature.name for batch in function.plan().batches]


def test_a_step_of_a_recursion_is_one_batch():
    weight = wf.tensor(np.random.default_rng(0).normal(0, 0.5, (6, 3)), requires_grad=True)

    def state(tree):
        if isinstance(tree, tuple):
            return wf.tanh(wf.concat([*map(state, tree)]) @ weight)
        return wf.tensor(np.full(3, float(tree)))

    trees = [((1, 2), (3, 4)), ((1, 2), 3), (5, 6)]
    function = wf.batched(lambda tree: state(tree).sum())
    together = function(trees)
    expected = [float(state(tree).sum()) for tree in trees]
    np.testing.assert_allclose([float(x) for x in together], expected, rtol=1e-12)
    assert "concat+matmul" in names_of(function)[0]
    assert "concat" not in names_of(function)


def gradients_of(net, losses):
    for p in net.parameters:
        p.grad = None
    sum(losses).backward()
    return [p.grad.numpy().copy() for p in net.parameters]


def test_large_clusters_are_compiled_and_have_gradients():
    net, trees = TreeNet(24), random_trees(6, 3, 8)
    function = wf.batched(net.loss)
    expected = gradients_of(net, [net.loss(tree) for tree in trees])
    for _ in range(2):  # the second time by plans
        for found, wanted in zip(gradients_of(net, function(trees)), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
        assert any(getattr(b.signature.work, "is_large", False) for b in function.plan().batches)
    assert function.plan().stats()["planned"] == 6


def test_inputs_of_a_recurrence_stay_wide():
    weight = wf.tensor(np.eye(3), requires_grad=True)

    def last(xs):
        h = wf.zeros(3, dtype=wf.float64)
        for x in xs:
            h = wf.tanh(h + wf.tensor(np.full(3, x)) @ weight)
        return h.sum()

    function = wf.batched(last)
    function([[0.1] * 5, [0.2] * 7])
    widest = max(b.size for b in function.plan().batches if "matmul" in b.signature.name)
    assert widest == 12


class Node:
    state = None


def test_values_inside_of_clusters_can_be_had_afterwards():
    weight = wf.tensor([1.0, 2.0], requires_grad=True)

    def keeps(node):
        inner = wf.tensor([1.0, 3.0]) * weight
        node.state = inner
        return (wf.tanh(inner) * 2.0).sum()

    nodes = [Node(), Node()]
    function = wf.batched(keeps)
    function(nodes)
    assert "mul" not in names_of(function)
    assert nodes[1].state.tolist() == [1.0, 6.0]
    nodes[1].state.sum().backward()
    assert weight.grad.tolist() == [1.0, 3.0]
