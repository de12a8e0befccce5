"""Kill writers of checkpoints: a good one must always be found, and nothing acknowledged lost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


def run(mode: str, directory: Path, count: int) -> str:
    command = [sys.executable, "-m", "tests.io.crashing", mode, str(directory), str(count)]
    # A process with threads should not fork.
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_killed_at_random_moments(tmp_path: Path) -> None:
    assert "50 kills" in run("kill", tmp_path, 50)


@pytest.mark.long
def test_killed_a_thousand_times(tmp_path: Path) -> None:
    assert "1000 kills" in run("kill", tmp_path, 1000)


@pytest.mark.parametrize("step", [5, 4], ids=["new", "replaced"])
def test_crashed_at_every_system_call(tmp_path: Path, step: int) -> None:
    assert "crashes" in run("everywhere", tmp_path, step)
