"""Runs that are killed at random moments and resumed end in the weights of an undisturbed run."""

import subprocess
import sys
from pathlib import Path

import pytest

LAB = Path(__file__).with_name("kill_lab.py")


def run_lab(runs, seed):
    result = subprocess.run(
        [sys.executable, str(LAB), str(runs), str(seed)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{runs} runs" in result.stdout
    assert "all weights identical" in result.stdout


def test_killed_runs_end_in_the_same_weights():
    run_lab(8, seed=0)


@pytest.mark.long
def test_a_thousand_killed_runs_end_in_the_same_weights():
    run_lab(1000, seed=1)
