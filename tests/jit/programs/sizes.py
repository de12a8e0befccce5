"""Calls whose sizes change, and what Python does with the sizes of tensors."""

from __future__ import annotations

import weft as wf
from tests.jit.harness import Case, labels, program, rows

BATCHES = (6, 4, 3, 9, 2, 1, 4)


def growing(columns: int = 3) -> list[tuple[wf.Tensor]]:
    return [(rows(n, columns, seed=n),) for n in BATCHES]


@program()
def batches_of_any_size(jit):
    net = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.ReLU(), wf.nn.Linear(4, 2))
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        loss = wf.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    calls = [(rows(n, 3, seed=n), labels(n, 2, seed=n)) for n in BATCHES]
    return Case(step, calls, {"net": net, "optimizer": optimizer})


@program()
def sizes_as_results(jit):
    @jit
    def step(x):
        n, k = x.shape
        return x.sum(), n, n * k, n // 2, n / k, 1 / n, -n, n**2, (n, k), {"n": [n]}, x.size(0)

    return Case(step, growing())


@program()
def counts_as_results(jit):
    @jit
    def step(x):
        return x.size, x.size // 3, x.size / 2, x.numel(), x.size()

    return Case(step, growing() * 2)


@program()
def sizes_in_shapes(jit):
    @jit
    def step(x):
        n = x.shape[0]
        flat = x.reshape(n * 3)
        half = x[: n // 2]
        return flat.reshape(n, -1) + wf.arange(n).reshape(-1, 1), half, wf.zeros((n, 2)), x[n - 1]

    return Case(step, growing())


@program()
def sizes_kept_in_objects(jit):
    class Totals:
        rows = 0
        share = 0.0

    totals = Totals()

    @jit
    def step(x):
        totals.rows += x.shape[0]
        totals.share += 1 / x.shape[0]
        return x.sum() / totals.rows

    return Case(step, growing(), {"rows": lambda: totals.rows, "share": lambda: totals.share})


@program()
def branches_on_sizes(jit):
    @jit
    def step(x):
        n = x.shape[0]
        if n > 3 and x.shape != (9, 3):
            return x * 2
        return x.mean(0) if n % 2 else x.max(0)

    return Case(step, growing() * 2)


@program()
def sizes_that_python_needs(jit):
    names = {3: "three", 4: "four"}

    @jit
    def step(x):
        total = x[0] * 0
        for i in range(x.shape[0]):
            total = total + x[i] * i
        return total, names.get(x.shape[0]), f"{x.shape[0]} rows", isinstance(x.shape[0], int)

    return Case(step, growing() * 2)


@program()
def classes_of_sizes(jit):
    @jit
    def step(x):
        match x.shape[0]:
            case int():
                return x.sum(), isinstance(x.shape[0], int), x.shape[0].__class__ is int
            case _:
                return x.mean()

    return Case(step, growing() * 2)


@program()
def sizes_beside_items(jit):
    @jit
    def step(x):
        mean = x.mean().item()
        return mean * x.shape[0], x.shape[0] + mean, x - mean / x.shape[0], max(x.shape[0], 4)

    return Case(step, growing())


@program()
def arguments_of_any_size_are_written(jit):
    @jit
    def step(x, y):
        x += y.sum()
        x[0] = x.shape[0]
        return x, y

    return Case(step, [(rows(n, 2, seed=n), rows(n + 1, seed=n)) for n in BATCHES])


@program()
def arguments_given_twice(jit):
    @jit
    def step(x, y):
        return x + y, x is y

    return Case(step, [(x, x) for (x,) in growing()])


@program()
def two_sizes_that_must_agree(jit):
    @jit
    def step(x, y):
        if x.shape[0] == y.shape[0]:
            return (x * y).sum(1)
        return x @ y.transpose(0, 1)

    sizes = ((4, 4), (5, 5), (6, 3), (3, 6), (7, 7), (2, 8))
    return Case(step, [(rows(a, 3, seed=a), rows(b, 3, seed=b)) for a, b in sizes])


@program()
def state_that_grows(jit):
    class Cache:
        rows = wf.zeros(2, 3)

    cache = Cache()

    @jit
    def step(x):
        cache.rows = wf.cat([cache.rows, x])
        return (x @ cache.rows.transpose(0, 1)).softmax(-1) @ cache.rows

    calls = [(rows(1, 3, seed=s),) for s in range(7)]
    return Case(step, calls, {"rows": lambda: cache.rows})


@program()
def errors_of_sizes(jit):
    weight = wf.ones(3, requires_grad=True)

    @jit
    def step(x, y):
        try:
            return (x + y).sum() * weight.sum()
        except ValueError:
            return x.shape[0], y.shape[0]

    sizes = ((4, 4), (5, 5), (6, 6), (3, 6), (7, 7), (6, 4))
    return Case(step, [(rows(a, 3, seed=a), rows(b, 3, seed=b)) for a, b in sizes])


@program()
def gradients_outside_of_any_size(jit):
    net = wf.nn.Linear(3, 2)
    forward = jit(lambda x: net(x).tanh())

    def step(x):
        net.zero_grad()
        loss = forward(x).square().mean()
        loss.backward()
        return loss, [p.grad for p in net.parameters()]

    return Case(step, growing())
