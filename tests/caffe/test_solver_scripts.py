"""Scripts of pycaffe's that train, unchanged, by `weft run`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from weft.caffe.text import print_message
from weft.cli import main

from .test_solver import net

SCRIPT = """
import numpy as np
import caffe

caffe.set_mode_cpu()
caffe.set_random_seed(1)
solver = caffe.get_solver("solver.prototxt")
print([(name, blob.data.shape) for name, blob in solver.net.blobs.items()])
print([(name, len(blobs)) for name, blobs in solver.net.params.items()])

niter = 40
losses = np.zeros(niter)
for it in range(niter):
    solver.step(1)
    losses[it] = solver.net.blobs["loss"].data
    if it % 20 == 0:
        solver.test_nets[0].forward(start="ip")
update = solver.net.params["ip"][0].diff
print("update", update.shape, float(np.abs(update).max()) > 0)
print("fell", losses[-5:].mean() < 0.5 * losses[:5].mean(), "iterations", solver.iter)
solver.net.save("trained.caffemodel")
net = caffe.Net("net.prototxt", "trained.caffemodel", caffe.TEST)
same = (net.params["out"][0].data == solver.net.params["out"][0].data).all()
print("saved", bool(same))
"""
SOLVER = """
net: "net.prototxt" test_iter: 2 test_interval: 50 test_initialization: false
base_lr: 0.05 momentum: 0.5 lr_policy: "step" gamma: 0.5 stepsize: 30 max_iter: 40 display: 0
"""


def test_a_script_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.prototxt").write_text(print_message(net(tmp_path)))
    Path("solver.prototxt").write_text(SOLVER)
    Path("train.py").write_text(SCRIPT)
    assert main(["run", "train.py"]) == 0
    shown = capsys.readouterr().out
    assert "('ip', (4, 6))" in shown
    assert "[('ip', 2), ('out', 2)]" in shown
    assert "update (6, 3) True" in shown
    assert re.search(r"fell True iterations 40\nsaved True", shown)
