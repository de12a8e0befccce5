"""Functions whose forward and backward a program writes."""

from __future__ import annotations

import numpy as np
import pytest

from weft import chainer
from weft.chainer import Function, FunctionNode, Variable


class Cube(FunctionNode):
    def forward(self, inputs):
        (x,) = inputs
        self.retain_inputs((0,))
        return (x**3,)

    def backward(self, indexes, grad_outputs):
        (x,), (g,) = self.get_retained_inputs(), grad_outputs
        return (3 * x * x * g,)


class MulAdd(Function):
    def forward_cpu(self, inputs):
        x, y, z = inputs
        return (x * y + z,)

    def backward_cpu(self, inputs, grad_outputs):
        x, y, _ = inputs
        (g,) = grad_outputs
        return y * g, x * g, g


def test_a_node_and_its_second_derivative() -> None:
    x = Variable(np.array([2.0], "f"))
    (y,) = Cube().apply((x,))
    (gx,) = chainer.grad([y], [x], enable_double_backprop=True)
    (ggx,) = chainer.grad([gx], [x])
    assert (y.array, gx.array, ggx.array) == (8, 12, 12)


def test_the_older_form() -> None:
    x, y, z = (Variable(np.array([n], "f")) for n in (2, 3, 4))
    out = MulAdd()(x, y, z)
    out.backward()
    assert (out.array, x.grad, y.grad, z.grad) == (10, 3, 2, 1)


def test_results_must_be_tuples() -> None:
    class Wrong(FunctionNode):
        def forward(self, inputs):
            return inputs[0]

    with pytest.raises(TypeError, match="must be a tuple of ndarrays"):
        Wrong().apply((np.ones(1, "f"),))


def test_a_picture_of_the_computation() -> None:
    x = Variable(np.array([2.0], "f"))
    graph = chainer.computational_graph.build_computational_graph([x * x + 1])
    text = graph.dump()
    assert text.startswith("digraph")
    assert text.count("->") >= 2
    with pytest.raises(NotImplementedError, match="only dot"):
        graph.dump("svg")
