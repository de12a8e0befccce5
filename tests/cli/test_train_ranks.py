"""`weft train -n`: a configuration in several processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import weft as wf
from weft.cli.main import main

ROOT = Path(__file__).resolve().parent.parent.parent

CONFIG = """
loss = "cross_entropy"
metrics = ["accuracy"]
precision = "float64"
[data]
batch_size = 20
split = [0.8, 0.2]
[data.source]
type = "npz"
path = "data.npz"
[model]
[[model.layers]]
type = "Linear"
out_features = 8
[[model.layers]]
type = "BatchNorm1d"
[[model.layers]]
type = "Linear"
out_features = 3
[optimizer]
type = "adam"
lr = 0.01
[trainer]
epochs = 2
plot = false
tensorboard = false
"""


@pytest.fixture
def run(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 4))
    np.savez(tmp_path / "data.npz", x=x, y=(x @ rng.normal(size=(4, 3))).argmax(1))
    (tmp_path / "run.toml").write_text(CONFIG)

    def start(*arguments):
        command = [sys.executable, "-m", "weft.cli", "train", "run.toml", *arguments]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=170, check=False
        )

    return start


@pytest.mark.long
def test_two_ranks_give_what_one_process_gives(run, tmp_path):
    pytest.importorskip("mpi4py")
    done = run("-n", "2", "--threads", "1", "--out", "two")
    assert done.returncode == 0, done.stderr
    alone = run("--out", "one")
    assert alone.returncode == 0, alone.stderr
    one, two = (wf.load(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    for name in one:
        np.testing.assert_allclose(two[name].numpy(), one[name].numpy(), rtol=0, atol=1e-10)
    logs = [(tmp_path / name / "log.jsonl").read_text().splitlines() for name in ("one", "two")]
    for a, b in zip(*(map(json.loads, lines) for lines in logs), strict=True):
        for key in ("train/loss", "train/accuracy", "val/loss", "val/accuracy"):
            assert a[key] == pytest.approx(b[key], abs=1e-9), key
    assert (tmp_path / "two" / "logs" / "rank-1.log").exists()
    parts = list((tmp_path / "two" / "checkpoints").glob("*/part-*-of-00002.safetensors"))
    assert len(parts) % 2 == 0
    assert parts


def test_options_for_ranks_need_their_number(tmp_path, capsys):
    (tmp_path / "run.toml").write_text(CONFIG)
    assert main(["train", str(tmp_path / "run.toml"), "--hosts", "a,b"]) == 2
    assert "--hosts is for many processes: say how many with -n" in capsys.readouterr().err


def test_how_ranks_train_together(tmp_path, capsys):
    tables = {
        "parallel = 3": "must be true or false",
        "parallel = { zero = 4 }": "must be one of 0, 1, 2, 3",
        "parallel = { staleness = 4 }": "staleness is no option of mode = 'sync'",
        "parallel = { mode = 'async', zero = 1 }": "zero is no option of mode = 'async'",
        "parallel = { mode = 'local', every = 0 }": "every must be",
        "parallel = { shard = 2 }": "did you mean 'shards'",
    }
    for line, problem in tables.items():
        (tmp_path / "run.toml").write_text(CONFIG + line + "\n")
        assert main(["train", str(tmp_path / "run.toml")]) == 2
        assert problem in capsys.readouterr().err, line


@pytest.mark.long
@pytest.mark.parametrize("way", ["{ mode = 'async', staleness = 1 }", "{ zero = 3 }"])
def test_other_ways_by_toml(run, tmp_path, way):
    pytest.importorskip("mpi4py")
    (tmp_path / "run.toml").write_text(CONFIG + f"parallel = {way}\n")
    for resume in ((), ("--resume", "auto", "--set", "trainer.epochs=3")):
        done = run(
            "-n", "3", "--threads", "1", "--out", "out", "--set", "data.batch_size=18", *resume
        )
        assert done.returncode == 0, done.stderr
    lines = (tmp_path / "out" / "log.jsonl").read_text().splitlines()
    assert len(lines) == 3
    assert json.loads(lines[-1])["val/loss"] < json.loads(lines[0])["val/loss"]
    found = wf.load(tmp_path / "out" / "model.safetensors")
    assert {tuple(x.shape) for x in found.values()} >= {(8, 4), (3, 8)}
