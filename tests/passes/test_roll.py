"""Recorded loops are rolled into scans: what their steps take, and what they leave."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.graph.verify import verify
from weft.passes import roll

from .helpers import ops
from .rolled import T, data, inside, rolled, run, scans, steps

# -- what steps take -------------------------------------------------------------------------------


def test_a_recurrent_net():
    def fn(x, w, h):
        outs = []
        for t in range(T):
            h = wf.tanh(x[t] @ w + h * 0.5 + 0.1)
            outs.append(h)
        return wf.stack(outs), h

    made = rolled(fn, data(T, 2, 3), data(3, 3), data(2, 3))
    assert ops(made) == ["scan"]
    (loop,) = scans(made)
    assert inside(loop) == ["matmul", "mul", "add", "add", "tanh"]
    body, carries, xs, length, *_ = loop.attrs
    assert (carries, xs, length) == (1, 1, T)
    assert len(body.inputs) == 3  # the state, a row of x, the matrix


@pytest.mark.parametrize(
    "row",
    [
        lambda x, t: x[t],
        lambda x, t: x[t + 1],
        lambda x, t: x[T - 1 - t],
        lambda x, t: x[-1 - t],
        lambda x, t: x[2 * t],
        lambda x, t: x[(5 * t) % T],
        lambda x, t: x[t % 2],
        lambda x, t: x[..., t],
        lambda x, t: x[:, t, None],
        lambda x, t: x[t, t],
        lambda x, t: x[1, t],
        lambda x, t: x[t, :3, 2],
        lambda x, t: x[t : t + 3].sum(0),
        lambda x, t: x[3 * t : 3 * t + 3].sum(0),
        lambda x, t: x[:, 2 * t : 2 * t + 2, t],
        lambda x, t: x[2, t : t + 2, t : t + 4],
        lambda x, t: (x * 2.0)[t],
    ],
)
def test_rows_by_an_index_that_advances(row):
    def fn(x):
        h = x.sum() * 0.1
        for t in range(T):
            h = wf.tanh(row(x, t).mean() + h) * 0.5 + wf.sin(h)
        return h

    size = 3 * T + 2
    made = rolled(fn, data(size, size, size))
    assert len(scans(made)) == 1
    assert len(ops(made)) < 10


def test_rows_along_an_unknown_size():
    with wf.Graph() as graph:
        x = wf.placeholder((None, 3), wf.float64)
        h = x[0]
        outs = []
        for t in range(T):
            h = wf.tanh(x[t] + x[-1 - t]) * h + wf.sin(h)
            outs.append(h)
        results = [wf.concat(outs, None).value, h.value]
    made = roll(graph, results)
    verify(made)
    assert len(scans(made)) == 1
    fed = data(T + 2, 3)
    expected = run(graph, results, [x.value], [fed])
    found = run(made, made.outputs, [x.value], [fed])
    for a, b in zip(found.fetched, expected.fetched, strict=True):
        np.testing.assert_array_equal(a, b)


def test_unknown_sizes_of_other_axes():
    with wf.Graph() as graph:
        x = wf.placeholder((T, None, 3), wf.float64)
        h, outs = x[0] * 0.0, []
        for t in range(T):
            h = wf.tanh(x[t] + h * 0.5 - 0.1) + h
            outs.append(h)
            last = wf.sin(h) > 0
            h = wf.where(last, h, h * 0.5)
        results = [wf.concat(outs, 0).value, wf.stack(outs, 1).value, outs[5].value, last.value]
    made = roll(graph, results)
    verify(made)
    assert len(scans(made)) == 1
    fed = data(T, 5, 3)
    expected = run(graph, results, [x.value], [fed])
    found = run(made, made.outputs, [x.value], [fed])
    for a, b in zip(found.fetched, expected.fetched, strict=True):
        np.testing.assert_array_equal(a, b)


def test_constants_that_differ_are_stacked():
    table = data(T, 3)

    def fn(h):
        for t in range(T):
            h = wf.tanh(h * t + table[t]) - wf.tensor(table[T - 1 - t]) * 0.5
        return h

    (loop,) = scans(rolled(fn, data(3)))
    assert loop.attrs[2] == 3  # the number, and two rows of the table


def test_constants_that_are_equal_stay_constants():
    def fn(h):
        for _ in range(T):
            h = wf.tanh(h * wf.tensor(np.full((80,), 0.5))) + wf.zeros(80, dtype=wf.float64) * h
        return h

    (loop,) = scans(rolled(fn, data(80)))
    assert loop.attrs[2] == 0


def test_lists_that_were_made_before():
    def fn(x, w):
        rows, parts = [x[:, t] for t in range(T)], x.unbind(1)
        h = rows[0]
        for t in range(T):
            h = wf.tanh(rows[t] @ w + h) + parts[T - 1 - t] * 0.5
        return h

    made = rolled(fn, data(2, T, 3), data(3, 3))
    assert len(scans(made)) == 1
    assert ops(made).count("getitem") <= 2
    assert "unbind" not in ops(made)


def test_loose_values_are_stacked():
    def fn(w, *rows):
        h = rows[0] * 0.0
        for row in rows:
            h = wf.tanh(row @ w + h) * 0.5
        return h

    made = rolled(fn, data(3, 3), *(data(2, 3) for _ in range(T)))
    assert ops(made) == ["mul", "stack", "scan"]


def test_large_loose_values_are_not_copied():
    def fn(x, *matrices):
        for w in matrices:
            x = wf.tanh(x @ w.mT) + x * 0.5 - 0.1
        return x

    assert scans(rolled(fn, data(2, 3), *(data(3, 3) for _ in range(T)))) == []


def test_loops_extended_for_their_gradients_run_once():
    def fn(x, h):
        for t in range(T):
            y, _ = wf.scan(lambda c, row: (wf.tanh(c + row), None), h, x)
            (g,) = wf.gradients((y * y).sum(), [h])
            h = h * 0.9 - g * 0.1 + x[t]
        return h, y

    (loop,) = scans(rolled(fn, data(T, 3), data(3)))
    assert inside(loop).count("scan") == 2  # forward, and back


def test_steps_that_look_further_back():
    def fn(a, b):
        for _ in range(T):
            a, b = b, wf.tanh(a + b * 0.5) + wf.sin(a) * 0.1
        return a, b

    (loop,) = scans(rolled(fn, data(3), data(3)))
    assert loop.attrs[1] == 2


def test_carries_of_several_dtypes():
    def fn(x, count):
        total, seen = x[0].sum(), x[0] > 0
        for t in range(T):
            count = count + 1
            total = total + x[t].sum() * count.to(wf.float64)
            seen = wf.logical_xor(seen, x[t] > 0)
        return count, total, seen

    (loop,) = scans(rolled(fn, data(T, 3), np.array(3)))
    assert loop.attrs[1] == 3


# -- what loops leave ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "operators"),
    [
        (wf.stack, ["scan"]),
        (lambda outs: wf.stack(outs, 1), ["scan", "permute"]),
        (lambda outs: wf.concat(outs, 0), ["scan", "reshape"]),
        (lambda outs: wf.concat(outs, 1), ["scan", "permute", "reshape"]),
        (lambda outs: wf.concat(outs, None), ["scan", "reshape"]),
        (lambda outs: outs[-1], ["scan"]),
        (lambda outs: (outs[3], outs[-1]), ["scan", "getitem"]),
        (lambda outs: wf.stack(outs[::-1]), ["scan", "getitem"]),
        (lambda outs: wf.stack(outs[2:9:3]), ["scan", "getitem"]),
    ],
)
def test_lists_of_results(use, operators):
    made = rolled(lambda x, h: use(steps(x, h)), data(T, 2, 3), data(2, 3))
    assert ops(made) == operators


def test_other_values_between_the_results_of_a_loop():
    def fn(x, h):
        outs = steps(x, h)
        return wf.stack([h, *outs, x[0], *outs[:3]], 1), wf.concat([x[1], *outs[5:], h], 1)

    made = rolled(fn, data(T, 2, 3), data(2, 3))
    assert len(scans(made)) == 1
    assert len(ops(made)) < 25


def test_what_only_the_last_step_needs_is_not_stacked():
    def fn(x, h):
        for t in range(T):
            a = wf.sin(x[t]) + h
            h = wf.tanh(a) * 0.5 + 0.1
        return a

    (loop,) = scans(rolled(fn, data(T, 3), data(3)))
    assert len(loop.outputs) == loop.attrs[1]


def test_what_hardly_any_trip_needs_stays_outside():
    def fn(x, w, h):
        for t in range(T):
            h = wf.tanh(x[t] @ w + h * 0.5)
            y = wf.sin(h @ w) + 1.0
        return y

    made = rolled(fn, data(T, 2, 3), data(3, 3), data(2, 3))
    assert ops(made) == ["scan", "matmul", "sin", "add"]
    assert inside(scans(made)[0]) == ["matmul", "mul", "add", "tanh"]


def test_a_loop_over_the_results_of_a_loop():
    def fn(x, w, v, h):
        outs = []
        a = h
        for t in range(T):
            a = wf.tanh(x[t] @ w + a * 0.5)
            outs.append(a)
        for y in outs[::-1]:
            h = wf.tanh(y @ v + h * 0.5)
        return h

    made = rolled(fn, data(T, 2, 3), data(3, 3), data(3, 3), data(2, 3))
    assert ops(made) == ["scan", "getitem", "scan"]


def test_layers_one_after_another_with_the_same_cell():
    def fn(x, w, h):
        rows = [x[t] for t in range(T)]
        for _ in range(3):
            a, outs = h, []
            for row in rows:
                a = wf.tanh(row @ w + a * 0.5)
                outs.append(a)
            rows = outs
        return wf.stack(rows)

    assert ops(rolled(fn, data(T, 2, 3), data(3, 3), data(2, 3))) == ["scan"] * 3


def test_sums_of_results():
    def fn(x, h):
        return sum((y * y).sum() for y in steps(x, h))

    made = rolled(fn, data(T, 2, 3), data(2, 3))
    assert ops(made) == ["scan", "scan"]
