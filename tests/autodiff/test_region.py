"""Regions of checkpoints: blocks that do the same share a plan, and nothing else."""

import gc
import weakref

import numpy as np

import weft as wf
from weft.autodiff.checkpointing import Checkpointed


def plan(fn, *shape):
    x = wf.tensor(np.ones(shape), requires_grad=True)
    node = wf.checkpoint(fn)(x)._node
    while not isinstance(node.op, Checkpointed):
        (node,) = node.parents
    return node.op.plan


def test_blocks_that_do_the_same_share_a_plan():
    def block(x):
        return wf.tanh(x * 2.0).sum(axis=0)

    assert plan(block, 3, 4) is plan(block, 3, 4)
    assert plan(block, 3, 4) is not plan(block, 4, 3)


def test_other_operations_have_another_plan():
    assert plan(lambda x: wf.sin(wf.sin(x)), 3) is not plan(lambda x: wf.sin(wf.cos(x)), 3)
    assert plan(lambda x: wf.sum(wf.sin(x), axis=0), 3, 3) is not plan(
        lambda x: wf.sum(wf.sin(x), axis=1), 3, 3
    )


def test_attributes_that_are_only_equal_are_not_the_same():
    def block(slope):
        return lambda x: wf.leaky_relu(wf.sin(x), slope)

    assert plan(block(0.0), 3) is plan(block(0.0), 3)
    assert plan(block(0.0), 3) is not plan(block(-0.0), 3)


def test_a_plan_that_is_shared_gives_each_block_its_own_gradient():
    weights = [wf.tensor(np.full(3, float(i)), requires_grad=True) for i in range(1, 4)]
    x = wf.tensor(np.ones(3))
    for weight in weights:
        x = wf.checkpoint(lambda x, w: wf.sin(x * w))(x, weight)
    x.sum().backward()
    plain = [wf.tensor(np.full(3, float(i)), requires_grad=True) for i in range(1, 4)]
    y = wf.tensor(np.ones(3))
    for weight in plain:
        y = wf.sin(y * weight)
    y.sum().backward()
    for weight, expected in zip(weights, plain, strict=True):
        np.testing.assert_array_equal(weight.grad.numpy(), expected.grad.numpy())


def test_custom_operations_do_not_outlive_their_use():
    def run():
        held = np.ones(1000)
        seen.append(weakref.ref(held))

        @wf.custom_vjp
        def scale(x):
            return x * wf.tensor(held)

        scale.defvjp(lambda x: (x * wf.tensor(held), None), lambda _, g: (g * wf.tensor(held),))
        wf.checkpoint(lambda x: wf.sin(scale(x)))(
            wf.ones(1000, requires_grad=True)
        ).sum().backward()

    seen = []
    run()
    gc.collect()
    assert seen[0]() is None
