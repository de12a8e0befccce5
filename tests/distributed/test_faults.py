"""Lost ranks: the others form a smaller group, agree on a state and go on."""

from __future__ import annotations

import pytest

from tests.distributed.launcher.test_launch import run
from weft.distributed.faults import LostRankError, is_loss, run_resilient, shrink

SCRIPT = """
import os, signal, sys
import numpy as np
import weft as wf
from weft.distributed.faults import run_resilient

wf.distributed.init()
wf.manual_seed(0)
model = wf.nn.Linear(4, 1)
optimizer = wf.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
rng = np.random.default_rng(0)
x = rng.normal(size=(64, 4)).astype(np.float32)
y = x @ np.array([[1.0], [-2.0], [3.0], [0.5]], np.float32)


def step(i):
    rank, size = wf.distributed.rank(), wf.distributed.size()
    mine = slice(rank * 64 // size, (rank + 1) * 64 // size)
    optimizer.zero_grad()
    ((model(wf.tensor(x[mine])) - wf.tensor(y[mine])) ** 2).mean().backward()
    if i == 5 and size == 2 and rank == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    for p in model.parameters():
        p.grad = wf.distributed.all_reduce(p.grad, "mean")
    optimizer.step()


lost = run_resilient(step, 60, state=[model, optimizer])
error = float(((model(wf.tensor(x)) - wf.tensor(y)) ** 2).mean())
print("lost", lost, "size", wf.distributed.size(), "good", error < 0.05, flush=True)
"""


def test_the_rest_goes_on_with_what_was_reached(tmp_path):
    status, out, said, _ = run(tmp_path, "--survive", "1", script=SCRIPT)
    assert status == 0, said
    assert out == "lost 1 size 1 good True\n"
    assert "rank 1 (process" in said
    assert "the others go on" in said


EARLY = """
import os, signal, time
import weft as wf

rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
if rank == 1 and wf.distributed.restarts() == 0:
    time.sleep(1.0)  # the other one waits in MPI's start
    os.kill(os.getpid(), signal.SIGKILL)
wf.distributed.init()
print("size", wf.distributed.size(), "attempt", wf.distributed.restarts(), flush=True)
"""


@pytest.mark.long
def test_a_rank_that_is_lost_before_mpi_has_begun_makes_all_start_again(tmp_path):
    status, out, said, _ = run(tmp_path, "--survive", "", script=EARLY)
    assert status == 0, said
    assert out == "size 2 attempt 1\n"
    assert "before all ranks were connected: all end" in said
    assert "starting again: nothing was computed yet" in said


def test_alone_there_is_nobody_to_be_lost():
    with pytest.raises(LostRankError, match="alone"):
        shrink()
    assert not is_loss(ValueError("other"))
    caused = RuntimeError("outer")
    caused.__cause__ = LostRankError("inner")
    assert is_loss(caused)


def test_errors_that_are_no_losses_are_raised():
    def fail(i):
        raise ValueError(f"step {i}")

    with pytest.raises(ValueError, match="step 3"):
        run_resilient(fail, 5, state=[], start=3)
