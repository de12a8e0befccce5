"""Programs of the shape of tutorials on files, TensorBoard, queues and datasets, by `weft run`."""

from argparse import Namespace
from pathlib import Path

import pytest

import weft.tf1 as tf
from weft.cli.run_command import run_script

PROGRAMS = sorted((Path(__file__).parent / "input_programs").glob("*.py"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_runs_unchanged(path, tmp_path, monkeypatch):
    pytest.importorskip("tensorboardX")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    tf.reset_default_graph()  # a process of one's own begins with an empty one
    assert run_script(Namespace(script=str(path), arguments=[], report=False, jit=False)) == 0
