"""Programs that were planned for the CPU, run by NumPy, and graphs that meet special values.

What `device="reference"` runs is held against machine code and eager mode in tests/compile.
"""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.compile.agreement import PROGRAM, assert_agree, run_reference
from tests.programs.mixed import MixedProgram
from tests.programs.seeds import seeds
from tests.programs.strategies import build_program
from weft.backends import backend_named
from weft.backends.execution import Execution
from weft.graph.symbol import make_symbol
from weft.lower.kernels import GemmKernel


def run_planned(graph, fetches, feeds):
    """Return the results of the program that machine code was made from, and that program."""
    executable = wf.Session(graph).executable(fetches, feeds)
    program, sources = executable.analysis.program, executable.analysis.sources
    arrays = [np.asarray(array, symbol.dtype) for symbol, array in feeds.items()]
    return Execution(backend_named("reference"), program, sources).run(arrays), program


@pytest.mark.parametrize("seed", seeds(16, 30))
def test_mixed_graphs(seed):
    program = MixedProgram(seed, 1 + seed % 16)
    expected = wf.Session(program.graph, compiled=False).run(program.fetches, program.feeds)
    found, _ = run_planned(program.graph, program.fetches, program.feeds)
    for kept, a, b in zip(program.fetched, found, expected, strict=True):
        assert_agree(a, b, None if kept.exact else PROGRAM)


def test_prologues_and_epilogues():
    rng = np.random.default_rng(0)
    with wf.Graph() as graph:
        x = wf.placeholder((64, 256), wf.float32)
        w = wf.placeholder((256, 128), wf.float32)
        y = wf.relu(wf.relu(x) @ (w * 2) + 1)
        total = y.sum(axis=0)
    feeds = {s: rng.normal(size=s.shape).astype(np.float32) for s in (x, w)}
    found, program = run_planned(graph, [y, total], feeds)
    (product,) = (k for k in program.kernels if isinstance(k, GemmKernel))
    assert product.outputs
    assert product.x_from is not None or product.y_from is not None
    expected = wf.Session(graph, compiled=False).run([y, total], feeds)
    for a, b in zip(found, expected, strict=True):
        assert_agree(a, b, PROGRAM)


SPECIAL = {"float16": 4e-3, "float32": 1e-5, "float64": 1e-12}


@pytest.mark.parametrize("seed", seeds(16, 30))
def test_graphs_with_special_values(seed):
    """Unknown sizes, states, random draws, control flow, NaN and infinities: as in eager mode."""
    rng = np.random.default_rng(seed)
    steps = [tuple(map(int, rng.integers(0, 10_000, 5))) for _ in range(35)]
    program = build_program(steps, seed)
    expected = program.run().fetched
    fetches = [make_symbol(program.graph, value) for value in program.outputs]
    feeds = {make_symbol(program.graph, value): array for value, array in program.feeds}
    wf.manual_seed(7)
    for a, b in zip(run_reference(program.graph, fetches, feeds), expected, strict=True):
        assert_agree(a, b, SPECIAL)
