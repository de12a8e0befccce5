"""Operations on numbers are left to Python where a program could give something else."""

import numpy as np
import pytest

import weft as wf
from weft.capture.number_arithmetic import MOST, SMALL, limit_of


def test_integers_that_are_fed_have_limits():
    assert limit_of(3) == limit_of(-(2**31)) == SMALL
    assert limit_of(2**40) == MOST


@pytest.mark.parametrize("numbers", [(1, 2, 3), (2**40, 2**41, 2**61), (1.5, 2.5, -0.5)])
def test_sums_and_products_are_those_of_python(numbers):
    @wf.jit
    def step(x, n):
        return x * n, n * n, n + n, n - 1, n // 2, n % 7

    for n in numbers:
        assert step(wf.ones(()), n)[1:] == (n * n, n + n, n - 1, n // 2, n % 7)


def test_layers_and_optimizers_know_what_they_divide_by():
    norm = wf.nn.BatchNorm1d(2, momentum=None)

    @wf.jit
    def step(x):
        return norm(x)

    for seed in range(3):
        step(wf.tensor(np.random.default_rng(seed).standard_normal((4, 2)).astype(np.float32)))
    assert step.stats()["recordings"] == 1
    (paths,) = step._traces.values()
    assert not paths[0].looks
