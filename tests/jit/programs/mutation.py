"""Writes in place: into arguments, buffers, parameters, outer tensors and attributes."""

from __future__ import annotations

import weft as wf
from tests.jit.harness import Call, Case, program, rows


def vectors(count=4, n=3):
    return [(rows(n, seed=s),) for s in range(count)]


@program()
def argument_written(jit):
    @jit
    def step(x):
        x += 1
        x[0] = 5.0
        return x.sum()

    return Case(step, vectors())


@program()
def argument_written_twice(jit):
    x = rows(3)

    @jit
    def step(x):
        x.mul_(0.5)

    return Case(step, [(x,)] * 4, {"x": x})


@program()
def slices_written(jit):
    @jit
    def step(x):
        y = wf.zeros((4, 3))
        y[1:3] = x
        y[:, 0] += 1
        y[-1, 1:] = x[0, 1:] * 2
        return y

    return Case(step, [(rows(2, 3, seed=s),) for s in range(3)])


@program()
def written_in_a_loop(jit):
    @jit
    def step(x):
        out = wf.zeros((5,))
        out[0] = x[0]
        for t in range(1, 5):
            out[t] = 0.5 * out[t - 1] + x[t]
        return out

    return Case(step, vectors(n=5))


@program()
def written_with_gradients(jit):
    w = wf.tensor([1.0, 2.0, 3.0], requires_grad=True)

    @jit
    def step(x):
        w.grad = None
        y = w * x
        y[0] = 0.0
        y += w
        y.mul_(2.0)
        y.square().sum().backward()

    return Case(step, vectors(), {"w": w})


@program()
def outer_tensor_written(jit):
    total = wf.zeros((3,))

    @jit
    def step(x):
        total.add_(x)
        return total * 2

    return Case(step, vectors(), {"total": total})


@program()
def outer_tensor_rebound(jit):
    total = wf.zeros((3,))

    @jit
    def step(x):
        nonlocal total
        total = total + x
        return total

    return Case(step, vectors(), {"total": lambda: total})


@program()
def augmented_assignment_of_an_outer_tensor(jit):
    total = wf.zeros((3,))
    other = total  # the same tensor by another name: it sees the write

    @jit
    def step(x):
        nonlocal total
        total += x
        return total

    return Case(step, vectors(), {"total": lambda: total, "other": other})


@program()
def buffer_of_a_module(jit):
    class Running(wf.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", wf.zeros((3,)))
            self.register_buffer("seen", wf.tensor(0))

        def forward(self, x):
            if self.training:
                self.seen += 1
                self.mean = self.mean + (x.mean(axis=0) - self.mean) / self.seen
            return x - self.mean

    net = Running()

    @jit
    def step(x):
        return net(x)

    calls = [Call(rows(4, 3, seed=s), before=net.eval if s == 3 else None) for s in range(5)]
    return Case(step, calls, {"net": net})


@program()
def parameter_written(jit):
    net = wf.nn.Linear(3, 1)

    @jit
    def step(x):
        with wf.no_grad():
            net.weight.clamp_(-0.1, 0.1)
            net.bias[0] = x.mean()
        return net(x)

    return Case(step, [(rows(2, 3, seed=s),) for s in range(3)], {"net": net})


@program(captured=False)
def parameter_written_while_recorded(jit):
    net = wf.nn.Linear(3, 1)

    @jit
    def step(x):
        y = net(x)
        net.weight.mul_(0.5)
        return y

    return Case(step, [(rows(2, 3, seed=s),) for s in range(3)], {"net": net})


@program()
def alias_in_a_list(jit):
    cells = [wf.zeros((3,)), wf.ones((3,))]

    @jit
    def step(x, i):
        cell = cells[i]
        cell += x
        return cells[0] + cells[1]

    return Case(step, [(rows(3, seed=s), s % 2) for s in range(5)], {"cells": cells})


@program()
def swapped_tensors(jit):
    pair = {"a": wf.zeros((3,)), "b": wf.ones((3,))}

    @jit
    def step(x):
        pair["a"], pair["b"] = pair["b"] + x, pair["a"]
        return pair["a"] - pair["b"]

    return Case(step, vectors(), {"pair": pair})


@program()
def earlier_values_stay(jit):
    @jit
    def step(x):
        before = x.detach()
        view = x[1:]
        x[1] = 100.0
        return before, view, x * 1

    return Case(step, vectors())


@program()
def attribute_set_in_a_helper(jit):
    class Tracker:
        def __init__(self):
            self.last, self.count, self.history = None, 0, []

        def update(self, value):
            self.last = value
            self.count += 1
            self._remember(value)

        def _remember(self, value):
            self.history.append(value.sum())

    tracker = Tracker()

    @jit
    def step(x):
        y = x * 2
        tracker.update(y)
        return y + tracker.count

    return Case(step, vectors(), {"tracker": tracker})


@program()
def recurrent_state_kept(jit):
    class Recurrent(wf.nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.h = wf.nn.GRUCell(3, 4), None

        def forward(self, x):
            if self.h is None:
                self.h = wf.zeros((len(x), 4))
            self.h = self.cell(x, self.h.detach())
            return self.h

        def reset(self):
            self.h = None

    net = Recurrent()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    calls = [Call(rows(2, 3, seed=s), before=net.reset if s == 4 else None) for s in range(7)]
    return Case(step, calls, {"net": net})


@program()
def truncated_backpropagation(jit):
    cell = wf.nn.LSTMCell(3, 4)
    state = {"hc": (wf.zeros((2, 4)), wf.zeros((2, 4)))}
    optimizer = wf.optim.SGD(cell.parameters(), lr=0.1)

    @jit
    def step(xs):
        h, c = state["hc"]
        optimizer.zero_grad()
        loss = wf.zeros(())
        for x in xs:
            h, c = cell(x, (h, c))
            loss = loss + h.square().mean()
        loss.backward()
        optimizer.step()
        state["hc"] = h.detach(), c.detach()
        return loss

    calls = [(rows(5, 2, 3, seed=s),) for s in range(4)]
    return Case(step, calls, {"cell": cell, "state": state})


@program()
def gradient_written(jit):
    w = wf.tensor([1.0, 2.0, 3.0], requires_grad=True)

    @jit
    def step(x):
        (w * x).sum().backward()
        w.grad.mul_(0.5)
        w.grad[0] = 0.0

    return Case(step, vectors(), {"w": w})


@program()
def assignment_of_grad(jit):
    w = wf.tensor([1.0, 2.0, 3.0], requires_grad=True)
    optimizer = wf.optim.SGD([w], lr=0.1)

    @jit
    def step(x):
        w.grad = x * 2
        optimizer.step()
        return w.grad

    return Case(step, vectors(), {"w": w})


@program()
def written_by_the_caller_afterwards(jit):
    @jit
    def step(x):
        return x * 2, x

    def call(x):
        doubled, same = step(x)
        doubled += 100
        same[0] = -1
        return doubled, same

    return Case(call, vectors())


@program()
def copy_and_fill(jit):
    target, spare = wf.zeros((3,)), wf.ones((3,))

    @jit
    def step(x, fill):
        spare.copy_(target)
        if fill:
            target.fill_(7.0)
        else:
            target.copy_(x)
        return spare + target

    calls = [(rows(3, seed=s), s % 2 == 1) for s in range(5)]
    return Case(step, calls, {"target": target, "spare": spare})
