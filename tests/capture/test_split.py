"""Operations whose shapes depend on values: programs before and behind them, one call."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.capture import split
from weft.core.dim import run_time_size
from weft.core.errors import IndexOutOfRange
from weft.core.shape import TensorType

INT64 = np.dtype(np.int64)


def rows(n: int, seed: int = 0) -> wf.Tensor:
    return wf.tensor(np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32))


def test_open_sizes_of_one_operation_are_one_size():
    types = [TensorType((None,), INT64), TensorType((None, 3), INT64), TensorType((2,), INT64)]
    arrays = [np.zeros(5, int), np.zeros((5, 3), int), np.zeros(2, int)]
    made, told = split.split_types(types, arrays, 4)
    size = run_time_size("v4")
    assert [type.shape for type in made] == [(size,), (size, 3), (2,)]
    assert told == dict.fromkeys(size.variables(), 5)


@pytest.mark.parametrize("count", [0, 1])
def test_zero_and_one_are_numbers(count):
    types, told = split.split_types([TensorType((None,), INT64)], [np.zeros(count, int)], 0)
    assert [type.shape for type in types] == [(count,)]
    assert not told


def test_counts_differ_from_call_to_call():
    step = wf.jit(lambda x: x[x > 0].sum())
    for seed in range(8):
        x = rows(6, seed)
        np.testing.assert_allclose(step(x).numpy(), x.numpy()[x.numpy() > 0].sum(), rtol=1e-5)
    assert step.stats()["recordings"] == 1
    assert step.stats()["eager_calls"] == 0


def test_what_is_computed_before_is_passed_on():
    wf.manual_seed(0)
    net = wf.nn.Linear(3, 4)

    @wf.jit
    def step(x):
        out = net(x)
        return out[out > 0].sum() + out.sum()

    step(rows(6))
    assert step.stats()["kernels"].get("gemm") == 1


def test_nothing_is_written_if_the_last_program_fails():
    total, found = wf.zeros(3), wf.zeros(1)

    @wf.jit
    def step(x, i):
        kept = x[x[:, 0] > 0]
        total.add_(kept.sum(0))
        found.add_(1)
        return kept[i]

    for i in (0, 1):
        step(rows(6, i), wf.tensor(0))
    before = total.numpy().copy(), found.numpy().copy()
    with pytest.raises(IndexOutOfRange):
        step(rows(6), wf.tensor(50))
    # As in eager code, which raises it in its place: what came before the error is written.
    assert found.item() == before[1] + 1
    assert step.stats()["recordings"] == 1
