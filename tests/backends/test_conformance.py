"""Back ends by name: every device computes what the reference back end means.

All devices that are here are held to it; `WEFT_BACKEND=opencl:0` picks one, and can name any back
end. An ordinary run takes samples of the registry and a few random programs; `--long` takes all.
"""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.backends.conformance import (
    BATCH,
    Batch,
    DerivativeBatch,
    assert_as_reference,
    each_device,
    to_array,
)
from tests.backends.programs import (
    CASES,
    GRAPHS,
    SIGNED,
    assert_control_flow,
    assert_mixed,
    assert_same,
    assert_smooth,
)
from tests.compile.agreement import PROGRAM, assert_agree
from tests.ops import conformance as c
from tests.programs.loops import LoopProgram
from tests.programs.mixed import MixedProgram
from weft.backends.c_source.kernels import has_code
from weft.compiler.stages import plan_program
from weft.graph.run import Program
from weft.lower.kernels import CallKernel, walk
from weft.lower.kinds import DTYPES
from weft.plan.device import Device

EVERY = 150  # which samples an ordinary run takes
BATCHES = [CASES[i : i + BATCH] for i in range(0, len(CASES), BATCH)]
# What has no kernels on devices. LAPACK, and what stands on it:
LAPACK = frozenset(
    (
        *("cholesky", "cholesky_info", "cofactor", "det", "eigh", "eigvalsh", "expm", "geqrf"),
        *("inv", "ldl_factor", "ldl_solve", "lstsq_solution", "lu_factor", "matrix_rank", "pinv"),
        *("pivots_permutation", "qr", "slogdet", "solve", "svd", "svdvals", "triangular_solve"),
    )
)
# Sums whose length depends on values, and draws by rejection:
HOST = frozenset(
    (
        *("binomial_draw", "poisson_draw", "random_gamma", "von_mises_draw"),
        *("gamma_draw_slope", "igamma", "igamma_slope", "igammac", "orthogonal_polynomial"),
    )
)
# Results whose size depends on values, of which programs have none; they run node by node.
SIZED = frozenset(("bincount", "distinct", "nonzero", "runs"))
# What has none for a kind of operands: powers of integers, which may raise; masks with as many
# values as they choose; draws without replacement.
SOMETIMES = frozenset(("getitem_arrays_adjoint", "pow", "random_categorical", "setitem_arrays"))


@each_device()
@pytest.mark.parametrize("convert", [np.copy, c.to_single], ids=["as drawn", "float32"])
def test_samples_of_the_registry(device, convert):
    assert_as_reference(Batch(CASES[::EVERY], convert), device)


@pytest.mark.long
@each_device()
@pytest.mark.parametrize("convert", [np.copy, c.to_single], ids=["as drawn", "float32"])
@pytest.mark.parametrize("cases", BATCHES, ids=lambda cases: cases[0].id)
def test_the_registry(device, cases, convert):
    assert_as_reference(Batch(cases, convert), device)


@each_device()
def test_derivatives_of_samples_of_the_registry(device):
    assert_as_reference(DerivativeBatch(CASES[EVERY // 2 :: EVERY]), device)


@pytest.mark.long
@each_device()
@pytest.mark.parametrize("cases", BATCHES, ids=lambda cases: cases[0].id)
def test_derivatives_of_the_registry(device, cases):
    assert_as_reference(DerivativeBatch(cases), device)


@each_device()
def test_control_flow_and_its_derivatives(device):
    for number in range(0, len(SIGNED), 12):
        assert_control_flow(device, number)


@pytest.mark.long
@each_device()
@pytest.mark.parametrize("number", range(len(SIGNED)), ids=lambda n: SIGNED[n][0].__name__)
def test_all_control_flow_and_its_derivatives(device, number):
    assert_control_flow(device, number)


@each_device()
@pytest.mark.parametrize("seed", range(2))
def test_random_loops(device, seed):
    program = LoopProgram(seed)
    assert_same(device, program.graph, program.fetches, program.feeds)


@each_device()
@pytest.mark.parametrize("seed", range(4))
def test_random_graphs(device, seed):
    assert_mixed(device, seed, 4 + seed)


@pytest.mark.long
@each_device()
@pytest.mark.parametrize("first", range(0, GRAPHS, 25))
def test_many_random_graphs(device, first):
    for seed in range(first, first + 25):
        assert_mixed(device, seed)


@each_device()
@pytest.mark.parametrize("seed", range(2))
def test_random_graphs_to_second_order(device, seed):
    assert_smooth(device, seed)


@pytest.mark.long
@each_device()
@pytest.mark.parametrize("first", range(0, GRAPHS, 25))
def test_many_random_graphs_to_second_order(device, first):
    for seed in range(first, first + 25):
        assert_smooth(device, seed)


@each_device()
@pytest.mark.parametrize("seed", range(2))
def test_states_change_alike(device, seed):
    results = []
    for where in ("reference", device):
        program = MixedProgram(seed, 5 + seed, states=True)
        fetches = [program.fetches, program.updates]
        executable = wf.Session(program.graph, device=where).executable(fetches, program.feeds)
        arrays = list(program.feeds.values())
        fetched = [executable.run(arrays)[: len(program.fetched)] for _ in range(2)]
        results.append((fetched, [state.numpy() for state in program.states]))
    (expected, wanted), (found, states) = results
    for kept, *pairs in zip(program.fetched, *expected, *found, strict=True):
        for a, b in zip(pairs[2:], pairs[:2], strict=True):
            assert_agree(to_array(a), b, None if kept.exact else PROGRAM, repr(kept.symbol))
    for a, b in zip(states, wanted, strict=True):
        assert_agree(a, b, None)


def test_what_the_host_runs():
    """Of all operators and functions at most 2 % are the host's, besides LAPACK's."""
    names = {case.id.rpartition("-")[0] for case in CASES}
    assert names >= HOST
    others = len(names - LAPACK - SIZED)
    assert len(HOST) <= 0.02 * others


@pytest.mark.long
@pytest.mark.parametrize("cases", BATCHES, ids=lambda cases: cases[0].id)
def test_the_host_runs_nothing_else(cases):
    """It is a property of programs for devices with memory of their own, not of one device."""
    batch = Batch(cases, np.copy)
    fetches = [y.value for sample in batch.samples for y in sample.fetches]
    program = Program(batch.graph, fetches, [x.value for x in batch.feeds])
    device = Device("somewhere", 1, "", own_memory=True)
    planned = plan_program(program, {x.value: x.shape for x in batch.feeds}, device)
    called = {k.op.name for k in calls_of(planned) if is_usual(k) and not has_code(k)}
    assert called <= LAPACK | HOST | SIZED | SOMETIMES


def calls_of(executable):
    """Return the calls of operators by the host; none if the whole program is the host's."""
    kernels = () if executable is None else walk(executable.program.kernels)
    return [kernel for kernel in kernels if isinstance(kernel, CallKernel)]


def is_usual(call):
    """Tell whether a call has elements, dtypes with kernels and sizes that are known before."""
    views = call.views
    known = not call.is_dynamic and call.op.kind not in ("control", "communication")
    return known and not any(0 in v.shape or v.dtype not in DTYPES for v in views)
