"""One server and three workers: as good as one process, never too stale, one worker killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent.parent

SCRIPT = """
import json, os, signal, sys
import numpy as np
import weft as wf

which, kill = sys.argv[1], sys.argv[2] == "kill"
wf.distributed.init()
rank, alone = wf.distributed.rank(), wf.distributed.size() == 1


class Table(wf.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = wf.nn.Embedding(500, 16, sparse=True)
        self.last = wf.nn.Linear(16, 5)

    def forward(self, i):
        return self.last(self.table(i).mean(1))


def digits():
    from sklearn.datasets import load_digits
    x, y = load_digits(return_X_y=True)
    mlp = wf.nn.Sequential(wf.nn.Linear(64, 64), wf.nn.ReLU(), wf.nn.Linear(64, 10))
    return mlp, (x / 16).astype(np.float32), y


def words():
    rng = np.random.default_rng(1)
    owner = rng.integers(0, 5, 500)
    y = rng.integers(0, 5, 4000)
    of_class = [np.flatnonzero(owner == c) for c in range(5)]
    x = np.array([np.r_[rng.choice(of_class[c], 6), rng.integers(0, 500, 2)] for c in y])
    return Table(), x, y


wf.manual_seed(0)
model, x, y = digits() if which == "mlp" else words()
rng = np.random.default_rng(7)
order = rng.permutation(len(x))
train, test = order[: len(x) * 3 // 4], order[len(x) * 3 // 4 :]
optimizer = wf.optim.SGD(model.parameters(), lr=0.3 if which == "mlp" else 2.0)
epochs = 24 if which == "mlp" else 10
if not alone:
    optimizer = wf.distributed.parallel(optimizer, mode="async", staleness=3)


def batches(worker, workers):
    rng = np.random.default_rng(3)
    for _ in range(epochs):
        for j in np.array_split(rng.permutation(train), len(train) // 32)[worker::workers]:
            yield wf.tensor(x[j]), wf.tensor(y[j])


def mine():
    if alone:
        return batches(0, 1)
    return optimizer.batches(batches(rank - 1, 3) if rank else ())


for step, (a, b) in enumerate(mine()):
    optimizer.zero_grad()
    wf.nn.functional.cross_entropy(model(a), b).backward()
    optimizer.step()
    if kill and rank == 2 and step == 30:
        os.kill(os.getpid(), signal.SIGKILL)
if not alone:
    optimizer.finish()
if rank == 0:
    accuracy = float((model(wf.tensor(x[test])).numpy().argmax(1) == y[test]).mean())
    counts = {} if alone else optimizer.counts
    found = {"accuracy": accuracy, "counts": {str(k): v for k, v in counts.items()}}
    print(json.dumps({**found, "lost": [] if alone else optimizer.lost}), flush=True)
"""


def run(folder, which, kill, *ranks):
    (folder / "script.py").write_text(SCRIPT)
    command = [sys.executable]
    if ranks:
        pytest.importorskip("mpi4py")
        command += ["-m", "weft.cli", "launch", *ranks, "--threads", "1", "--logs", "logs"]
    done = subprocess.run(
        [*command, "script.py", which, kill],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.long
@pytest.mark.parametrize("which", ["mlp", "table"])
def test_servers_reach_the_accuracy_of_one_process(which, tmp_path):
    pytest.importorskip("sklearn")
    alone = run(tmp_path, which, "no")
    served = run(tmp_path, which, "no", "-n", "4")
    assert served["accuracy"] >= alone["accuracy"] - 0.01, (alone, served)
    assert max(map(int, served["counts"])) <= 3
    killed = run(tmp_path, which, "kill", "-n", "4", "--survive")
    assert killed["lost"] == [2]
    assert killed["accuracy"] >= alone["accuracy"] - 0.05, (alone, killed)
    print(alone, served, killed)
