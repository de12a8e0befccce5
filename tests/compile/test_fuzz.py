"""Random calls of operators: compiled = reference = eager = NumPy, of all dtypes and layouts.

Several calls make one program, so that kernels of many kinds lie beside each other. Each runs on
one and on two threads, to the same bits. `--long` runs 20,000 calls; where WEFT_TARGET names
another target, for that one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft as wf
from tests.compile.agreement import run_reference
from tests.programs.calls import CLOSE, EQUAL, EXACT, Call, draw_call
from tests.programs.operands import Draw, is_float
from tests.threads import num_threads

CALLS = 8  # in one program
PROGRAMS = 40
LONG_PROGRAMS = 2_500

# Units in the last place: of each element, or of the largest one involved.
CLOSE_UNITS = {"float16": 1.01, "bfloat16": 1.01, "float32": 24, "float64": 24}
SUMMED_UNITS = {"float16": 1.01, "bfloat16": 1.01, "float32": 16, "float64": 16}
LAST_PLACE = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-23, "float64": 2**-52}
SMALLEST = {"float16": 2**-24, "bfloat16": 2**-133, "float32": 2**-149, "float64": 2**-1074}


def calls_of(seed: int) -> list[Call]:
    draw = Draw(seed)
    return [draw_call(draw) for _ in range(CALLS)]


def eager(call: Call) -> np.ndarray:
    return np.asarray(call.of_tensors(*map(wf.from_numpy, call.operands)).numpy())


def program_of(calls: list[Call]) -> tuple[wf.Graph, list[Any], dict[Any, np.ndarray]]:
    """Return one program with all calls, its fetches and its feeds."""
    feeds, fetches = {}, []
    with wf.Graph() as graph:
        for call in calls:
            symbols = [wf.placeholder(x.shape, x.dtype) for x in call.operands]
            feeds.update(zip(symbols, call.operands, strict=True))
            fetches.append(call.of_tensors(*symbols))
    return graph, fetches, feeds


def compiled(
    calls: list[Call], graph: wf.Graph, fetches: list[Any], feeds: dict[Any, np.ndarray]
) -> list[np.ndarray]:
    """Return the results of a program, which two threads give to the bit."""
    found = []
    for threads in (1, 2):
        with num_threads(threads):
            found.append(wf.Session(graph, compiled=True).run(fetches, feeds))
    for call, one, two in zip(calls, *found, strict=True):
        assert one.tobytes() == two.tobytes(), f"{call.name}: threads"
    return found[0]


def assert_right(call: Call, found: np.ndarray, how: str) -> None:
    """Hold a result against NumPy's."""
    expected = call.expected()
    what = f"{how}: {call.name} of {[(x.shape, x.dtype.name, x.strides) for x in call.operands]}"
    assert found.shape == expected.shape, what
    if call.agreement in (EXACT, EQUAL) or not is_float(found.dtype):
        with np.errstate(over="ignore"):
            wanted = expected.astype(found.dtype)
        assert_same(found, wanted, what, signs=call.agreement == EXACT)
        return
    name = found.dtype.name
    limit = LAST_PLACE[name] * bound(call, expected, name) + 2 * SMALLEST[name]
    error = np.abs(found.astype(np.float64) - expected)
    worst = np.max(error / limit, initial=0)
    assert not np.isnan(worst), what
    assert worst <= 1, f"{what}: {worst} of what is allowed"


def assert_same(found: np.ndarray, expected: np.ndarray, what: str, signs: bool) -> None:
    """Hold two arrays to the bit against each other, but for the bits of NaN."""
    if is_float(found.dtype):
        found, expected = found.astype(np.float64), expected.astype(np.float64)
    if is_float(found.dtype) and signs:
        zero = expected == 0
        negative = np.signbit(found[zero]), np.signbit(expected[zero])
        np.testing.assert_array_equal(*negative, err_msg=f"{what}: signs of zeros")
    np.testing.assert_array_equal(found, expected, err_msg=what)


def bound(call: Call, expected: np.ndarray, name: str) -> np.ndarray:
    if call.agreement == CLOSE:
        return CLOSE_UNITS[name] * np.abs(expected)
    sizes = [np.abs(x.astype(np.float64)).max(initial=1) for x in (*call.operands, expected)]
    return SUMMED_UNITS[name] * np.full(expected.shape, max(sizes))


def check(seed: int) -> None:
    calls = calls_of(seed)
    program = program_of(calls)
    machines, meant = compiled(calls, *program), run_reference(*program)
    for call, machine, reference in zip(calls, machines, meant, strict=True):
        plain = eager(call)
        assert plain.dtype == machine.dtype, call.name
        assert_right(call, plain, f"seed {seed}, eager")
        assert_right(call, machine, f"seed {seed}, compiled")
        assert_right(call, reference, f"seed {seed}, reference")


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_calls(seed: int) -> None:
    check(seed)


@pytest.mark.long
@pytest.mark.parametrize("block", range(LONG_PROGRAMS // 50))
def test_many_calls(block: int) -> None:
    for seed in range(block * 50, (block + 1) * 50):
        check(1_000 + seed)
