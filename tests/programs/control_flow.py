"""Differentiable programs with control flow: each is a function of two float64 vectors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import weft as wf


class Pair(NamedTuple):
    left: Any
    right: Any


def branch(x, w):
    return wf.cond(x.sum() > 0, lambda v: (v * w).sin(), lambda v: v * v * w.sum(), x)


def branch_of_pairs(x, w):
    y = wf.cond(
        x.sum() > 0,
        lambda p: Pair(p["a"] * p["b"], (p["b"] ** 2, None)),
        lambda p: Pair(p["a"], (p["b"].cos(), None)),
        {"a": x, "b": w},
    )
    return (y.left * y.right[0]).sum()


def power_by_while(x, w):
    def body(c):
        return c[0] + 1, c[1] * (x * w).tanh(), c[2] + c[1]

    return wf.while_loop(lambda c: c[0] < 4, body, (0, x, w))[1:]


def data_dependent_while(x, w):
    def body(c):
        return c * 0.5 + (w * c).sin() * 0.1

    return wf.while_loop(lambda c: (c * c).sum() > 0.05, body, x)


def while_without_trips(x, w):
    return wf.while_loop(lambda c: c.sum() > 1e9, lambda c: c * w, x) * w


def rnn(x, w, *, reverse=False, until=None):
    xs = x * wf.tensor(np.linspace(0.5, 1.5, 4))[:, None]

    def step(h, row):
        h = (h * w + row).tanh()
        return h, {"sum": (h * h).sum(), "row": row * h}

    h, ys = wf.scan(step, w * 0.1, xs, reverse=reverse, until=until)
    return h, ys["sum"], ys["row"].sum(axis=0)


def backward_rnn(x, w):
    return rnn(x, w, reverse=True)


def stopped_rnn(x, w):
    return rnn(x, w, until=lambda h, y: y["sum"] < 0.9)


def stopped_backward_rnn(x, w):
    return rnn(x, w, reverse=True, until=lambda h, y: y["sum"] < 0.9)


def scan_rows(x, w):
    """No carry has a gradient; rows and what is captured have."""
    return wf.scan(lambda c, row: (c + 1, (row * w).sin()), 0, wf.stack([x, w, x * w]))[1]


def scan_with_length(x, w):
    return wf.scan(lambda c, _: ((c * w).sin(), c.sum()), x, length=3)


def scan_of_no_steps(x, w):
    return wf.scan(lambda c, row: (c * row, row * c), x, wf.stack([w])[:0])[0] * w


def scan_in_scan(x, w):
    def outer(c, row):
        inner, ys = wf.scan(lambda d, v: ((d + v * w).sin(), d * v), c, row)
        return inner, ys.sum(axis=0)

    return wf.scan(outer, x, wf.stack([wf.stack([x, w]), wf.stack([w, x * w])]))


def while_in_scan(x, w):
    def step(c, row):
        halved = wf.while_loop(
            lambda v: (v * v).sum() > 0.3, lambda v: v * (0.5 + 0.1 * w.sin()), row
        )
        return c + halved * w, halved

    return wf.scan(step, x, wf.stack([x * 4, w * 3, x * w]))


def scan_in_while(x, w):
    def body(c):
        i, v = c
        last, ys = wf.scan(lambda a, row: ((a * row).cos(), a), v, wf.stack([w, x]), reverse=True)
        return i + 1, last + ys.mean(axis=0) * w

    return wf.while_loop(lambda c: c[0] < 3, body, (0, x))[1]


def cond_in_while(x, w):
    def body(c):
        i, v = c
        return i + 1, wf.cond(i % 2 == 0, lambda u: (u * w).sin(), lambda u: u * u + w, v)

    return wf.while_loop(lambda c: c[0] < 4, body, (0, x))[1]


def scan_in_cond(x, w):
    def yes(v):
        return wf.scan(lambda c, row: ((c * row).tanh(), c), v, wf.stack([w, x, w]))[1].sum(axis=0)

    return wf.cond(x.sum() > 0, yes, lambda v: v * v * w, x)


def stopped_scan_in_scan(x, w):
    def outer(c, row):
        inner, _ = wf.scan(
            lambda d, v: ((d * v).sin(), d),
            c,
            wf.stack([row, w, x]),
            until=lambda d, y: d.sum() < 0.75,
        )
        return inner, inner * row

    return wf.scan(outer, x, wf.stack([x, w]))


def gradients_inside_a_body(x, w):
    """Two steps of gradient descent, differentiated through."""

    def step(v, _):
        if v.symbolic:
            loss = ((v * w).sin() ** 2).sum()
            (g,) = wf.gradients(loss, [v])
        else:
            loss = ((v * w).sin() ** 2).sum()
            (g,) = wf.gradients(loss, [v], create_graph=True)
        return v - 0.1 * g, None

    return wf.scan(step, x * 1.0, length=2)[0]


def ragged_rows(x, w):
    """Each step selects another number of elements."""

    def step(c, row):
        chosen = (row * c)[row * 1.0 > w]
        return c + chosen.sum() * 0.1, (chosen * chosen).sum()

    return wf.scan(step, x, wf.stack([x, -x, w, x * 0.5 + 0.1]))


def ragged_middle(x, w):
    """Sizes born in a step are needed to broadcast, reshape and average."""

    def step(c, row):
        chosen = row[row > 0] * c.sum()
        table = chosen.reshape(-1, 1) * wf.ones((1, 2), dtype=wf.float64)
        return (c * w).sin() + table.sum() / (chosen.shape[0] + 1), table.mean(axis=1).sum()

    return wf.scan(step, x, wf.stack([x, w, x * w]))


def ragged_results(x, w):
    """Sizes born in steps of a loop are told by its stacked results, in another loop too."""

    def inner(c, row):
        chosen = row[row > 0.3]  # as many in both rows, but not in every step outside
        return c * 0.9, wf.concat([chosen * c.sum(), chosen, c.reshape(-1)])

    def outer(c, k):
        row = (x * k * 0.5).abs() * (c.sum().sin() * 0.1 + 1)
        _, ys = wf.scan(inner, c * w, wf.stack([row, row]))
        weights = wf.ones(ys.shape, dtype=wf.float64) * 0.3
        return c + (ys * weights).sum().sin(), ys.reshape(-1).sin().sum()

    return wf.scan(outer, x, wf.stack([w.sum(), x.sum()]))


def sizes_in_a_body(x, w):
    def body(c):
        i, v = c
        return i + 1, (v * w).sin() + v.sum() / x.shape[0]

    return wf.while_loop(lambda c: c[0] < 3, body, (0, x))[1]


def invariants(x, w):
    """Use what depends on captured values only: the adjoint computes it once."""

    def step(c, row):
        table = (w[:, None] * w).sin()
        return (table @ c + row).tanh(), (table * c).sum()

    return wf.scan(step, x, wf.stack([x, w, x]))


def mixed_columns(x, w):
    """Rows of integers and truth values beside floats."""
    n = wf.tensor([0, 2, 1])
    flags = wf.tensor([True, False, True])

    def step(c, row):
        a, i, flag = row
        return wf.cond(flag, lambda: c * a[i], lambda: c + a), (i, flag, a[i] * c.sum())

    last, (_, _, y) = wf.scan(step, x, (wf.stack([x, w, x * w]), n, flags))
    return last, y


def three_levels(x, w):
    def inner(c, v):
        return (c * v).sin(), c + v

    def middle(c, row):
        last, ys = wf.scan(inner, c, wf.stack([row, w]))
        return last, ys.sum(axis=0)

    def outer(c, row):
        last, ys = wf.scan(middle, c, wf.stack([row, x]), reverse=True)
        return last + ys[0] * 0.1, ys[1]

    return wf.scan(outer, x, wf.stack([x, w]))


def everything(x, w):
    def body(c):
        i, v = c

        def yes(u):
            def step(a, row):
                return (a * row + w).sin(), a

            return wf.scan(step, u, wf.stack([x, w, x]), until=lambda a, y: a.sum() < 0.5)[0]

        return i + 1, wf.cond(i % 2 == 0, yes, lambda u: u * w + x, v)

    return wf.while_loop(lambda c: (c[0] < 5) & (c[1].abs().sum() < 20), body, (0, x))[1]


PROGRAMS = [
    ragged_rows,
    ragged_middle,
    ragged_results,
    sizes_in_a_body,
    invariants,
    mixed_columns,
    three_levels,
    everything,
    branch,
    branch_of_pairs,
    power_by_while,
    data_dependent_while,
    while_without_trips,
    rnn,
    backward_rnn,
    stopped_rnn,
    stopped_backward_rnn,
    scan_rows,
    scan_with_length,
    scan_of_no_steps,
    scan_in_scan,
    while_in_scan,
    scan_in_while,
    cond_in_while,
    scan_in_cond,
    stopped_scan_in_scan,
    gradients_inside_a_body,
]
