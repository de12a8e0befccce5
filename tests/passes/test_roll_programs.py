"""Rolling of whole programs: with draws, states and gradients, random ones and long ones."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.programs.recorded_loops import RecordedLoops
from weft.compiler.stages import compile_program
from weft.core.modes import interpret_with
from weft.graph.call import ProgramCall
from weft.graph.control.ops import SCAN
from weft.graph.graph import Graph
from weft.graph.node import subgraphs
from weft.graph.run import Program
from weft.graph.symbol import make_symbol
from weft.graph.verify import verify
from weft.passes import roll

from .helpers import ops
from .rolled import F, T, data, recorded, rolled, run, scans, steps

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
