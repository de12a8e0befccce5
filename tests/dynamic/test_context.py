"""Operations that are put off inside of a block."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.dynamic.trees import TreeNet, random_trees


def steps(net, context):
    """Take two training steps, each in a context; return losses before and after."""
    optimizer, trees, found = wf.optim.SGD(net.parameters, lr=0.1), random_trees(5, 2, 6), []
    for _ in range(2):
        with context():
            loss = sum(net.loss(tree) for tree in trees)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            after = sum(net.loss(tree) for tree in trees)
        found += [float(loss), float(after)]
    return found


def test_training_in_a_context_is_training():
    expected = steps(TreeNet(4), wf.enable_grad)
    np.testing.assert_allclose(steps(TreeNet(4), wf.batching), expected, rtol=1e-12)


def test_operations_run_when_a_value_is_read():
    with wf.batching() as plan:
        ys = [wf.tensor(float(i)) * 2.0 for i in range(10)]
        assert plan.batches == []
        assert float(ys[3]) == 6.0
        assert [b.size for b in plan.batches] == [10]
        zs = [y + 1.0 for y in ys]
    assert [b.size for b in plan.batches] == [10, 10]
    assert [float(z) for z in zs] == [2.0 * i + 1 for i in range(10)]


def test_shapes_are_known_and_errors_arise_at_their_line():
    with wf.batching():
        x = wf.ones(3) * 2.0
        assert x.shape == (3,)
        assert x.dtype == wf.float32
        with pytest.raises(ValueError, match="do not broadcast"):
            x + wf.ones(2)


def test_tensors_from_outside_may_be_written():
    total, weight = wf.zeros(2), wf.tensor([1.0, 2.0])
    with wf.batching():
        before = weight * wf.ones(2)
        weight.add_(wf.ones(2))
        total += weight * wf.ones(2)
        after = weight * wf.ones(2)
    assert before.tolist() == [1.0, 2.0]
    assert after.tolist() == [2.0, 3.0]
    assert total.tolist() == [2.0, 3.0]


def test_values_live_on():
    with wf.batching():
        y = wf.tensor([1.0, 2.0]) * 3.0
    z = y + 1.0
    assert z.tolist() == [4.0, 7.0]
    assert repr(y) == "tensor([3., 6.])"
