"""Random programs with loops, recursion and branches of each example's own, run batched."""

from __future__ import annotations

import pytest

import weft as wf
from tests.dynamic.test_models import assert_equal, results_and_gradients
from tests.programs.per_example import PerExample, examples

COUNT, LONG = 40, 1000


def check(seed, dtype="float64"):
    program = PerExample(seed, dtype)
    given = examples(seed, 8, dtype)
    together = wf.batched(program)
    for batch in (given, given[::-2], [*given[:3], *examples(seed + 1, 2, dtype)], given, given):
        expected = results_and_gradients(program, [program(example) for example in batch])
        assert_equal(results_and_gradients(program, together(batch)), expected, dtype)


@pytest.mark.parametrize("seed", range(COUNT))
def test_batched_equals_one_by_one(seed):
    check(seed)


@pytest.mark.long
@pytest.mark.parametrize("block", range(COUNT, LONG, 40))
def test_many_programs(block):
    for seed in range(block, block + 40):
        check(seed, "float32" if seed % 4 == 0 else "float64")
