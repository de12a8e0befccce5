"""What the tape keeps alive: exactly what the rules ask for."""

import gc
import weakref

import numpy as np
import pytest

import weft as wf

SIZE = 1000


def leaf(size=SIZE):
    return wf.tensor(np.full(size, 0.5), requires_grad=True)


def buffer(tensor):
    """Return a weak reference to the memory of a tensor."""
    return weakref.ref(tensor._value)


@pytest.fixture(autouse=True)
def without_collector():
    """Switch the collector off: what is freed must be freed by reference counts."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def saved_bytes(tensor):
    """Return the size of all arrays that the graph behind a tensor keeps, each counted once."""
    arrays, seen, stack = {}, set(), [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in seen or not hasattr(node, "parents"):
            continue
        seen.add(node)
        stack.extend(node.parents)
        for value in node.saved:
            if isinstance(value, np.ndarray):
                arrays[id(value)] = value.nbytes
    return sum(arrays.values())


def test_an_input_that_no_rule_names_is_freed():
    x = leaf()
    y = x * 2.0
    dead = buffer(y)
    z = y + 1.0  # add's rules need neither operand
    del y
    assert dead() is None
    wf.sum(z).backward()
    assert x.grad.tolist() == [2.0] * SIZE


def test_an_output_that_no_rule_names_is_freed():
    x = leaf()
    y = x * x
    dead = buffer(y)
    z = wf.sum(y)
    del y
    assert dead() is None
    z.backward()


def test_an_output_that_its_rule_names_is_kept_as_an_array_only():
    x = leaf()
    y = wf.exp(x)
    tensor, value = weakref.ref(y), buffer(y)
    z = y + 1.0
    del y
    assert tensor() is None
    assert value() is not None
    wf.sum(z).backward()
    assert value() is None


def test_a_factor_is_kept_only_if_the_other_one_needs_it():
    x, constant = leaf(), wf.tensor(np.ones(SIZE))
    y = x * 1.0
    dead = buffer(y)
    z = y * constant  # the gradient of y needs the constant, nothing needs y
    del y
    assert dead() is None
    wf.sum(z).backward()


def test_dropping_the_result_drops_the_graph():
    x = leaf()
    y = wf.exp(x)
    node, value = weakref.ref(y.grad_fn), buffer(y)
    z = wf.exp(y)
    del y, z
    assert node() is None
    assert value() is None


def test_deep_networks_keep_one_activation_a_layer():
    layers, width = 200, 16
    weights = [wf.tensor(np.eye(width), requires_grad=True) for _ in range(layers)]
    x = wf.tensor(np.full((4, width), 0.1))
    for w in weights:
        x = wf.tanh(wf.matmul(x, w))
    activation = 4 * width * 8
    matrices = layers * width * width * 8
    # tanh's rule names its output, matmul's its inputs: the activation is shared between them; the
    # products in between are not kept. The first layer's input is kept for its weight.
    assert saved_bytes(x) == (layers + 1) * activation + matrices - width * width * 8


def test_backward_frees_as_it_goes():
    x = leaf()
    values, y = [], x
    for _ in range(5):
        y = wf.exp(y * 0.1)
        values.append(buffer(y))
    alive = []
    x.register_hook(lambda g: alive.append(sum(v() is not None for v in values)))
    total = wf.sum(y)
    del y
    total.backward()
    assert alive == [0]
    assert total.requires_grad


def test_retained_graphs_keep_their_values():
    x = leaf()
    y = wf.exp(x)
    value = buffer(y)
    total = wf.sum(y)
    del y
    total.backward(retain_graph=True)
    assert value() is not None
    total.backward()
    assert value() is None


def test_no_grad_keeps_nothing():
    x = leaf()
    with wf.no_grad():
        y = wf.exp(x)
        dead = buffer(y)
        z = wf.exp(y)
    del y
    assert dead() is None
    assert z.grad_fn is None


def test_gradients_do_not_keep_the_graph():
    x = leaf()
    y = wf.exp(x)
    node = weakref.ref(y.grad_fn)
    g = wf.gradients(wf.sum(y), x)
    del y
    assert node() is None
    assert not g.requires_grad


def test_a_hook_does_not_make_a_cycle():
    x = leaf()
    y = wf.exp(x)
    y.register_hook(lambda g: g * 2.0)
    y.retain_grad()
    node = weakref.ref(y.grad_fn)
    wf.sum(y).backward()
    del y
    assert node() is None


def test_a_jacobian_in_forward_mode_keeps_no_tape():
    def chain(x):
        seen, y = [], wf.broadcast_to(x.sum(), (SIZE,))
        for _ in range(20):
            y = wf.sin(y)
            seen += [buffer(y)] if type(y) is wf.Tensor else []
        assert sum(ref() is not None for ref in seen) <= 1
        return y

    for sparsity in (None, np.ones((SIZE, 3), bool)):
        found = wf.jacobian(chain, sparsity=sparsity)(wf.ones(3))
        np.testing.assert_array_equal(found.numpy(), wf.jacfwd(chain)(wf.ones(3)).numpy())
