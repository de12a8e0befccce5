"""Loops of a jitted function whose length depends on values."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.graph.control.ops import COND, WHILE
from weft.graph.node import subgraphs


def vector(value: float) -> wf.Tensor:
    return wf.tensor(np.array([1.0, 0.5, -0.25], np.float32) * value)


SIZES = (6.0, 40.0, 0.01, 3.0, 1000.0, 1.2)


def compare(function, calls=SIZES, state=lambda: ()):
    """Check that a function does the same jitted, call by call; return that."""

    def run(decorated):
        wf.manual_seed(0)
        found = []
        for value in calls:
            result = decorated(vector(value))
            parts = result if isinstance(result, tuple) else (result,)
            found.append([np.asarray(p.numpy() if isinstance(p, wf.Tensor) else p) for p in parts])
            found[-1] += [x.numpy().copy() for x in state()]
        return found

    expected, jitted = run(function), wf.jit(function)
    for a, b in zip(run(jitted), expected, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)
    assert jitted.stats()["eager_calls"] == 0
    return jitted


def loops(graph) -> int:
    """Return how many loops a graph has, in branches too."""
    inner = sum(loops(body) for node in graph.nodes for body in subgraphs(node))
    return inner + sum(node.op is WHILE for node in graph.nodes)


def assert_one_loop(jitted, recordings=2):
    assert jitted.stats()["recordings"] <= recordings
    assert jitted.stats()["paths"] == 1
    assert loops(jitted.graph()) == 1


def test_a_while_is_recorded_once_and_once_more_for_no_trip():
    def f(x):
        while (x * x).sum() > 1.0:
            x = x * 0.5
        return x + 1

    assert_one_loop(compare(f))


def test_while_true_with_a_break():
    def f(x):
        y = x * 1
        while True:
            y = y * 0.5
            if y.abs().max() < 0.3:
                break
        return y - x

    jitted = compare(f)
    assert_one_loop(jitted, 1)
    assert not any(node.op is COND for node in jitted.graph().nodes)


def test_several_values_take_turns():
    def f(a):
        a = a * a + 1
        x, old = a * 1, a + 1
        while (x - old).abs().max() > 1e-4:
            x, old = 0.5 * (x + a / x), x
        return x, old

    assert_one_loop(compare(f), 1)


def test_numbers_that_were_read_are_carried():
    def f(x):
        y, norm = x * 1, x.abs().max().item()
        while norm > 0.5:
            y = y / (1 + norm)
            norm = y.abs().max().item()
        return y, norm

    assert_one_loop(compare(f))


@pytest.mark.parametrize("sizes", [SIZES, (0.1, 6.0, 2000.0, 0.2)])
def test_gradients_go_through_any_number_of_trips(sizes):
    w = wf.tensor([0.5, 0.25, 0.75], requires_grad=True)

    def f(x):
        w.grad = None
        y = x * w
        while y.abs().sum() > 1.0:
            y = (y * w).tanh() * 0.9
        loss = (y * y).sum()
        loss.backward()
        return loss

    jitted = compare(f, sizes, lambda: [w.grad])
    assert jitted.stats()["paths"] == 1
    assert loops(jitted.graph()) >= 1


def test_results_of_a_loop_have_a_history():
    w = wf.tensor([0.5, 0.25, 0.75], requires_grad=True)

    def f(x):
        y = x * w
        while y.abs().sum() > 1.0:
            y = y * w
        return y.sum()

    jitted = wf.jit(f)
    for size in SIZES:
        w.grad = None
        f(vector(size)).backward()
        expected = w.grad.numpy().copy()
        w.grad = None
        jitted(vector(size)).backward()
        np.testing.assert_allclose(w.grad.numpy(), expected, rtol=1e-5)
    assert jitted.stats()["paths"] == 1


def test_states_are_written_in_a_loop():
    total = wf.zeros(3)

    def f(x):
        total.zero_()
        while (total * total).sum() < 50.0:
            total.add_(x.abs() + 1)
        return total * 2

    assert_one_loop(compare(f, state=lambda: [total]))


def test_random_numbers_of_a_loop_are_those_of_eager_code():
    def f(x):
        y = x + wf.rand(3)
        while y.abs().sum() > 2.0:
            y = y * 0.5 * wf.rand(3)
        return y + wf.rand(3)

    assert_one_loop(compare(f), 1)


def test_a_loop_of_a_module_and_one_without_gradients():
    class Net(wf.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = wf.nn.Linear(3, 3)

        def forward(self, x):
            with wf.no_grad():
                y = self.layer(x)
                while y.abs().max() > 0.1:
                    y = self.layer(y) * 0.2
            return y

    wf.manual_seed(0)
    net = Net()
    jitted = wf.jit(net)
    for size in SIZES:
        found = jitted(vector(size)).numpy()
        np.testing.assert_allclose(found, net(vector(size)).numpy(), rtol=1e-4, atol=1e-6)
    assert jitted.stats()["paths"] == 1
    assert loops(jitted.graph()) >= 1


def test_a_while_in_a_for():
    def f(x):
        y = x * 1
        for limit in (4.0, 2.0, 1.0):
            while y.abs().sum() > limit:
                y = y * 0.7
            y = y + 0.1
        return y

    jitted = compare(f)
    assert loops(jitted.graph()) >= 1


def test_a_while_in_a_while():
    def f(x):
        y = x * 1
        while y.abs().sum() > 4.0:
            while y.abs().max() > 1.5:
                y = y * 0.6
            y = y * 0.9 + 0.01
        return y

    assert loops(compare(f).graph()) >= 1


def test_values_in_tuples_and_closures():
    def f(x):
        carry = x * 1, x.abs() + 1
        scale = 0.5

        def step(pair):
            return pair[0] * scale, pair[1] + pair[0]

        while carry[0].abs().sum() > 1.0:
            carry = step(carry)
        return carry

    assert_one_loop(compare(f), 1)


# -- what looks like a loop, and is none -----------------------------------------------------------


def test_a_row_of_each_trip_is_no_value_that_is_carried():
    def f(x):
        total = x.sum() * 0
        for row in x:
            if row < -0.2:
                break
            total = total + row
        return total

    jitted = compare(f, (*SIZES, -1.0, 0.1))
    assert loops(jitted.graph()) == 0


def test_what_c_code_asks_for_is_no_loop():
    def f(x):
        ordered = sorted([x[0] * 1, x[2] * -3, x[1] * 2])
        largest = max(x[0] * 1, x[1] * 1, x[2] * 1)
        return ordered[0], ordered[1], largest

    jitted = compare(f, (*SIZES, -1.0, -2.0))
    assert loops(jitted.graph()) == 0


def test_calls_of_a_function_by_c_code_are_no_loop():
    def clipped(v):
        if v > 1.0:
            return v * 0.5
        return v

    def f(x):
        return wf.stack(list(map(clipped, [x[0] * 1, x[1] * 1, x[2] * 1])))

    jitted = compare(f, (0.1, 1.5, 3.0, 0.1, 1.5, 3.0))
    assert loops(jitted.graph()) == 0


def test_a_counter_of_python_is_no_value():
    def f(x):
        trips = 0
        while (x * x).sum() > 1.0:
            x = x * 0.5 if trips < 2 else x * 0.25
            trips += 1
        return x, trips

    compare(f)


def test_a_list_that_grows_is_none():
    def f(x):
        kept = []
        while (x * x).sum() > 1.0:
            x = x * 0.5
            kept.append(x)
        return x, len(kept)

    compare(f)


def test_a_value_that_is_also_kept_elsewhere_stays_what_it_was():
    class Holder:
        h = wf.ones(3)

        def step(self, x):
            h = self.h
            while h.abs().sum() < 20.0:
                h = h * 1.5 + self.h + x.abs()
            self.h = h * 0.1
            return h

    eager, jitted_holder = Holder(), Holder()
    jitted = wf.jit(jitted_holder.step)
    for size in SIZES:
        expected = eager.step(vector(size)).numpy()
        np.testing.assert_allclose(jitted(vector(size)).numpy(), expected, rtol=1e-4)


def test_names_of_one_value_become_two():
    def f(x):
        x = x * 1
        y = x
        while y.abs().sum() > 1.0:
            y = y * 0.5 - x * 1e-5
        return y, x

    compare(f)


def test_a_gradient_in_each_trip():
    w = wf.tensor([2.0, 3.0, 4.0], requires_grad=True)

    def f(x):
        y = x * 1
        while y.abs().sum() > 1.0:
            w.grad = None
            (w * y).sum().backward()
            y = y * 0.5 - w.grad * 0.01
        return y

    compare(f)


def test_a_truth_inside_of_the_loop():
    def f(x):
        y = x * 1
        while y.abs().sum() > 1.0:
            y = y * 0.5 if y.sum() > 2.0 else y * 0.3
        return y

    compare(f)


def test_nothing_of_python_is_kept():
    jitted = compare(lambda x: x * 2 if (x * x).sum() > 1.0 else x)
    ((trace,),) = jitted._traces.values()
    assert trace.looks
    assert all(look.state is None for look in trace.looks)
