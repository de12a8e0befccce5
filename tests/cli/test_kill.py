"""Runs that are killed at random moments and resumed end in the weights of an undisturbed run."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from weft.io import load

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """\
seed = 1
loss = "cross_entropy"
[data]
batch_size = 8
split = [0.8, 0.2]
[data.source]
type = "moons"
n = 200
[model]
type = "mlp"
hidden = [32]
out_features = 2
dropout = 0.2
[optimizer]
type = "adam"
[schedule]
type = "one_cycle"
max_lr = 0.05
unit = "iteration"
[trainer]
epochs = 3
ema = 0.9
plot = false
tensorboard = false
checkpoint = {every = 3, unit = "iteration", keep_last = 2}
"""
PROGRAM = "import sys; from weft.cli import main; sys.exit(main())"


def start(folder, name):
    command = [sys.executable, "-c", PROGRAM, "train", "run.toml", "--out", name]
    return subprocess.Popen(
        [*command, "--resume", "auto"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def weights(run):
    return {name: x.numpy().tobytes() for name, x in load(run / "model.safetensors").items()}


def run_with_kills(folder, name, moments):
    """Kill a run after each of the given times, then let it finish; return how many it lived."""
    killed = 0
    for seconds in moments:
        process = start(folder, name)
        time.sleep(seconds)
        process.kill()
        process.communicate()
        killed += process.returncode < 0
    process = start(folder, name)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    return killed


def check(folder, runs, seed):
    (folder / "run.toml").write_text(CONFIG)
    begin = time.perf_counter()
    run_with_kills(folder, "whole", [])
    length = time.perf_counter() - begin
    expected = weights(folder / "whole")
    draw = random.Random(seed)
    for i in range(runs):
        moments = [draw.uniform(0.2, 1.0) * length for _ in range(draw.randint(1, 3))]
        run_with_kills(folder, f"run{i}", moments)
        assert weights(folder / f"run{i}") == expected, moments


def test_killed_runs_end_in_the_same_weights(tmp_path):
    check(tmp_path, 2, seed=0)


@pytest.mark.long
def test_killed_runs_end_in_the_same_weights_every_time(tmp_path):
    check(tmp_path, 200, seed=1)
