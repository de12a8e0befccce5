"""Gradients are told as soon as they are final, and others stand in their place afterwards."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import weft as wf
from weft.autodiff.exchangers import GradientExchanger, exchanged_gradients, exchangers


class Doubling(GradientExchanger):
    """Notes what it is told, and gives twice the gradients."""

    def __init__(self, *parameters):
        self._parameters = parameters
        self.told, self.used = [], None
        exchangers[self] = None

    parameters = property(lambda self: self._parameters)

    def begin(self, used):
        self.used = list(used)

    def ready(self, parameter):
        self.told.append((parameter, parameter.grad.numpy().copy()))

    def finish(self):
        for p in self.used:
            p.grad = p.grad * 2.0

    def exchanged(self, grads):
        return {p: g * 2.0 for p, g in grads.items()}


@pytest.fixture
def leaves():
    yield [wf.tensor([float(i)], requires_grad=True) for i in range(1, 5)]
    exchangers.clear()


def is_told(exchanger):
    return [p for p, _ in exchanger.told]


def same(found, expected):
    return len(found) == len(expected) and all(a is b for a, b in zip(found, expected, strict=True))


def test_in_the_order_of_backward(leaves):
    a, b, c, unused = leaves
    exchanger = Doubling(*leaves)
    seen = []
    loss = ((a * 2.0 * b) * c).sum()
    a.register_hook(lambda g: seen.append(len(exchanger.told)))
    loss.backward()
    assert same(is_told(exchanger), [c, b, a])
    assert seen == [2]  # the gradients behind were told before this one was known
    assert same(exchanger.used, [a, b, c])
    np.testing.assert_array_equal(c.grad.numpy(), [2 * 4.0])
    assert unused.grad is None


def test_what_several_operations_use_is_told_at_the_end(leaves):
    a, b, c, _ = leaves
    exchanger = Doubling(a, b, c)
    (((a * 1.0) * b) * c * a).sum().backward()
    assert same(is_told(exchanger), [c, b, a])
    np.testing.assert_array_equal(exchanger.told[2][1], [2.0 * 1 * 2 * 3])


def test_what_was_accumulated_is_told_too(leaves):
    a, b, *_ = leaves
    exchanger = Doubling(a, b)
    exchanger.is_on = False
    (a * b).sum().backward()
    assert exchanger.used is None
    exchanger.is_on = True
    (a * 3.0).sum().backward()
    assert same(is_told(exchanger), [b, a])
    np.testing.assert_array_equal(a.grad.numpy(), [2 * (2.0 + 3.0)])


def test_gradients_that_can_be_differentiated_again(leaves):
    a, *_ = leaves
    Doubling(a)
    (a**3).sum().backward(create_graph=True)
    a.grad.sum()
    np.testing.assert_array_equal(a.grad.detach().numpy(), [6.0])
    np.testing.assert_array_equal(wf.gradients(a.grad, a).numpy(), [12.0])


def test_jitted_functions_and_graphs_ask_for_operations(leaves):
    a, *_ = leaves
    exchanger = Doubling(a)

    @wf.jit
    def step():
        a.grad = None
        (a * 5.0).sum().backward()

    for _ in range(2):
        step()
        np.testing.assert_array_equal(a.grad.numpy(), [10.0])
    exchanger.is_on = False
    step()
    np.testing.assert_array_equal(a.grad.numpy(), [5.0])
    exchanger.is_on = True
    assert exchanged_gradients({a: 3.0}) == {a: 6.0}


def test_static_steps_take_them(leaves):
    a, *_ = leaves
    Doubling(a)
    optimizer = wf.optim.SGD([a], lr=0.1)
    with wf.Graph() as graph:
        step = optimizer.minimize((a * 5.0).sum())
    wf.Session(graph).run(step)
    np.testing.assert_allclose(a.detach().numpy(), [1.0 - 0.1 * 10])


def test_a_backward_that_reaches_none_of_them_is_as_ever(leaves):
    a, b, *_ = leaves
    exchanger = Doubling(a)
    (b * 2.0).sum().backward()
    assert exchanger.used is None
    np.testing.assert_array_equal(b.grad.numpy(), [2.0])


def test_nothing_keeps_gradients_that_were_forgotten(leaves):
    exchanger = Doubling(leaves[0])
    (leaves[0] * leaves[1]).sum().backward()
    held = [weakref.ref(leaf.grad._value) for leaf in leaves[:2]]
    exchanger.told.clear()
    for leaf in leaves:
        leaf.grad = None
    assert [ref() for ref in held] == [None, None]
