"""One attempt, by what its ranks tell: who may be lost, and what follows."""

from __future__ import annotations

import pytest

from weft.distributed.launcher import messages
from weft.distributed.launcher.job import RankJob
from weft.distributed.launcher.watcher import Notice, RankState


@pytest.fixture
def job(tmp_path):
    said = []
    made = RankJob(tmp_path, 3, survive=True, silence=10.0, everywhere=False, note=said.append)
    made.said = said
    yield made
    made.watcher.close()
    made._terminal.close()
    made._selector.close()


def lose(job, rank):
    job.watcher.states[rank].lost = True
    job._react(Notice("lost", rank, f"rank {rank} was lost"))


def ranks(job, *joined):
    for rank, has_joined in enumerate(joined):
        job.watcher.states[rank] = RankState(rank, "host", 1, 0.0, joined=has_joined)


def test_others_go_on_once_all_are_connected(job):
    ranks(job, True, True, True)
    lose(job, 1)
    lose(job, 2)
    assert not job._ending.early
    assert job._end_by is None
    assert job.said[0] == "rank 1 was lost; the others go on"


@pytest.mark.parametrize("joined", [(True, False, False), (True, True), (False,)])
def test_nobody_outlives_a_rank_that_mpi_waits_for(job, joined):
    ranks(job, *joined)
    lose(job, 0)
    assert job._ending.early
    assert job._end_by is not None
    assert job.said == ["rank 0 was lost, before all ranks were connected: all end"]
    job._react(Notice("error", 1, "a consequence"))
    assert job._ending.error is None


@pytest.mark.parametrize("status", [0, 1])
def test_a_loss_in_the_start_is_no_success_although_the_others_ended(job, status):
    """They end by an error, which is a consequence, and must be started again."""
    ranks(job, True, False, False)
    lose(job, 0)
    for rank in (1, 2):
        job.watcher.hear(rank, {"kind": messages.ERROR, "text": "MPI could not begin"})
    for notice in job.watcher.take():
        job._react(notice)
    ending = job._conclude(status)
    assert ending.status == 1
    assert ending.restartable


def test_who_finishes_without_those_who_were_lost_is_a_success(job):
    ranks(job, True, True, True)
    lose(job, 0)
    for rank in (1, 2):
        assert not job._anyone_finished()
        job.watcher.hear(rank, {"kind": messages.BYE, "status": 0})
    assert job._conclude(137).status == 0


def test_who_is_killed_after_a_goodbye_is_not_waited_for(job):
    """Others are through too, and would wait inside MPI's end for ever."""
    ranks(job, True, True, True)
    for rank in range(3):
        job.watcher.hear(rank, {"kind": messages.BYE, "status": 0})
    job._turn()
    assert job._end_by is None
    job.watcher.states[2].gone = True
    job._turn()
    assert job._end_by is not None
    assert job.said == []
    assert job._conclude(137).status == 0
