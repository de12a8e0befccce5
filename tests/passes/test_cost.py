"""Estimates of the time of operations: their order is what matters."""

import weft as wf
from weft.passes.cost import CALL, is_cheap, node_cost


def cost(build, *shapes):
    with wf.Graph():
        node = build(*[wf.placeholder(shape, wf.float32) for shape in shapes]).value.node
    return node_cost(node, lambda value: value.shape)


def test_larger_operations_cost_more():
    small, large = cost(wf.exp, (10,)), cost(wf.exp, (1000,))
    assert CALL < small < large
    assert cost(wf.matmul, (50, 60), (60, 70)) == CALL + 2 * 50 * 60 * 70 / 16
    assert cost(wf.sum, (1000,)) > cost(wf.sum, (10,))


def test_views_cost_a_call_whatever_their_size():
    assert cost(lambda x: x.reshape(-1), (3, 4)) == cost(lambda x: x.mT, (300, 400)) == CALL


def test_loops_cost_more_than_what_is_outside_of_them():
    def loop(x):
        return wf.while_loop(lambda v: v.sum() < 9.0, lambda v: v * 2.0, x)

    assert cost(loop, (3,)) > cost(wf.matmul, (50, 60), (60, 70))


def test_contractions_are_not_cheap():
    with wf.Graph():
        x = wf.placeholder((4, 4), wf.float32)
        assert is_cheap(wf.exp(x).value.node)
        assert is_cheap(wf.sum(x).value.node)
        assert not is_cheap(wf.matmul(x, x).value.node)
