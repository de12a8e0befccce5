"""Checkpoints that processes write together; and parameter servers, in the same start of MPI."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.distributed.processes import run_checks
from weft.distributed.checkpoints import load_checkpoint, save_checkpoint
from weft.io import ArrayPart, CheckpointError


def test_three_processes(tmp_path):
    pytest.importorskip("safetensors")
    run_checks("cluster.py", 3, env={"WEFT_TEST_FOLDER": str(tmp_path)})


def test_one_process_alone(tmp_path):
    state = {"w": wf.arange(5.0), "part": ArrayPart(np.arange(4.0), (2, 2), (0,))}
    save_checkpoint(tmp_path / "a", state, {"step": 1})
    found = load_checkpoint(tmp_path / "a", like={"part": ArrayPart(np.zeros(2), (2, 2), (1,))})
    assert found["part"].tolist() == [1.0, 2.0]
    assert found["w"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_parts_that_do_not_make_a_whole(tmp_path):
    save_checkpoint(tmp_path / "a", {"part": ArrayPart(np.arange(3.0), (2, 2), (0,))})
    with pytest.raises(CheckpointError, match="'part' have 3 elements of 4"):
        load_checkpoint(tmp_path / "a")


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
        load_checkpoint(tmp_path / "none")
