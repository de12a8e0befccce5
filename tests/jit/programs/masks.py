"""Shapes that depend on values: masks, places of what is not zero, distinct values."""

from __future__ import annotations

import weft as wf
from tests.jit.harness import Case, labels, program, rows


def samples(*shape: int) -> list[tuple[wf.Tensor]]:
    """Return some arguments; of the last ones a mask selects nothing, and one."""
    one = wf.cat([wf.ones(1, *shape[1:]), -wf.ones(shape[0] - 1, *shape[1:])])
    return [*((rows(*shape, seed=s),) for s in range(4)), (-wf.ones(*shape),), (one,)]


@program()
def elements_by_a_mask(jit):
    @jit
    def step(x):
        kept = x[x > 0]
        return kept, kept.sum(), kept.shape[0], kept.numel() / x.numel()

    return Case(step, samples(7))


@program()
def rows_by_a_mask(jit):
    @jit
    def step(x):
        kept = x[x[:, 0] > 0]
        return kept * 2, kept[:, 1:].sum(0), x[x[:, 0] > 0, 1], kept.shape

    return Case(step, samples(6, 3))


@program()
def places_of_what_is_not_zero(jit):
    @jit
    def step(x):
        where = wf.nonzero(x > 0)
        return where, wf.argwhere(x > 0), x[where], wf.masked_select(x, x > 0)

    return Case(step, samples(4, 3))


@program()
def distinct_values(jit):
    @jit
    def step(y):
        classes = wf.unique_values(y)
        return classes, classes.shape[0], (y.reshape(-1, 1) == classes).sum(0)

    return Case(step, [(labels(n, 5, seed=n),) for n in (9, 8, 7, 9, 6)])


@program()
def one_mask_after_another(jit):
    @jit
    def step(x):
        positive = x[x > 0]
        large = positive[positive > positive.mean()]
        return large, large.sum() / (positive.shape[0] + large.shape[0] + 1)

    return Case(step, samples(12)[:4])


@program()
def branches_on_the_count(jit):
    @jit
    def step(x):
        kept = x[x > 0]
        if kept.shape[0] == 0:
            return x.sum()
        return kept.mean() if kept.shape[0] > 3 else kept.sum()

    return Case(step, samples(8))


@program()
def training_on_some_rows(jit):
    net = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.Dropout(0.25), wf.nn.Linear(4, 1))
    drop = wf.nn.Dropout(0.5)
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        out = net(x)
        kept = (y[:, 0] > 0) & (out[:, 0] < 2)
        loss = (drop(out[kept]) - y[kept]).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    sizes = (8, 8, 9, 7, 8)
    calls = [(rows(n, 3, seed=i), rows(n, 1, seed=i + 9)) for i, n in enumerate(sizes)]
    return Case(step, calls, {"net": net})


@program()
def gradients_of_selected_rows_go_on_outside(jit):
    weight = wf.ones(3, requires_grad=True)
    select = jit(lambda x: (x * weight)[x > 0])

    def step(x):
        weight.grad = None
        loss = select(x).square().sum()
        loss.backward()
        return loss, weight.grad

    return Case(step, samples(5, 3))


@program()
def errors_after_a_mask_leave_nothing(jit):
    total = wf.zeros(1)

    @jit
    def step(x, i):
        kept = x[x > 0]
        total.add_(kept.sum())
        return kept.take(i)

    index = wf.tensor([0])
    calls = [(rows(6, seed=0), index), (rows(6, seed=1), index), (rows(6, seed=2), index + 9)]
    return Case(step, [*calls, *calls[:2]], {"total": total})
