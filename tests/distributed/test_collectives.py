"""Collective operations: alone here, and on several processes by tests/distributed/programs."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import weft as wf
from tests.distributed.processes import run_checks
from weft import distributed as dist


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.long)])
def test_on_processes(ranks):
    run_checks("collectives.py", ranks)


def test_alone_everything_is_the_tensor_itself():
    x = wf.tensor([[1.0, 2.0], [3.0, 4.0]])
    for op in ("sum", "mean", "max", "min", "prod", "pairwise"):
        np.testing.assert_array_equal(dist.all_reduce(x, op).numpy(), x.numpy())
    for act in (dist.broadcast, dist.reduce, dist.all_gather, dist.reduce_scatter, dist.all_to_all):
        np.testing.assert_array_equal(act(x).numpy(), x.numpy())
    np.testing.assert_array_equal(dist.start_all_reduce(x).wait().numpy(), x.numpy())
    dist.barrier()


def test_alone_nothing_imports_mpi():
    assert "mpi4py.MPI" not in sys.modules


def test_what_cannot_be_asked_for():
    x = wf.tensor([1.0])
    with pytest.raises(ValueError, match=r"op must be one of.*'average'"):
        dist.all_reduce(x, "average")
    with pytest.raises(TypeError, match=r"x must be a tensor. Received: list"):
        dist.all_gather([1.0])
    with pytest.raises(TypeError, match="group must be made by"):
        dist.broadcast(x, group=3)
    with pytest.raises(ValueError, match=r"between 0 and 0. Received: 1"):
        dist.broadcast(x, source=1)
    with pytest.raises(TypeError, match="truth values"):
        dist.all_reduce(wf.tensor([True]))
