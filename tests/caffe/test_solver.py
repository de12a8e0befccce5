"""Solvers: iterations, tests, snapshots and logs as Caffe has them, on small nets."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.caffe.binary import parse_message_file, serialize_message
from weft.caffe.errors import CaffeError
from weft.caffe.inputs.writing import write_hdf5_list
from weft.caffe.message import NetParameter, SolverParameter, SolverState
from weft.caffe.snapshots import load_standing
from weft.caffe.solver import Solver
from weft.caffe.solver_log import SolverLog
from weft.caffe.solver_types import AdamSolver, SGDSolver, get_solver
from weft.caffe.text import print_message, read_message
from weft.cli import main

NET = """
name: "Small"
layer {{ name: "in" type: "HDF5Data" top: "data" top: "label" include {{ phase: TRAIN }}
  hdf5_data_param {{ source: "{source}" batch_size: 4 shuffle: {shuffle} }} }}
layer {{ name: "in" type: "HDF5Data" top: "data" top: "label"
  include {{ phase: TEST not_stage: "all" }}
  hdf5_data_param {{ source: "{source}" batch_size: 5 }} }}
layer {{ name: "in" type: "HDF5Data" top: "data" top: "label"
  include {{ phase: TEST stage: "all" }}
  hdf5_data_param {{ source: "{source}" batch_size: 20 }} }}
layer {{ name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  param {{ lr_mult: 1 decay_mult: 1 }} param {{ lr_mult: 2 decay_mult: 0 }}
  inner_product_param {{ num_output: 6 weight_filler {{ type: "xavier" }} }} }}
{middle}
layer {{ name: "out" type: "InnerProduct" bottom: "ip" top: "out"
  inner_product_param {{ num_output: 2 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "loss" type: "EuclideanLoss" bottom: "out" bottom: "label" top: "loss" }}
"""
DROPOUT = (
    'layer { name: "drop" type: "Dropout" bottom: "ip" top: "ip" }'
    ' layer { name: "relu" type: "ReLU" bottom: "ip" top: "ip" }'
)
ROWS = 20
ROOT = Path(__file__).resolve().parent.parent.parent


class Kept(SolverLog):
    """A log whose lines are kept, without their stamps."""

    def __init__(self) -> None:
        super().__init__(io.StringIO())

    @property
    def lines(self) -> list[str]:
        assert isinstance(self._stream, io.StringIO)
        return [line.split("] ", 1)[1] for line in self._stream.getvalue().splitlines()]


def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 3)).astype(np.float32)
    return x, (x @ rng.normal(size=(3, 2))).astype(np.float32)


def net(folder: Path, *, shuffle: bool = False, middle: str = "") -> Any:
    if not (folder / "rows.txt").exists():
        write_hdf5_list(folder / "rows.txt", *data())
    source = (folder / "rows.txt").as_posix()
    text = NET.format(source=source, shuffle=str(shuffle).lower(), middle=middle)
    return read_message(text, NetParameter)


def solver_param(folder: Path, of: dict[str, Any] | None = None, **options: Any) -> Any:
    usual = {
        "base_lr": 0.05,
        "lr_policy": "fixed",
        "max_iter": 6,
        "random_seed": 3,
        "snapshot_prefix": str(folder / "small"),
        "net_param": net(folder, **(of or {})),
    }
    return SolverParameter(**{**usual, **options})


def made(folder: Path, of: dict[str, Any] | None = None, **options: Any) -> Solver:
    return Solver(solver_param(folder, of, **options), log=Kept())


def weights(solver: Solver) -> list[Any]:
    return [blob.value.detach().numpy().copy() for blob in solver.blobs]


# -- iterations ------------------------------------------------------------------------------------


def test_iterations_are_those_of_caffe(tmp_path: Path) -> None:
    options = {"momentum": 0.9, "weight_decay": 0.01, "iter_size": 2}
    solver = made(tmp_path, **options, type="Nesterov")
    w = [x.astype(np.float64) for x in weights(solver)]
    history = [np.zeros_like(x) for x in w]
    x, y = data()
    for iteration in range(5):
        total = [np.zeros_like(p) for p in w]
        for part in range(2):
            rows = (np.arange(4) + 4 * (2 * iteration + part)) % ROWS
            hidden = x[rows] @ w[0].T + w[1]
            error = (hidden @ w[2].T + w[3] - y[rows]) / 4
            back = error @ w[2]
            grads = (back.T @ x[rows], back.sum(0), error.T @ hidden, error.sum(0))
            total = [a + g for a, g in zip(total, grads, strict=True)]
        multipliers = [(1, 1), (2, 0), (1, 1), (1, 1)]
        for i, (rate, decay) in enumerate(multipliers):
            g = total[i] / 2 + 0.01 * decay * w[i]
            old, history[i] = history[i], 0.05 * rate * g + 0.9 * history[i]
            w[i] = w[i] - (1.9 * history[i] - 0.9 * old)
    solver.step(5)
    assert solver.iter == 5
    for found, expected in zip(weights(solver), w, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_step_leaves_its_blobs(tmp_path: Path) -> None:
    solver = made(tmp_path)
    before = weights(solver)
    solver.step(1)
    x, y = data()
    np.testing.assert_array_equal(solver.net.blobs["data"].data, x[:4])
    hidden = x[:4] @ before[0].T + before[1]
    np.testing.assert_allclose(solver.net.blobs["ip"].data, hidden, rtol=1e-5, atol=1e-6)
    loss = ((hidden @ before[2].T + before[3] - y[:4]) ** 2).sum() / 8
    np.testing.assert_allclose(solver.net.blobs["loss"].data, loss, rtol=1e-5)
    for blob, old, new in zip(
        [b for blobs in solver.net.params.values() for b in blobs],
        before,
        weights(solver),
        strict=True,
    ):
        np.testing.assert_allclose(blob.diff, old - new, atol=1e-7)
        assert np.abs(blob.diff).max() > 0


def test_programs_may_write_weights_between_steps(tmp_path: Path) -> None:
    solver = made(tmp_path)
    solver.step(2)
    solver.net.params["out"][0].data[...] = 0
    solver.net.params["out"][1].data[...] = 0
    solver.step(1)
    assert (solver.net.blobs["out"].data == 0).all()


def test_steps_run_compiled(tmp_path: Path) -> None:
    solver = made(tmp_path, {"middle": DROPOUT})
    solver.solve()  # what does not compile warns, and warnings are errors here
    assert solver.iter == 6


def test_callbacks_come_before_iterations(tmp_path: Path) -> None:
    solver, seen = made(tmp_path), []
    solver.add_callback(lambda: seen.append(solver.iter))
    solver.step(3)
    assert seen == [0, 1, 2]
    with pytest.raises(CaffeError, match="one compiled program"):
        solver.add_callback(lambda: None, lambda: None)


# -- tests and the log -----------------------------------------------------------------------------


def test_the_log_reads_as_caffes(tmp_path: Path) -> None:
    solver = made(
        tmp_path,
        display=2,
        test_iter=[4, 1],
        test_interval=3,
        test_state=[{}, {"stage": ["all"]}],
        average_loss=2,
        test_compute_loss=True,
    )
    solver.solve()
    lines = solver.log.lines  # type: ignore[attr-defined]  # Kept
    assert lines[:3] == [
        "Solving Small",
        "Learning Rate Policy: fixed",
        "Iteration 0, Testing net (#0)",
    ]
    number = r"[-+.\de]+"
    wanted = [
        rf"Test loss: {number}",
        rf"    Test net output #0: loss = {number} \(\* 1 = {number} loss\)",
        r"Iteration 0, Testing net \(#1\)",
        rf"Iteration 0, loss = {number}",
        rf"    Train net output #0: loss = {number} \(\* 1 = {number} loss\)",
        r"Iteration 0, lr = 0.05",
        rf"Iteration 2 \({number} iter/s, {number}s/2 iters\), loss = {number}",
        r"Iteration 3, Testing net \(#0\)",
        r"Snapshotting to binary proto file .*small_iter_6.caffemodel",
        r"Snapshotting solver state to binary proto file .*small_iter_6.solverstate",
        rf"Iteration 6, loss = {number}",
        r"Iteration 6, Testing net \(#1\)",
        r"Optimization Done.",
    ]
    found = iter(lines)
    for pattern in wanted:
        assert any(re.fullmatch(pattern, line) for line in found), (pattern, lines)


def test_both_test_nets_see_the_trained_weights(tmp_path: Path) -> None:
    solver = made(tmp_path, test_iter=[4, 1], test_interval=3, test_state=[{}, {"stage": ["all"]}])
    first = solver.test_all()
    np.testing.assert_allclose(first[0]["loss"], first[1]["loss"], rtol=1e-5)
    solver.step(20)
    last = solver.test_all()
    assert last[0]["loss"] < 0.5 * first[0]["loss"]
    np.testing.assert_allclose(last[0]["loss"], last[1]["loss"], rtol=1e-5)


# -- snapshots -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["HDF5", "BINARYPROTO"])
@pytest.mark.parametrize("of", [{"shuffle": True, "middle": DROPOUT}])
def test_resumed_runs_are_undisturbed_ones(tmp_path: Path, kind: str, of: Any) -> None:
    options = {"type": "Adam", "momentum": 0.9, "snapshot_format": kind, "test_iter": [1]}
    solver = made(tmp_path, of, **options, test_interval=100)
    solver.step(3)
    path = solver.snapshot()
    solver.step(4)
    wf.manual_seed(99)
    other = made(tmp_path, of, **options, test_interval=100, weight_decay=0.0)
    other.restore(path)
    assert other.iter == 3
    other.step(4)
    for found, expected in zip(weights(other), weights(solver), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_snapshots_are_made_when_due(tmp_path: Path) -> None:
    made(tmp_path, snapshot=4).solve()
    names = sorted(path.name for path in tmp_path.glob("small_iter_*"))
    assert names == [
        f"small_iter_{n}.{kind}" for n in (4, 6) for kind in ("caffemodel", "solverstate")
    ]
    standing = load_standing(tmp_path / "small_iter_4.solverstate")
    assert standing.iteration == 4
    assert standing.learned_net.endswith("small_iter_4.caffemodel")
    assert [array.shape for array in standing.history] == [(6, 3), (6,), (2, 6), (2,)]
    made(tmp_path, snapshot_after_train=False, snapshot_prefix=str(tmp_path / "none")).solve()
    assert not list(tmp_path.glob("none*"))


def test_snapshots_without_our_part_are_taken(tmp_path: Path) -> None:
    solver = made(tmp_path, momentum=0.9)
    solver.step(2)
    path = solver.snapshot()
    state = parse_message_file(path, SolverState)
    state.clear("weft")
    path.write_bytes(serialize_message(state))
    other = made(tmp_path, momentum=0.9)
    other.restore(path)
    assert other.iter == 2
    for found, expected in zip(weights(other), weights(solver), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_snapshots_that_do_not_fit(tmp_path: Path) -> None:
    solver = made(tmp_path)
    path = solver.snapshot()
    with pytest.raises(CaffeError, match="Incorrect length of history"):
        made(tmp_path, type="Adam").restore(path)
    with pytest.raises(CaffeError, match="File not found"):
        solver.restore(tmp_path / "none.solverstate")
    (tmp_path / "small_iter_0.caffemodel").unlink()
    with pytest.raises(CaffeError, match="neither there nor beside it"):
        solver.restore(path)
    path.write_bytes(b"\x0a\xff\xff")
    with pytest.raises(CaffeError, match="SolverState"):
        solver.restore(path)


def test_finetuning(tmp_path: Path) -> None:
    solver = made(tmp_path)
    solver.step(3)
    solver.snapshot()
    file = str(tmp_path / "small_iter_3.caffemodel")
    other = made(tmp_path, weights=[file], random_seed=8)
    assert other.iter == 0
    for found, expected in zip(weights(other), weights(solver), strict=True):
        np.testing.assert_array_equal(found, expected)


# -- signals ---------------------------------------------------------------------------------------


class Signals(Kept):
    """A log that sends its own process a signal at a line."""

    def __init__(self, at: str, number: int) -> None:
        super().__init__()
        self._at, self._number = at, number

    def __call__(self, text: str, **options: Any) -> None:
        super().__call__(text, **options)
        if text.startswith(self._at):
            os.kill(os.getpid(), self._number)


def test_ctrl_c_makes_a_snapshot_and_stops(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    log = Signals("Iteration 2, lr", signal.SIGINT)
    solver = Solver(solver_param(tmp_path, display=1, max_iter=50), log=log)
    solver.solve()
    assert solver.iter == 3
    assert log.lines[-1] == "Optimization stopped early."
    assert (tmp_path / "small_iter_3.solverstate").exists()
    assert signal.getsignal(signal.SIGINT) is before


def test_sighup_makes_a_snapshot_and_goes_on(tmp_path: Path) -> None:
    log = Signals("Iteration 2, lr", signal.SIGHUP)
    solver = Solver(solver_param(tmp_path, display=1), log=log)
    solver.solve()
    assert solver.iter == 6
    assert (tmp_path / "small_iter_3.solverstate").exists()
    with pytest.raises(CaffeError, match="effect of SIGINT must be one of snapshot, stop, none"):
        solver.solve(effects={"SIGINT": "explode"})


# -- what is asked for wrongly ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"net": "x.prototxt"}, "one of these fields: net, train_net.* Received: net, net_param"),
        ({"base_lr": None}, "a solver needs base_lr"),
        ({"lr_policy": None}, "a solver needs lr_policy"),
        ({"iter_size": 0}, "iter_size must be positive. Received: 0"),
        ({"snapshot": -1}, "snapshot must not be negative"),
        ({"test_iter": [1]}, "test_interval must be positive"),
        ({"test_iter": [1], "test_interval": 1, "test_state": [{}, {}]}, "once per test net"),
        ({"train_net": "a", "net_param": None, "test_iter": [1]}, "File not found|No such|no such"),
    ],
)
def test_bad_solvers(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    param = solver_param(tmp_path)
    for name, value in options.items():
        param.clear(name)
        if value is not None:
            param.merge(SolverParameter(**{name: value}))
    with pytest.raises(CaffeError, match=message):
        Solver(param, log=Kept())


def test_nets_that_nobody_feeds() -> None:
    text = """net_param {
      layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
      layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
              inner_product_param { num_output: 1 } }
      layer { name: "l" type: "EuclideanLoss" bottom: "y" bottom: "y" top: "l" } }
      base_lr: 0.1 lr_policy: "fixed" """
    solver = Solver(read_message(text, SolverParameter), log=Kept())
    with pytest.raises(CaffeError, match="nothing brings x"):
        solver.step(1)


# -- pycaffe's classes -----------------------------------------------------------------------------


def test_classes_have_their_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.prototxt").write_text(print_message(net(tmp_path)))
    text = 'net: "net.prototxt" base_lr: 0.1 lr_policy: "fixed" type: "AdaGrad" max_iter: 1'
    (tmp_path / "solver.prototxt").write_text(text)
    assert get_solver(str(tmp_path / "solver.prototxt"), log=Kept()).type == "AdaGrad"
    solver = SGDSolver(str(tmp_path / "solver.prototxt"), log=Kept())
    assert (solver.type, solver.iter) == ("SGD", 0)
    assert AdamSolver(solver.param, log=Kept()).type == "Adam"
    assert solver.snapshot() == tmp_path / "solver_iter_0.solverstate"


# -- the command -----------------------------------------------------------------------------------


def command_files(folder: Path, **options: Any) -> Path:
    param = solver_param(folder, {"shuffle": True, "middle": DROPOUT}, **options)
    path = folder / "solver.prototxt"
    path.write_text(print_message(param))
    return path


def test_a_killed_command_goes_on_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "killed").mkdir()
    whole = command_files(tmp_path, max_iter=40, snapshot=10, momentum=0.9, display=5)
    assert main(["train", str(whole)]) == 0
    endless = command_files(tmp_path / "killed", max_iter=10**6, snapshot=10, momentum=0.9)
    program = "import sys; from weft.cli import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", program, "train", str(endless)],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        while not (tmp_path / "killed" / "small_iter_20.solverstate").exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
    snapshot = tmp_path / "killed" / "small_iter_20.solverstate"
    arguments = ["train", str(endless), "--snapshot", str(snapshot), "--iterations", "40"]
    assert main(arguments) == 0
    expected = blobs_of(tmp_path / "small_iter_40.caffemodel")
    assert blobs_of(tmp_path / "killed" / "small_iter_40.caffemodel") == expected


def blobs_of(path: Path) -> list[bytes]:
    layers = parse_message_file(path, NetParameter).layer
    return [blob.data.array.tobytes() for layer in layers for blob in layer.blobs]


def test_options_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(command_files(tmp_path))
    assert main(["train", path, "--gpu", "0", "--set", "max_iter=2", "--set", "display=1"]) == 0
    shown = capsys.readouterr().err
    assert "--gpu 0 has no effect" in shown
    assert "Iteration 1, lr = 0.05" in shown
    weights_file = str(tmp_path / "small_iter_2.caffemodel")
    assert main(["train", path, "--weights", weights_file, "--iterations", "1"]) == 0
    assert "Finetuning from" in capsys.readouterr().err
    assert main(["train", path, "--dry-run"]) == 0
    for bad, message in (
        (["--weights", "a", "--snapshot", "b"], "but not both"),
        (["--out", "x"], "--out is for TOML files"),
        (["--set", "base_lr"], "takes a field and its value"),
        (["--set", "base_rate=1"], 'has no field named "base_rate"'),
    ):
        assert main(["train", path, *bad]) in (1, 2)
        assert message in capsys.readouterr().err
    (tmp_path / "run.toml").write_text("seed = 1\n")
    assert main(["train", str(tmp_path / "run.toml"), "--gpu", "0"]) == 2
    assert "--gpu is for solvers of Caffe" in capsys.readouterr().err


@pytest.mark.parametrize("training", [True, False])
def test_layers_that_change_are_seen(tmp_path: Path, training: bool) -> None:
    solver = made(tmp_path, {"middle": DROPOUT})
    solver.step(2)
    solver.network.train(training)
    weight, bias = weights(solver)[:2]
    solver.step(1)
    passed = np.maximum(solver.net.blobs["data"].data @ weight.T + bias, 0)
    assert np.allclose(solver.net.blobs["ip"].data, passed, atol=1e-5) is not training
