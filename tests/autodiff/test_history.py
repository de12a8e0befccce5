"""What tensors were computed from: types, lines and bytes, and nodes that print."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft as wf
from weft.autodiff.history import TensorHistory
from weft.core.errors import GradientError
from weft.graph.node import type_text


def computed():
    w = wf.tensor(np.ones((3, 2)), requires_grad=True)
    x = wf.tensor(np.ones((4, 3)))
    h = wf.tanh(x @ w)
    return w, h, (h * h).sum()


def test_types_and_bytes_of_a_history():
    _, h, loss = computed()
    history = TensorHistory([loss])
    types = {node.name(): type_text(history.types[node]) for node in history.nodes}
    assert types == {
        "leaf": "float64[3, 2]",
        "matmul": "float64[4, 2]",
        "tanh": "float64[4, 2]",
        "mul": "float64[4, 2]",
        "sum": "float64[]",
    }
    # x for the product (the leaf w needs it), and the tanh, which mul keeps too.
    assert history.saved_bytes == 4 * 3 * 8 + 4 * 2 * 8
    assert history.where(h.grad_fn).startswith("test_history.py:")


def test_looking_at_a_history_changes_nothing():
    calls = []
    w, h, loss = computed()
    h.register_hook(calls.append)
    h.retain_grad()
    TensorHistory([loss])
    assert calls == []
    assert w.grad is None
    assert h.grad is None
    loss.backward()
    assert len(calls) == 1
    np.testing.assert_allclose(
        w.grad.numpy(),
        wf.grad(lambda w: (wf.tanh(wf.ones(4, 3, dtype=wf.float64) @ w) ** 2).sum())(
            w.detach()
        ).numpy(),
    )


def test_a_history_that_backward_has_freed():
    _, _, loss = computed()
    loss.backward()
    history = TensorHistory([loss])
    assert history.saved_bytes == 0
    assert len(history) == 5


def test_what_lies_behind_an_operation_without_a_derivative_has_no_type():
    x = wf.tensor(np.full(3, 2.0), requires_grad=True)
    history = TensorHistory([wf.special.zeta(x, 1.5).sum()])
    assert x._node not in history.types


def test_a_tensor_without_history():
    with pytest.raises(GradientError, match="has no history"):
        TensorHistory([wf.ones(3)])


# -- nodes -----------------------------------------------------------------------------------------


def test_nodes_print_what_they_are():
    _, h, loss = computed()
    assert re.fullmatch(r"<sum\(mul\), at test_history.py:\d+>", repr(loss.grad_fn))
    text = repr(h.grad_fn)
    assert text.startswith("<tanh(matmul), keeps out float64[4, 2], at ")
    product = h.grad_fn.next_functions[0][0]
    assert "matmul(_, leaf), keeps x float64[4, 3]" in repr(product)
    loss.backward()
    assert "freed" in repr(h.grad_fn)


def test_histories_are_walked_like_pytorchs():
    w, _, loss = computed()
    names, node = [], loss.grad_fn
    while node is not None and node.next_functions:
        names.append(node.name())
        node = next((n for n, _ in node.next_functions if n is not None), None)
    assert names == ["sum", "mul", "tanh", "matmul"]
    assert node is w._node
    assert repr(node).startswith("<leaf made at test_history.py:")


def test_operations_with_several_outputs():
    x = wf.tensor(np.diag([1.0, 2.0, 3.0]), requires_grad=True)
    values, vectors = wf.linalg.eigh(x)
    product = (values * vectors[0]).sum().grad_fn.next_functions[0][0]
    maker, output = product.next_functions[0]
    assert (maker.name(), output) == ("eigh", 0)
    assert "eigh[0]" in repr(product)
    assert "output(eigh[0])" in repr(values.grad_fn)
