"""The order of kernels: whatever one reads in the arena, others have written before."""

import numpy as np
import pytest

import weft as wf
from tests.programs.smooth import SmoothProgram
from weft.core.scalar.builder import ScalarBuilder
from weft.lower.kernels import (
    GemmKernel,
    Operand,
    Output,
    RowKernel,
    buffers_of,
    written_buffers,
)
from weft.lower.storage import Buffer, contiguous, window

SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_values_are_made_before_they_are_read(seed):
    program = SmoothProgram(seed, np.float32)
    made = wf.Session(program.graph).executable(program.fetches, program.feeds)
    assert_made_in_time(made.program.kernels)


def test_training_steps_are_in_order():
    model = wf.nn.Sequential(wf.nn.Linear(20, 30), wf.nn.Tanh(), wf.nn.Linear(30, 5))
    with wf.Graph() as graph:
        x = wf.placeholder((16, 20), wf.float32)
        y = wf.placeholder((16,), wf.int64)
        loss = wf.nn.functional.cross_entropy(model(x), y)
        step = wf.optim.Adam(model.parameters()).minimize(loss)
    feeds = {x: np.ones((16, 20), np.float32), y: np.zeros(16, np.int64)}
    assert_made_in_time(wf.Session(graph).executable([loss, step], feeds).program.kernels)


def test_what_is_written_to_a_window_is_written_to_the_buffer_behind_it():
    dtype = np.dtype(np.float32)
    rows, word = Buffer("arena", (4, 8), dtype, "rows"), Buffer("arena", (), np.dtype(int), "step")
    row = window(contiguous(rows, (8,)), word, 8)
    given = contiguous(Buffer("arena", (8,), dtype, "given"), (8,))
    loops = [Operand(view, (1,)) for view in (given, row)]
    kernel = RowKernel("copy", (8,), loops, [Output(1, ScalarBuilder().load(0, dtype))])
    assert written_buffers(kernel) == {row.buffer, rows}
    assert word in buffers_of(kernel)


def assert_made_in_time(kernels):
    made = set()
    for kernel in kernels:
        written = written_buffers(kernel)
        if isinstance(kernel, (RowKernel, GemmKernel)):  # of others it is not told apart
            read = [b for b in buffers_of(kernel) if b.kind == "arena" and b not in written]
            assert made.issuperset(read), kernel.name
        made |= written
