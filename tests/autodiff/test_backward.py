"""Reverse mode on the tape: backward, gradients, hooks, orders, deep chains."""

from threading import Thread

import numpy as np
import pytest

import weft as wf
from weft.autodiff import engine
from weft.core.errors import ArgumentTypeError, GradientError, ShapeError


def leaf(*values):
    return wf.tensor(np.array(values), requires_grad=True)


def node_count(tensor):
    """Return the number of recorded operations behind a tensor."""
    seen, stack = set(), [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if node not in seen and hasattr(node, "parents"):
            seen.add(node)
            stack.extend(node.parents)
    return len(seen)


# -- backward -------------------------------------------------------------------------------------


def test_example_of_the_documentation():
    x = wf.tensor([5.0], requires_grad=True)
    y = x**2 + x
    y.backward()
    assert repr(x.grad) == "tensor([11.])"


def test_leaf_gradients_accumulate():
    x = leaf(1.0, 2.0)
    wf.sum(x * x).backward()
    wf.sum(x * 3.0).backward()
    assert x.grad.tolist() == [5.0, 7.0]


def test_a_gradient_once_read_is_not_changed_by_the_next_backward():
    x = leaf(1.0)
    (x * 2.0).backward()
    first = x.grad
    (x * 3.0).backward()
    assert (first.item(), x.grad.item()) == (2.0, 5.0)


def test_two_leaves_do_not_share_a_gradient():
    x, y = leaf(1.0), leaf(2.0)
    (x + y).backward()
    (x * 10.0).backward()
    assert (x.grad.item(), y.grad.item()) == (11.0, 1.0)


def test_a_leaf_starts_from_the_gradient_it_was_given():
    x = leaf(1.0)
    x.grad = wf.tensor(np.array([100.0]))
    (x * 2.0).backward()
    assert x.grad.item() == 102.0


def test_a_gradient_argument_is_needed_for_several_elements():
    x = leaf(1.0, 2.0)
    y = x * 2.0
    with pytest.raises(GradientError, match=r"shape \(2,\).*\.sum\(\)"):
        y.backward()
    y.backward(np.array([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 20.0]


def test_the_gradient_argument_is_checked():
    y = leaf(1.0, 2.0) * 2.0
    with pytest.raises(ShapeError, match=r"\(2,\).*Received: \(3,\)"):
        y.backward(np.ones(3))
    with pytest.raises(ArgumentTypeError, match="Received: str"):
        y.backward("text")


def test_backward_of_a_leaf_is_one():
    x = leaf(3.0)
    x.backward()
    assert x.grad.tolist() == [1.0]


def test_backward_needs_a_graph():
    with pytest.raises(GradientError, match="does not depend on any leaf"):
        wf.tensor(1.0).backward()


def test_a_value_used_twice_gets_the_sum():
    x = leaf(3.0)
    y = x * x
    (y + y * x + y).backward()
    assert x.grad.item() == 2 * 6.0 + 27.0


def test_every_node_is_visited_once(monkeypatch):
    x = leaf(1.0)
    y = x
    for _ in range(20):
        y = y + y  # 2**20 paths
    visits = []
    op = y.grad_fn.op
    rule = op.backward
    monkeypatch.setattr(op, "backward", lambda *args: visits.append(1) or rule(*args))
    y.backward()
    assert x.grad.item() == 2.0**20
    assert len(visits) == 20


def test_non_leaf_gradients_are_dropped_unless_retained():
    x = leaf(3.0)
    y = x * 2.0
    z = y * y
    y.retain_grad()
    z.backward()
    assert y.grad.item() == 12.0
    assert z.grad is None


def test_the_graph_is_freed_unless_retained():
    x = leaf(3.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 12.0
    with pytest.raises(GradientError, match=r"behind mul \(from test_backward.py:\d+\) was freed"):
        y.backward()


def test_a_shared_part_that_was_freed_is_named():
    x = leaf(3.0)
    shared = x * x
    (shared * 2.0).backward()
    with pytest.raises(GradientError, match="retain_graph=True"):
        (shared * 3.0).backward()


def test_constants_get_no_gradient():
    x, c = leaf(3.0), wf.tensor(np.array([2.0]))
    (x * c).backward()
    assert c.grad is None
    assert not c.requires_grad


def test_float32_gradients_stay_float32():
    x = wf.tensor([1.0, 2.0], requires_grad=True)
    wf.sum(x * 3.0 / 2).backward()
    assert x.grad.dtype == wf.float32


def test_mixed_dtypes_give_each_leaf_its_own():
    x = wf.tensor([1.0], requires_grad=True)
    y = leaf(2.0)
    (x * y).backward()
    assert (x.grad.dtype, y.grad.dtype) == (wf.float32, wf.float64)


# -- higher orders --------------------------------------------------------------------------------


def test_create_graph_to_fourth_order():
    x = leaf(1.5)
    y = wf.exp(x * x)
    found = []
    for _ in range(4):
        (y,) = wf.gradients(y, [x], create_graph=True)
        found.append(y.item())
    e = np.exp(1.5**2)
    polynomials = (2 * 1.5, 4 * 1.5**2 + 2, 8 * 1.5**3 + 12 * 1.5, 16 * 1.5**4 + 48 * 1.5**2 + 12)
    np.testing.assert_allclose(found, [p * e for p in polynomials], rtol=1e-12)


def test_backward_with_create_graph_leaves_a_differentiable_gradient():
    x = leaf(2.0)
    (x * x * x).backward(create_graph=True)
    assert x.grad.item() == 12.0
    first, x.grad = x.grad, None
    first.backward()
    assert x.grad.item() == 12.0


def test_gradient_penalty_mixes_both_orders():
    x = leaf(2.0)
    y = x * x * x
    (g,) = wf.gradients(y, [x], create_graph=True)
    (y + g * g).backward()
    assert x.grad.item() == 12.0 + 2 * 12.0 * 12.0


# -- gradients() ----------------------------------------------------------------------------------


def test_gradients_leave_grad_alone():
    x = leaf(3.0)
    assert wf.gradients(x * x, x).item() == 6.0
    assert x.grad is None


def test_gradients_with_respect_to_intermediate_values():
    x = leaf(3.0)
    y = x * x
    z = y * y
    gx, gy, gz = wf.gradients(z, [x, y, z])
    assert (gx.item(), gy.item(), gz.item()) == (108.0, 18.0, 1.0)


def test_unconnected_is_none():
    x, y = leaf(1.0), leaf(2.0)
    assert wf.gradients(x * 2.0, [x, y])[1] is None
    assert wf.gradients(wf.tensor(1.0), [x]) == [None]


def test_gradients_sum_over_ys_and_take_grad_ys():
    x = leaf(1.0, 2.0)
    y, z = x * 2.0, x * 3.0
    assert wf.gradients([y, z], x).tolist() == [5.0, 5.0]
    weighted = wf.gradients([x * 2.0, x * 3.0], x, [np.array([1.0, 0.0]), None])
    assert weighted.tolist() == [5.0, 3.0]


def test_the_same_y_twice_counts_twice():
    x = leaf(3.0)
    y = x * x
    assert wf.gradients([y, y], x).item() == 12.0


def test_gradients_walk_only_the_minimal_subgraph(monkeypatch):
    x, w = leaf(1.0), leaf(2.0)
    h = wf.exp(w)  # not on the way to x
    z = x * h
    called = []
    op = h.grad_fn.op
    monkeypatch.setattr(op, "backward", lambda *args: called.append(1))
    assert wf.gradients(z, x).item() == pytest.approx(np.exp(2.0))
    assert not called


def test_gradients_stop_at_the_wanted_nodes(monkeypatch):
    x = leaf(1.0)
    y = wf.exp(x)
    called = []
    monkeypatch.setattr(y.grad_fn.op, "backward", lambda *args: called.append(1))
    assert wf.gradients(y * 3.0, y).item() == 3.0
    assert not called


def test_gradients_leave_the_graph_below_the_wanted_nodes_usable():
    x = leaf(3.0)
    y = x * x
    assert wf.gradients(y * 2.0, y).item() == 2.0
    assert wf.gradients(y, x).item() == 6.0


def test_gradients_mistakes():
    x = leaf(1.0)
    with pytest.raises(GradientError, match=r"xs\[1\] does not require gradients"):
        wf.gradients(x * 2.0, [x, wf.tensor(1.0)])
    with pytest.raises(ArgumentTypeError, match=r"ys must be .* Received: float"):
        wf.gradients(3.0, x)
    with pytest.raises(ArgumentTypeError, match=r"match ys, 1 tensor\(s\). Received: 2"):
        wf.gradients(x * 2.0, x, [None, None])


# -- hooks ----------------------------------------------------------------------------------------


def test_hooks_see_the_complete_gradient_once():
    x = leaf(3.0)
    y = x * 2.0
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    (y * 5.0 + y * 7.0).backward()
    assert seen == [12.0]


def test_hooks_on_leaves_see_this_walk_alone():
    x = leaf(3.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    (x * 5.0 + x).backward()
    (x * 2.0).backward()
    assert seen == [6.0, 2.0]
    assert x.grad.item() == 8.0


def test_hooks_replace_the_gradient_in_order():
    x = leaf(3.0)
    y = x * 2.0
    y.register_hook(lambda g: g + 1.0)
    y.register_hook(lambda g: g * 10.0)
    y.retain_grad()
    y.backward()
    assert y.grad.item() == 20.0
    assert x.grad.item() == 40.0


def test_hooks_can_be_removed():
    x = leaf(3.0)
    handle = x.register_hook(lambda g: g * 100.0)
    handle.remove()
    handle.remove()
    (x * 2.0).backward()
    assert x.grad.item() == 2.0


def test_hooks_run_in_gradients_too():
    x = leaf(3.0)
    y = x * 2.0
    y.register_hook(lambda g: g * 100.0)
    assert wf.gradients(y, x).item() == 200.0


def test_hooks_take_part_in_higher_orders():
    x = leaf(3.0)
    y = x * x
    y.register_hook(lambda g: g * x)
    (g,) = wf.gradients(y, [x], create_graph=True)
    assert (g.item(), wf.gradients(g, x).item()) == (18.0, 12.0)


def test_hook_mistakes():
    x = leaf(1.0, 2.0)
    y = x * 2.0
    y.register_hook(wf.sum)
    with pytest.raises(GradientError, match=r"shape \(2,\). Received: shape \(\)"):
        wf.sum(y).backward()
    with pytest.raises(ArgumentTypeError, match=r"must be callable. Received: 3"):
        x.register_hook(3)
    with pytest.raises(GradientError, match="requires no gradient"):
        wf.tensor(1.0).register_hook(print)
    with pytest.raises(GradientError, match="requires none"):
        wf.tensor(1.0).retain_grad()


def test_errors_in_hooks_reach_the_user():
    x = leaf(1.0)
    x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (x * 2.0).backward()


# -- length and threads ---------------------------------------------------------------------------


def chain(length):
    x = leaf(1.0)
    y = x
    for _ in range(length):
        y = y + 1.0
    return x, y


@pytest.mark.parametrize("length", [10_000, 100_000])
def test_long_chains_need_no_recursion_and_linear_work(length, monkeypatch):
    x, y = chain(length)
    pushed = []
    push = engine.heappush
    monkeypatch.setattr(engine, "heappush", lambda heap, item: pushed.append(1) or push(heap, item))
    y.backward()
    assert x.grad.item() == 1.0
    assert len(pushed) == length


def test_a_long_chain_is_dropped_without_recursion():
    _, y = chain(100_000)
    del y


def test_backward_in_threads_does_not_mix():
    shared = wf.tensor(np.arange(3.0))
    results = {}

    def work(i):
        x = wf.tensor(np.full(3, float(i)), requires_grad=True)
        for _ in range(50):
            wf.sum(x * x * shared).backward()
        results[i] = x.grad.tolist()

    threads = [Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {i: [0.0, 100.0 * i, 200.0 * i] for i in range(4)}


def test_two_walks_over_one_retained_graph():
    x = leaf(2.0)
    y = x * x * x
    found = []
    threads = [
        Thread(target=lambda: found.append(wf.gradients(y, x, retain_graph=True).item()))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [12.0] * 4


def test_several_outputs_each_carry_their_gradient():
    x = wf.tensor(np.arange(6.0), requires_grad=True)
    a, b, c = wf.split(x, 2)
    wf.sum(a * 1.0 + c * 3.0).backward()
    assert x.grad.tolist() == [1.0, 1.0, 0.0, 0.0, 3.0, 3.0]
    assert b.requires_grad
    assert node_count(wf.sum(wf.split(x, 2)[0])) >= 2


@pytest.mark.parametrize("create_graph", [False, True])
def test_hooks_cannot_change_the_dtype(create_graph):
    x = wf.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2.0
    y.register_hook(lambda g: g.to(wf.float64) * 3.0)
    x.register_hook(lambda g: g.to(wf.float64))
    (y * y).sum().backward(create_graph=create_graph)
    assert x.grad.dtype == wf.float32
    assert x.grad.tolist() == [24.0, 48.0]
