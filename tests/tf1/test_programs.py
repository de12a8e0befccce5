"""Programs of the shape of public tutorials, run as they are by `weft run`."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft.tf1 as tf
from weft.cli import main

PROGRAMS = Path(__file__).parent / "programs"
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.py") if path.stem != "data")
# The rest runs with --long; test_input_programs.py always runs what reads and writes files.
ALWAYS = {"linear_regression", "kmeans", "dynamic_rnn"}


def chosen(name):
    return pytest.param(name, marks=[] if name in ALWAYS else [pytest.mark.long])


@pytest.mark.parametrize("name", [chosen(name) for name in NAMES])
def test_a_tutorials_program_reaches_its_accuracy(name, capsys):
    tf.reset_default_graph()  # a process of its own has another one
    assert main(["run", str(PROGRAMS / f"{name}.py")]) == 0
    assert capsys.readouterr().out


def test_there_are_programs_of_every_shape():
    assert len(NAMES) >= 16
