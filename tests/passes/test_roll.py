"""Rolling: Python loops that were recorded trip by trip become scans that compute the same."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.programs.recorded_loops import RecordedLoops
from weft.compiler.stages import compile_program
from weft.core.modes import current_tracer, interpret_with
from weft.core.tree import tree_leaves
from weft.graph.call import ProgramCall
from weft.graph.control.ops import SCAN
from weft.graph.graph import Graph
from weft.graph.node import subgraphs
from weft.graph.run import Program
from weft.graph.symbol import make_symbol
from weft.graph.verify import verify
from weft.passes import roll

from .helpers import ops

RNG = np.random.default_rng(0)
F = wf.nn.functional
T = 16


def data(*shape):
    return RNG.normal(size=shape)


def recorded(fn, *arrays):
    """Return a function of arrays as a graph, its results and its inputs."""
    with wf.Graph() as graph:
        inputs = [wf.placeholder(a.shape, a.dtype) for a in arrays]
        made = [current_tracer().value_of(y) for y in tree_leaves(fn(*inputs))]
    return graph, made, [x.value for x in inputs]


def run(graph, fetches, feeds, arrays):
    wf.manual_seed(7)
    return Program(graph, fetches, feeds).run(arrays)


def rolled(fn, *arrays, **options):
    """Return the rolled graph of a function, which must give the very bits of the recorded one."""
    graph, results, feeds = recorded(fn, *arrays)
    made = roll(graph, results, **options)
    verify(made)
    expected, found = run(graph, results, feeds, arrays), run(made, made.outputs, feeds, arrays)
    for a, b in zip(found.fetched, expected.fetched, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    assert [state.key for state, _ in found.commits] == [state.key for state, _ in expected.commits]
    for (_, a), (_, b) in zip(found.commits, expected.commits, strict=True):
        np.testing.assert_array_equal(a, b)
    return made


def scans(graph):
    return [node for node in graph if node.op is SCAN]


def inside(node):
    return ops(node.attrs[0])


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


def steps(x, h):
    outs = []
    for t in range(T):
        h = wf.tanh(x[t] + h * 0.5 - 0.1) + h
        outs.append(h)
    return outs


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


# -- random numbers and states ---------------------------------------------------------------------


def test_dropout_draws_the_same_numbers():
    def fn(x, w, h):
        before = wf.rand(3)
        for t in range(T):
            h = F.dropout(wf.tanh(x[t] @ w + h), 0.5)
            h = h + wf.randn(2, 3).to(wf.float64)
        return before, h, wf.rand(3)

    made = rolled(fn, data(T, 2, 3), data(3, 3), data(2, 3))
    (loop,) = scans(made)
    assert len(loop.attrs[-1]) == 1


def test_draws_that_nobody_needs_are_not_made():
    def fn(x, h):
        noise = []
        for t in range(T):
            h = F.dropout(wf.tanh(x[t] + h), 0.5) - 0.1
            noise.append(F.dropout(h, 0.5))
        return h, noise[3], noise[-1]

    rolled(fn, data(T, 3), data(3))


def test_draws_of_a_generator_of_ones_own():
    generator = wf.Generator(5)

    def fn(x, h):
        for t in range(T):
            h = wf.tanh(x[t] + h) + wf.rand(3, generator=generator, dtype=wf.float64)
            h = h * 0.5 + wf.rand(3, dtype=wf.float64)
        return h

    (loop,) = scans(rolled(fn, data(T, 3), data(3)))
    assert len(loop.attrs[-1]) == 2


def test_running_statistics():
    norm = wf.nn.BatchNorm1d(3).to(wf.float64)

    def fn(x, h):
        for t in range(T):
            h = norm(wf.tanh(x[t] + h))
        return h, norm.running_mean, norm.running_var

    assert len(scans(rolled(fn, data(T, 4, 3), data(4, 3)))) == 1


def test_writing_at_an_index_that_advances():
    def fn(x, h):
        memory = wf.zeros((T, 3), dtype=wf.float64)
        for t in range(T):
            h = h * 0.5 + wf.sin(x[t])
            memory[t] = h + memory[(t + 3) % T]
            memory[0, t % 3] = 1.0
        return memory

    assert len(scans(rolled(fn, data(T, 3), data(3)))) == 1


def test_updates_of_parameters():
    def fn(x, w):
        losses = []
        for t in range(T):
            loss = ((x[t] @ w) ** 2).mean()
            (g,) = wf.gradients(loss, [w])
            w = w - 0.1 * g
            losses.append(loss)
        return w, wf.stack(losses)

    assert ops(rolled(fn, data(T, 2, 3), data(3, 3))) == ["scan"]


# -- gradients -------------------------------------------------------------------------------------


def with_gradients(graph, ends, wanted):
    """Return the values of a graph and the gradients of the first with respect to others."""
    with interpret_with(graph.tracer):
        loss = make_symbol(graph, ends[0])
        found = wf.gradients(loss, [make_symbol(graph, x) for x in wanted])
    return [*ends, *(g.value for g in found if g is not None)]


def compiled(program, arrays):
    shapes = [a.shape for a in arrays]
    code = compile_program(program, dict(zip(program.feeds, shapes, strict=True)))
    call = ProgramCall(program, "rolled", None)
    call.keep(tuple(shapes), code)
    wf.manual_seed(7)
    return call.run(arrays)


def test_gradients_of_parameters():
    w = wf.tensor(data(3, 3), requires_grad=True)

    def fn(x, h):
        total = 0.0
        for t in range(T):
            h = wf.tanh(x[t] @ w + h * 0.5)
            total = total + (h * h).sum()
        return total

    arrays = [data(T, 2, 3), data(2, 3)]
    graph, results, feeds = recorded(fn, *arrays)
    made = roll(graph, results)
    (loss,) = made.outputs
    with interpret_with(made.tracer):
        (g,) = wf.gradients(make_symbol(made, loss), [w])
    (found,) = run(made, [g.value], feeds, arrays).fetched
    fn(*map(wf.tensor, arrays)).backward()
    np.testing.assert_allclose(found, w.grad.numpy(), rtol=1e-10)


def test_values_that_must_stay_apart():
    def fn(x, h):
        outs = steps(x, h)
        return outs[-1].sum(), outs[7]

    arrays = [data(3 * T, 3), data(3)]
    graph, (loss, middle), feeds = recorded(fn, *arrays)
    made = roll(graph, [loss], apart=[middle])
    verify(made)
    assert middle in made or made.aliases[middle] in made
    here = made.aliases.get(middle, middle)
    (_, found) = run(made, with_gradients(made, made.outputs, [here]), feeds, arrays).fetched
    (_, expected) = run(graph, with_gradients(graph, [loss], [middle]), feeds, arrays).fetched
    np.testing.assert_allclose(found, expected, rtol=1e-10)


# -- random programs -------------------------------------------------------------------------------


def scan_count(graph):
    return sum(
        (node.op is SCAN) + sum(scan_count(body) for body in subgraphs(node)) for node in graph
    )


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_keep_every_bit(seed):
    program = RecordedLoops(seed)
    results, feeds = [y.value for y in program.fetches], [x.value for x in program.feeds]
    made = roll(program.graph, results)
    verify(made)
    arrays = list(program.feeds.values())
    expected = run(program.graph, results, feeds, arrays)
    found = run(made, made.outputs, feeds, arrays)
    for a, b in zip(found.fetched[1:], expected.fetched[1:], strict=True):
        np.testing.assert_array_equal(a, b)
    # The loss adds up elements in the order in which they lie in memory.
    np.testing.assert_allclose(found.fetched[0], expected.fetched[0], rtol=1e-12)
    for (_, a), (_, b) in zip(found.commits, expected.commits, strict=True):
        np.testing.assert_array_equal(a, b)


def test_random_programs_are_rolled():
    programs = [RecordedLoops(seed) for seed in range(12)]
    made = [roll(p.graph, [y.value for y in p.fetches]) for p in programs]
    assert sum(scan_count(graph) > 0 for graph in made) >= 9
    assert sum(map(len, made)) < sum(len(p.graph) for p in programs) / 2


@pytest.mark.parametrize("seed", range(100, 106))
def test_random_programs_keep_their_gradients_compiled_too(seed):
    program = RecordedLoops(seed, most_trips=12)
    results, feeds = [y.value for y in program.fetches], [x.value for x in program.feeds]
    wanted = [x.value for x in program.inputs]
    made = roll(program.graph, results)
    arrays = list(program.feeds.values())
    expected = run(
        program.graph, with_gradients(program.graph, results, wanted), feeds, arrays
    ).fetched
    fetches = with_gradients(made, list(made.outputs), wanted)
    found = run(made, fetches, feeds, arrays).fetched
    machine = compiled(Program(made, fetches, feeds), arrays)
    for a, b, c in zip(expected, found, machine, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(c, a, rtol=1e-8, atol=1e-9)


# -- size ------------------------------------------------------------------------------------------


def test_a_loop_of_thousands_of_trips():
    trips = 2000

    def fn(x, h):
        outs = []
        for t in range(trips):
            h = wf.tanh(x[t] + h * 0.5 - 0.1)
            outs.append(h)
        return wf.stack(outs), sum(outs)

    graph, results, _ = recorded(fn, data(trips, 3), data(3))
    made = roll(graph, results)
    assert len(graph) > 10_000
    assert len(scans(made)) == 2
    assert len(made) < 20


def test_the_result_is_a_graph_with_the_same_inputs():
    graph, results, feeds = recorded(lambda x, h: steps(x, h)[-1], data(T, 3), data(3))
    made = roll(graph, results)
    assert isinstance(made, Graph)
    assert made.inputs == feeds
    assert made.aliases[results[0]] is made.outputs[0]
