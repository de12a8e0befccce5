"""Run every example as a user would, in a process of its own, and check the figure it prints."""

import importlib.util
import io
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples"

# name -> (where the figures stand in the output, what must hold for them)
CHECKS: dict[str, tuple[str, Callable[..., bool]]] = {
    "train_classifier": (r"^test accuracy: ([\d.]+)%$", lambda accuracy: accuracy >= 95),
    "hooks_and_pdb": (r"^grad: (\S+)$", lambda grad: grad == 11),
    "four_derivatives": (
        r"^largest error of forward and reverse: (\S+)\nleast error of differences: (\S+)$",
        lambda exact, differences: exact < 1e-13 and 1e-13 < differences < 1e-8,
    ),
    "evaluation_trace": (r"^max error: (\S+)$", lambda error: error < 1e-15),
    "sparse_autoencoder": (
        r"^max abs difference: (\S+)\ncost: (\S+) -> (\S+)$",
        lambda difference, first, last: difference < 1e-10 and last < 0.9 * first,
    ),
    "rnn_from_scratch": (
        r"^loss: (\S+) -> (\S+)$",
        # An untrained network is as good as guessing among the 28 characters of the text.
        lambda first, last: abs(first - math.log(28)) < 0.5 and last < 0.6 * first,
    ),
    "q_learning": (r"^share of the best: ([\d.]+)%$", lambda share: 95 <= share <= 100),
    "static_graph": (
        r"^accuracy: (\S+)\nlargest difference between static and eager weights: (\S+)$",
        lambda accuracy, difference: accuracy > 0.95 and difference < 0.01,
    ),
    "loops_in_graphs": (
        r"^largest relative error of the derivatives: (\S+)$",
        lambda error: error < 1e-12,
    ),
    "physics_informed": (r"^largest error: (\S+)$", lambda error: error < 5e-3),
    "maml": (
        r"^loss after one step on a new task: (\S+) -> (\S+)$",
        lambda first, last: last < 0.5 * first,
    ),
    "wgan_gp": (
        r"^distance from the circle: (\S+) -> (\S+)$",
        lambda first, last: last < 0.6 * first,
    ),
    "neural_ode": (
        r"^difference of checkpoint: (\S+)\ndifference of adjoint: (\S+)\nloss: (\S+) -> (\S+)$",
        lambda checkpoint, adjoint, first, last: (
            checkpoint < 1e-12 and adjoint < 1e-5 and last < 0.2 * first
        ),
    ),
    "newton_laplace": (
        r"^gradient norm: (\S+), error of the variance: (\S+)$",
        lambda norm, error: norm < 1e-8 and error < 1e-8,
    ),
    "implicit_layer": (
        r"^largest difference from the unrolled gradient: (\S+)\nloss: (\S+) -> (\S+)$",
        lambda error, first, last: error < 1e-8 and last < 0.5 * first,
    ),
    "serve_client": (r"^largest difference: (\S+)$", lambda difference: difference < 1e-5),
    "sentiment_trees": (
        r"^accuracy on unseen sentences: ([\d.]+)%$",
        lambda accuracy: accuracy >= 90,
    ),
    "parser": (r"^right heads in unseen sentences: ([\d.]+)%$", lambda right: right >= 85),
    "molecules": (
        r"^accuracy on unseen molecules: ([\d.]+)%\nlargest difference of both ways: (\S+)$",
        lambda accuracy, difference: accuracy >= 97 and difference < 1e-3,
    ),
    "dqn": (r"^mean return: (\S+) \(threshold 0\.8 reached\)$", lambda score: score >= 0.8),
}


def run_example(name: str, *options: str, commands: str = "") -> str:
    """Run an example with warnings as errors; return what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    environment.pop("PYTHONBREAKPOINT", None)
    with TemporaryDirectory() as folder:
        process = subprocess.run(
            [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), *options],
            input=commands,
            capture_output=True,
            check=False,  # a failure is reported with its traceback, below
            encoding="utf-8",
            env=environment,
            cwd=folder,
        )
        assert os.listdir(folder) == [], "files that nobody asked for"
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    return process.stdout


def load_example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_checked() -> None:
    """Each program prints a figure that is checked, here or among the training examples."""
    others = Path(__file__).with_name("test_training_examples.py").read_text()
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert set(CHECKS) <= names
    assert not [name for name in names if name not in CHECKS and f'"{name}' not in others]


@pytest.mark.parametrize("name", CHECKS)
def test_example_prints_its_figure(name: str) -> None:
    pattern, holds = CHECKS[name]
    output = run_example(name, "--quick")
    match = re.search(pattern, output, re.MULTILINE)
    assert match is not None, output
    assert holds(*map(float, match.groups())), output


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in CHECKS if name != "dqn"])
def test_example_prints_its_figure_at_full_size(name: str) -> None:
    pattern, holds = CHECKS[name]
    match = re.search(pattern, run_example(name), re.MULTILINE)
    assert match is not None
    assert holds(*map(float, match.groups()))


@pytest.mark.long
def test_dqn_reaches_its_own_threshold() -> None:
    assert "(threshold 0.99 reached)" in run_example("dqn")


def test_example_repeats_itself() -> None:
    assert run_example("rnn_from_scratch", "--steps=3") == run_example(
        "rnn_from_scratch", "--steps=3"
    )


def test_seed_changes_the_run() -> None:
    assert run_example("rnn_from_scratch", "--steps=3") != run_example(
        "rnn_from_scratch", "--steps=3", "--seed=1"
    )


def test_pdb_stops_in_the_hook_and_in_backward() -> None:
    commands = "p 'hook', g.tolist()\nc\np 'backward', x.tolist()\nc\n"
    output = run_example("hooks_and_pdb", "--pdb", commands=commands)
    assert "('hook', [1.0, 1.0])" in output
    assert "('backward', [1.0, 2.0])" in output
    assert output.endswith("grad: 11\n")


def test_trace_lists_every_step() -> None:
    output = run_example("evaluation_trace", "--x=0.5", "--y=4.2")
    row = output.split("v1  = v-1 * v0")[1].split("\n")[0]
    assert [float(number) for number in row.split()] == [2.1, 4.2, 0.5, 1.0]
    assert "in the order: v3, v2, v1, " in output


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_rewrites_its_line_on_a_terminal_only(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stdout", stream)
    report = load_example("train_classifier").progress(epoch=1, epochs=2, total=10)
    report("loss 2", 5)
    report("loss 1", 10)
    written = stream.getvalue()
    assert written.count("\n") == 1
    assert written.count("\r") == (2 if terminal else 0)
    assert ("loss 2" in written) == terminal
    assert written.endswith("loss 1\n")
