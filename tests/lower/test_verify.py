"""Sound programs pass; each of many mutated ones is refused, with the kernel to blame."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import weft as wf
from tests.lower.mutations import MUTATIONS, broken
from tests.programs.loops import LoopProgram
from tests.programs.mixed import MixedProgram
from tests.programs.smooth import SmoothProgram
from tests.threads import num_threads
from weft.compiler.stages import plan_program
from weft.core.dim import unknown_size
from weft.core.dtype import float32, int64
from weft.core.scalar.builder import ScalarBuilder
from weft.graph.run import Program
from weft.lower.kernels import (
    GemmKernel,
    LoopKernel,
    Operand,
    Output,
    RowKernel,
    TogetherKernel,
    walk,
)
from weft.lower.program import KernelProgram
from weft.lower.schedule import Region
from weft.lower.storage import Buffer, View, buffers_behind, contiguous, window
from weft.lower.verify import VerificationError, verify

COUNT = 13  # programs for each mutation: more than a thousand in all


def planned(graph, fetches, feeds, targets=()):
    """Return the program that a graph becomes, planned for this machine."""
    values = [x.value for x in feeds]
    program = Program(graph, [y.value for y in fetches], values, [y.value for y in targets])
    return plan_program(program, {x.value: x.shape for x in feeds})


def training():
    """Return a step with products, prologues, row sums, scratch memory, indices, and states."""
    with wf.Graph() as graph:
        layers = [wf.nn.Linear(300, 520), wf.nn.Linear(520, 512), wf.nn.Linear(512, 10)]
        x, y = wf.placeholder((520, 300), wf.float32), wf.placeholder((520,), wf.int64)
        h = wf.relu(layers[1](wf.tanh(layers[0](wf.relu(x)))))
        loss = wf.nn.functional.cross_entropy(layers[2](h), y)
        parameters = [p for layer in layers for p in layer.parameters()]
        update = wf.optim.Adam(parameters, lr=1e-3).minimize(loss)
    return planned(graph, [loss], [x, y], update.symbols)


def computed_operands():
    """Return a product whose operands are computed where they are packed."""
    with wf.Graph() as graph:
        x, w = wf.placeholder((64, 96), wf.float32), wf.placeholder((96, 64), wf.float32)
        y = wf.relu(x * 2.0) @ w
    return planned(graph, [y], [x, w])


def images():
    """Return convolutions with their gradients: windows, padding, sums over images."""
    with wf.Graph() as graph:
        x = wf.placeholder((3, 4, 9, 9), wf.float32)
        w = wf.placeholder((6, 4, 3, 3), wf.float32)
        y = wf.nn.functional.conv2d(x, w, stride=2, padding=1)
        slopes = wf.gradients((y * y).sum(), [x, w])
    return planned(graph, slopes, [x, w])


def places():
    """Return scatters, scans, sorting by the host, and reductions over columns."""
    with wf.Graph() as graph:
        x, i = wf.placeholder((5, 40), wf.float32), wf.placeholder((7,), wf.int64)
        taken = wf.take(x, i, axis=0)
        slope = wf.gradients((taken * taken).sum(), x)
        made = [slope, wf.cumsum(x, 1), wf.sort(x, axis=1), (x * 2.0).sum(axis=0), x[::2] + 1.0]
    return planned(graph, made, [x, i])


def steps():
    """Return a loop with a test, in which a branch is taken, and scans, one of which may stop."""
    with wf.Graph() as graph:
        x, xs = wf.placeholder((4,), wf.float32), wf.placeholder((6, 4), wf.float32)

        def body(state):
            n, c = state
            return n + 1, wf.cond(c.sum() > 0, lambda: c * 0.5, lambda: c + 1.0)

        _, last = wf.while_loop(lambda state: state[0] < 5, body, (wf.tensor(0), x))
        carry, rows = wf.scan(lambda c, row: (c * row, c + row), x, xs)
        stopped, _ = wf.scan(lambda c, row: (c + row, ()), x, xs, until=lambda c, y: c.sum() > 9)
    return planned(graph, [last, carry, rows, stopped], [x, xs])


def towers():
    """Return two recurrent nets on one input, which two threads run at the same time."""
    with wf.Graph() as graph:
        x = wf.placeholder((32, 4, 32), wf.float32)
        nets = [wf.nn.LSTM(32, 32) for _ in range(2)]
        y = sum(net(x)[0].sum() for net in nets)
    with num_threads(2):
        return planned(graph, [y], [x])


def random_programs():
    for seed in range(3):
        for made in (MixedProgram(seed, 10), SmoothProgram(seed, "float32", 20), LoopProgram(seed)):
            yield planned(made.graph, made.fetches, list(made.feeds))
        made = MixedProgram(seed + 50, 8, states=True)
        yield planned(made.graph, made.fetches, list(made.feeds), made.updates)


@pytest.fixture(scope="module")
def sound():
    return [
        *(training(), computed_operands(), images(), places(), steps(), towers()),
        *random_programs(),
    ]


def test_sound_programs_pass(sound):
    for made in sound:
        verify(made.program, made.sources)
    kinds = {kernel.kind for made in sound for kernel in walk(made.program.kernels)}
    assert kinds == {
        *("row", "column", "scatter", "scan", "gemm", "library", "loop", "branch", "together")
    }
    products = [k for made in sound for k in made.program.kernels if isinstance(k, GemmKernel)]
    assert any(k.scratch is not None for k in products)
    assert any(k.x_from is not None for k in products)
    assert any(k.windows is not None for k in products)
    assert any(k.row_sums for k in products)


def test_there_are_a_thousand_mutations():
    assert COUNT * len(MUTATIONS) > 1000


@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_mutated_programs_are_refused(sound, name):
    seeds = np.random.default_rng(len(name)).permutation(400 * len(sound))
    refused = 0
    for seed in seeds:
        made = sound[seed % len(sound)]
        found = broken(made.program, name, seed)
        if found is None:
            continue
        program, blamed = found
        with pytest.raises(VerificationError) as caught:
            verify(program, made.sources)
        message = str(caught.value)
        assert re.match(r"kernel \d+ \([a-z]+ .*\): ", message), message
        assert blamed is None or f"({blamed.kind} {blamed.name})" in message
        refused += 1
        if refused == COUNT:
            return
    assert refused == COUNT, "too few programs have what this breaks"


def test_memory_must_lie_in_the_arena_and_apart(sound):
    program = sound[0].program
    memory = program.memory
    offsets = memory.in_arena()

    def refuse(message, places, **changes):
        wrong = replace(memory, places=places, **changes)
        with pytest.raises(VerificationError, match=rf"kernel \d+ \(.*\): .*{message}"):
            verify(replace(program, memory=wrong))

    refuse("outside of", memory.places, arena_bytes=memory.arena_bytes - 64)
    first = {b: replace(memory.places[b], offset=0) for b in offsets}
    refuse("same memory at the same time", {**memory.places, **first})
    largest = max(offsets, key=lambda b: b.nbytes)
    refuse("has no place", {b: p for b, p in memory.places.items() if b is not largest})


def test_kernels_are_called_once_and_those_of_a_region_apart(sound):
    program = sound[0].program
    schedule = program.schedule
    (stretch,) = schedule.stretches

    def refuse(message, *regions):
        wrong = replace(schedule, stretches=(regions,))
        with pytest.raises(VerificationError, match=rf"kernel \d+ \(.*\): .*{message}"):
            verify(replace(program, schedule=wrong))

    refuse("is never called", *stretch[1:])
    refuse("called twice", *stretch, stretch[0])
    together = Region(tuple(piece for region in stretch for piece in region.pieces), parallel=True)
    refuse("in memory, at the same time", together)
    first, *others = stretch
    piece, *rest = first.pieces
    idle = replace(first, pieces=(replace(piece, chunks=0), *rest))
    refuse("units of work in 0 chunks", idle, *others)
    elsewhere = replace(first, pieces=(replace(piece, views=piece.views[::-1]), *rest))
    refuse("other memory than it takes", elsewhere, *others)


def test_chains_have_memory_apart():
    program = towers().program
    memory = program.memory
    (together,) = [k for k in program.kernels if isinstance(k, TogetherKernel)]
    own = [
        {b for kernel in walk(chain) for v in kernel.views for b in buffers_behind(v.buffer)}
        for chain in together.chains
    ]
    mine, theirs = ([b for b in chain if b in memory.in_arena()][:4] for chain in own[:2])
    for one in mine:
        for other in theirs:
            places = {**memory.places, one: memory.places[other]}
            with pytest.raises(VerificationError, match=r"same memory at the same|outside of"):
                verify(replace(program, memory=replace(memory, places=places), schedule=None))
    places = {**memory.places, **{b: replace(memory.places[b], offset=0) for b in (*mine, *theirs)}}
    with pytest.raises(VerificationError, match="same time"):
        verify(replace(program, memory=replace(memory, places=places)))


# -- unknown sizes ---------------------------------------------------------------------------------


def with_unknown_sizes(rows=0, columns=0, offset=0):
    """Return a program of n x m elements that are doubled, and read with a shift."""
    n, m = unknown_size("n"), unknown_size("m")
    x = Buffer("feed", (n, m), float32, "x", 0, 0)
    y = Buffer("arena", (n, m), float32, "y", -1, 1)
    value = ScalarBuilder().load(0, float32) * 2.0
    view = replace(contiguous(x, (n, m)), offset=offset)
    operands = (Operand(view, (m, 1)), Operand(contiguous(y, (n, m)), (m, 1)))
    kernel = RowKernel("double", (n + rows, m + columns), operands, (Output(1, value),))
    return KernelProgram((kernel,), (x, y), 1, (), (contiguous(y, (n, m)),), ())


def test_sizes_may_be_unknown():
    program = with_unknown_sizes()
    verify(program)
    assert "row double [n x m]: %1 = %0 * 2.0" in str(program)
    assert "float32[n, m] %0 x" in str(program)


@pytest.mark.parametrize("wrong", [{"columns": 1}, {"offset": 1}, {"offset": -1}])
def test_what_is_surely_wrong_with_unknown_sizes_is_refused(wrong):
    with pytest.raises(VerificationError, match=r"kernel 0 \(row double\): operand"):
        verify(with_unknown_sizes(**wrong))


def test_windows_of_unknown_length():
    """Rows of n x 3 elements, in a loop of n steps."""
    n = unknown_size("n")
    rows = Buffer("feed", (n, 3), float32, "rows", 0, 0)
    words = ((1, "index"), (2, "half"))
    index, half = (Buffer("arena", (), int64, name, -1, number) for number, name in words)
    row = window(View(rows, (3,), (1,)), index, 3)
    moving = replace(row.buffer, number=3)
    out = Buffer("arena", (3,), float32, "out", -1, 4)
    operands = (Operand(View(moving, (3,), (1,)), (1,)), Operand(contiguous(out, (3,)), (1,)))
    body = RowKernel("copy", (3,), operands, (Output(1, ScalarBuilder().load(0, float32)),))
    buffers = (rows, index, half, moving, out)

    def looped(length):
        loop = LoopKernel("loop", index, half, length, False, (body,))
        return KernelProgram((loop,), buffers, 1, (), (), ())

    verify(looped(n))
    assert "%0 + 0 + %1 * 3" in str(looped(n))
    with pytest.raises(VerificationError, match=r"kernel 1 \(row copy\): operand 0 reaches"):
        verify(looped(n + 1))
