"""Programs of the shape of Chainer's examples, run as they are by `weft run`.

All their steps are compiled: what ran eagerly would warn, and warnings are errors here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.cli import main

PROGRAMS = Path(__file__).parent / "programs"
NAMES = sorted(path.stem for path in PROGRAMS.glob("train_*.py"))
ALWAYS = {"train_mnist", "train_ptb", "train_dqn"}  # the rest runs with --long


def chosen(name):
    return pytest.param(name, marks=[] if name in ALWAYS else [pytest.mark.long])


@pytest.mark.parametrize("name", [chosen(name) for name in NAMES])
def test_a_program_reaches_its_accuracy(name, tmp_path, capsys):
    assert main(["run", str(PROGRAMS / f"{name}.py"), "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out


def test_there_are_programs_of_every_shape():
    assert len(NAMES) >= 12
