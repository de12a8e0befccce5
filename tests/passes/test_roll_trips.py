"""Rolling of loops in loops, and of loops whose trips are not all alike."""

from __future__ import annotations

import weft as wf
from weft.graph.verify import verify
from weft.passes import roll

from .helpers import ops
from .rolled import T, data, inside, recorded, rolled, scans

# -- loops of loops --------------------------------------------------------------------------------


def test_nested_loops():
    def fn(x, w, h):
        outs = []
        for t in range(10):
            for s in range(25):
                h = wf.tanh(x[t, s] @ w + h)
            h = h * 0.5 + wf.sin(h)
            outs.append(h.sum())
        return wf.stack(outs), h

    made = rolled(fn, data(10, 25, 2, 3), data(3, 3), data(2, 3))
    assert ops(made) == ["scan"]
    assert inside(scans(made)[0]) == ["scan", "mul", "sin", "add", "sum"]


def test_nested_loops_that_are_one():
    def fn(x, w, h):
        for t in range(10):
            for s in range(12):
                h = wf.tanh(x[t, s] @ w + h)
        return h

    made = rolled(fn, data(10, 12, 2, 3), data(3, 3), data(2, 3))
    assert ops(made) == ["reshape", "scan"]
    assert scans(made)[0].attrs[3] == 120


def test_inner_loops_that_grow_are_rolled_one_by_one():
    def fn(x, w, h):
        for t in range(3):
            for s in range(30 + t):
                h = wf.tanh(x[s] @ w + h) * 0.5
            h = wf.sin(h)
        return h

    assert len(scans(rolled(fn, data(40, 2, 3), data(3, 3), data(2, 3)))) == 3


def test_many_loops_each_longer_than_the_one_before():
    def fn(h):
        for n in range(60):
            for _ in range(8 + n):
                h = wf.tanh(h) * 0.5 + wf.sin(h) - 0.1
            h = h.reshape(3, 1) if n % 2 else h.reshape(3)
        return h

    graph, results, _ = recorded(fn, data(3, 1))
    made = roll(graph, results)
    verify(made)
    assert [node.attrs[3] for node in scans(made)] == list(range(8, 68))


def test_loops_of_layers_with_their_own_parameters():
    cells = [wf.nn.GRUCell(3, 3).to(wf.float64) for _ in range(10)]

    def fn(x):
        rows = list(x)
        for cell in cells:
            h, outs = None, []
            for row in rows:
                h = cell(row, h)
                outs.append(h)
            rows = outs
        return wf.stack(rows)

    made = rolled(fn, data(T, 2, 3))
    assert [op for op in ops(made) if op == "scan"] == ["scan"] * 10
    assert len(ops(made)) < 20


def test_control_flow_in_the_body():
    def fn(x, w, h):
        for t in range(T):
            h = wf.cond(h.sum() > 0, lambda v: wf.tanh(v @ w), lambda v: v * 0.5, h) + x[t]
            h, _ = wf.scan(lambda c, row: (wf.sin(c + row), None), h, x)
            h = h + 0.5
        return h

    made = rolled(fn, data(T, 2, 3), data(3, 3), data(2, 3))
    assert ops(made) == ["scan"]
    assert inside(scans(made)[0]).count("scan") == 1


def test_control_flow_that_differs_from_trip_to_trip_is_left():
    def fn(x, h):
        for t in range(T):
            h = wf.cond(h.sum() > 0, lambda v, t=t: wf.tanh(v * t), lambda v: v * 0.5, h) + x[t]
            h = wf.sin(h) - wf.cos(h)
        return h

    assert scans(rolled(fn, data(T, 3), data(3))) == []


def test_loops_inside_of_bodies_are_rolled():
    def fn(x, h):
        def step(c, row):
            for s in range(T):
                c = wf.tanh(c + row * s) * 0.5 + 0.1
            return c, c

        return wf.scan(step, h, x)

    (loop,) = scans(rolled(fn, data(4, 3), data(3)))
    assert inside(loop) == ["scan"]


# -- trips that differ -----------------------------------------------------------------------------


def test_a_first_trip_that_differs_stays_outside():
    def fn(x, w):
        h = None
        for t in range(T):
            a = x[t] @ w
            h = wf.tanh(a) * 0.5 if h is None else wf.tanh(a + h) * 0.5
            h = wf.sin(h) + 1.0
        return h

    made = rolled(fn, data(T, 2, 3), data(3, 3))
    assert scans(made)[0].attrs[3] == T - 1


def test_a_cell_that_makes_its_first_state():
    cell = wf.nn.LSTMCell(3, 4).to(wf.float64)

    def fn(x):
        state, outs = None, []
        for t in range(T):
            state = cell(x[t], state)
            outs.append(state[0])
        return wf.stack(outs)

    made = rolled(fn, data(T, 2, 3))
    assert scans(made)[0].attrs[3] == T
    assert "linear" not in ops(made)


def test_no_grad_inside_of_a_loop():
    w = wf.tensor(data(3, 3), requires_grad=True)

    def fn(x, h):
        for t in range(T):
            with wf.no_grad():
                a = h @ w
            h = wf.tanh(x[t] + a) * 0.5
        return h

    made = rolled(fn, data(T, 2, 3), data(2, 3))
    assert scans(made)[0].attrs[3] == T


def test_what_only_looks_like_a_part_of_a_trip_is_none():
    def fn(x, h):
        h = h * 0.0
        for t in range(T):
            h = wf.tanh(x[t] + h) * 0.5
        return wf.sin(x[3] + h)

    made = rolled(fn, data(T, 3), data(3))
    assert ops(made) == ["mul", "scan", "getitem", "add", "sin"]
    assert scans(made)[0].attrs[2] == 1  # the number is no row


def test_cells_that_take_turns():
    def fn(x, v, w, h):
        for t in range(2 * T):
            h = wf.tanh(h @ (w if t % 2 else v) + x[t // 2])
        return h

    made = rolled(fn, data(T, 2, 3), data(3, 3), data(3, 3), data(2, 3))
    (loop,) = scans(made)
    assert inside(loop).count("matmul") == 2


def test_layers_with_their_own_parameters_are_left():
    layers = [wf.nn.Linear(3, 3).to(wf.float64) for _ in range(T)]

    def fn(x):
        for layer in layers:
            x = x + wf.relu(layer(x)) * 0.5 - 0.1
        return x

    assert scans(rolled(fn, data(2, 3))) == []


def test_few_trips_are_left():
    def fn(x):
        for _ in range(7):
            for _ in range(3):
                x = wf.tanh(x) * 0.5 + wf.sin(x) - 0.1
            x = wf.cos(x)
        return x

    assert scans(rolled(fn, data(3))) == []


def test_few_nodes_are_left():
    def fn(x):
        for _ in range(10):
            x = wf.tanh(x) * 0.5
        return x

    graph, results, _ = recorded(fn, data(3))
    assert scans(roll(graph, results)) == []
    assert roll(graph) is graph
