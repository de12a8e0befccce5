"""What each extension does."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft as wf
from tests.train.helpers import assert_same_weights, batches, make_trainer, weights
from weft.core.errors import MissingDependencyError, WeftError
from weft.io import CheckpointManager
from weft.optim import SWA, lr
from weft.train import (
    Average,
    Checkpoint,
    EarlyStopping,
    Evaluator,
    LearningRate,
    Log,
    NanStop,
    NonFiniteError,
    PlotConfusion,
    PlotCurves,
    Profiler,
    ProgressBar,
    Schedule,
    Summary,
    TensorBoard,
    Trainer,
    TrainingMetrics,
    evaluate,
    read_log,
)
from weft.train.extensions import draw_confusion


def report(trainer: Trainer, key: str, values: list[float], period: str = "epoch") -> None:
    """Let a trainer observe given values, one after another."""
    left = iter(values)

    def give(trainer: Trainer) -> None:
        value = next(left, None)
        if value is not None:
            trainer.observation[key] = value

    trainer.extend(give, name="report", trigger=(1, period), priority=999)


# -- evaluation ----------------------------------------------------------------------------------


def test_evaluator_weights_batches_by_size() -> None:
    trainer = make_trainer()
    (x, y), *_ = batches()
    loader = [(x[:1], y[:1]), (x[1:], y[1:])]
    whole = evaluate(trainer.updater.objective, [(x, y)], Evaluator(loader, ["mse"]).metrics)
    parts = evaluate(trainer.updater.objective, loader)
    assert parts["loss"] == pytest.approx(whole["loss"])
    assert whole["mse"] == pytest.approx(whole["loss"])


def test_evaluator_reports_and_changes_nothing() -> None:
    plain, evaluated = make_trainer(), make_trainer()
    found: list[Any] = []
    evaluated.extend(Evaluator(batches(2), {"error": "mae"}, name="test"))
    evaluated.extend(lambda t: found.append(dict(t.observation)), name="probe", priority=0)
    plain.run()
    evaluated.run()
    assert_same_weights(plain, evaluated)
    assert evaluated.model.training
    assert set(found[4]) == {"train/loss", "test/loss", "test/error"}
    assert "test/loss" not in found[3]


def test_evaluator_stops_after_max_batches_and_averages() -> None:
    trainer = make_trainer(stop=(1, "epoch"))
    average = Average(SWA(trainer.model))
    trainer.extend(average)
    trainer.extend(Evaluator(batches(9), max_batches=2, average=average))
    trainer.run()
    with average.applied():
        expected = evaluate(trainer.updater.objective, batches(9), max_batches=2)
    assert trainer.observation["val/loss"] == expected["loss"]


def test_evaluation_of_nothing() -> None:
    with pytest.raises(WeftError, match="gave no batches"):
        evaluate(make_trainer().updater.objective, [])
    with pytest.raises(WeftError, match=r"iterable again and again. Received: generator"):
        Evaluator(x for x in [1])


def test_training_metrics_start_anew_after_each_report() -> None:
    trainer = make_trainer(stop=(2, "epoch"))
    found = []
    trainer.extend(TrainingMetrics(["mse"]))
    trainer.extend(lambda t: found.append(t.observation.get("train/mse")), name="p", priority=0)
    losses: list[float] = []
    trainer.extend(lambda t: losses.append(t.observation["train/loss"]), name="q")
    trainer.run()
    assert [value is not None for value in found] == [False] * 4 + [True] + [False] * 4 + [True]
    assert found[4] == pytest.approx(np.mean(losses[:5]))
    assert found[9] == pytest.approx(np.mean(losses[5:]))


# -- log -----------------------------------------------------------------------------------------


def test_log_writes_means_and_a_table(tmp_path: Path, capsys: Any) -> None:
    trainer = make_trainer(tmp_path)
    log = Log(keys=["train/loss"])
    losses: list[float] = []
    trainer.extend(lambda t: losses.append(t.observation["train/loss"]), name="probe")
    trainer.extend(log)
    trainer.run()
    entries = read_log(tmp_path / "log.jsonl")
    assert [(e["epoch"], e["iteration"]) for e in entries] == [(1, 5), (2, 10)]
    assert entries[1]["train/loss"] == pytest.approx(np.mean(losses[5:]))
    assert entries == log.entries
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["epoch", "iteration", "train/loss", "elapsed"]
    assert [line.split()[0] for line in lines[1:]] == ["1", "2"]


def test_log_is_strict_json_also_for_nan(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, stop=(3, "epoch"))
    report(trainer, "x", [math.nan, math.inf, -math.inf])
    trainer.extend(Log(console=False))
    trainer.run()

    def refuse(name: str) -> None:
        raise AssertionError(name)

    for line in (tmp_path / "log.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=refuse)
    values = [entry["x"] for entry in read_log(tmp_path / "log.jsonl")]
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf]


def test_log_starts_anew_and_survives_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"iteration": 5, "epoch": 1}\n{"iteration": 10, "epo')
    assert read_log(path) == [{"iteration": 5, "epoch": 1}]
    trainer = make_trainer(tmp_path, stop=(1, "epoch"))
    trainer.extend(Log(console=False))
    trainer.run()
    assert [entry["iteration"] for entry in read_log(path)] == [5]


def test_summary_skips_what_is_no_number() -> None:
    summary = Summary()
    summary.add({"a": wf.tensor(2.0), "b": np.zeros((2, 2)), "c": "text", "d": np.float32(1)})
    assert summary.means() == {"a": 2.0, "d": 1.0}
    other = Summary()
    other.load_state_dict(summary.state_dict())
    assert other.means() == summary.means()


# -- checkpoints ---------------------------------------------------------------------------------


def test_checkpoint_keeps_best_and_last(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, stop=(4, "epoch"))
    report(trainer, "val/loss", [3.0, 1.0, 2.0, 4.0])
    trainer.extend(Checkpoint(keep_last=1, keep_best=1, metric="val/loss"))
    trainer.run()
    manager = CheckpointManager(tmp_path / "checkpoints", metric="val/loss")
    assert [c.step for c in manager.checkpoints()] == [10, 20]
    best = manager.best()
    assert best is not None
    assert best.name == "step-00000010"


def test_checkpoint_saves_the_end_once(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, stop=(7, "iteration"))
    trainer.extend(Checkpoint(keep_last=None))
    trainer.run()
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert names == ["step-00000005", "step-00000007"]
    with pytest.raises(WeftError, match="keep_best needs the name"):
        Checkpoint(keep_best=1)


# -- stopping ------------------------------------------------------------------------------------


def stopped_at(values: list[float], **options: Any) -> tuple[int, Trainer, EarlyStopping]:
    trainer = make_trainer(stop=(len(values), "epoch"))
    report(trainer, "val/loss", values)
    stopping = EarlyStopping(**options)
    trainer.extend(stopping)
    trainer.run()
    return trainer.epoch, trainer, stopping


@pytest.mark.parametrize(
    ("values", "options", "epoch"),
    [
        ([3, 2, 2.5, 2.1, 2.2], {"patience": 2}, 4),
        ([3, 2, 2.5, 1.9, 2.2], {"patience": 2}, 5),
        ([1, 2, 3, 3, 3], {"patience": 2, "mode": "max"}, 5),
        ([3, 2.95, 2.9, 2.85], {"patience": 1, "min_delta": 0.2}, 2),
        ([3, math.nan, math.nan, 1], {"patience": 2}, 3),
        ([math.nan, 3, 2, 1], {"patience": 2}, 4),
        ([1, 2, 3, 4, 5], {"patience": 1, "start_from": 3}, 4),
        ([1, 2, 3], {"patience": 0}, 2),
    ],
)
def test_early_stopping(values: list[float], options: dict[str, Any], epoch: int) -> None:
    assert stopped_at(values, **options)[0] == epoch


def test_best_weights_come_back_only_when_asked() -> None:
    best = make_trainer(stop=(2, "epoch"))
    best.run()
    _, kept, _ = stopped_at([3, 1, 2, 2], patience=2)
    _, restored, stopping = stopped_at([3, 1, 2, 2], patience=2, restore_best=True)
    assert_same_weights(best, restored)
    assert not np.array_equal(weights(kept)["weight"], weights(best)["weight"])
    assert (stopping.best, stopping.best_iteration) == (1.0, 10)
    assert "has not improved since iteration 10" in (restored.stop_reason or "")


def test_stopped_run_stays_stopped_when_resumed(tmp_path: Path) -> None:
    def build() -> Trainer:
        trainer = make_trainer(tmp_path, stop=(9, "epoch"))
        report(trainer, "val/loss", [1, 2, 3, 4, 5, 6, 7, 8])
        trainer.extend(EarlyStopping(patience=1, restore_best=True))
        trainer.extend(Checkpoint())
        return trainer

    first, second = build(), build()
    first.run()
    second.run(resume="auto")
    assert second.epoch == first.epoch == 2
    assert_same_weights(first, second)


def test_early_stopping_without_its_value_warns() -> None:
    trainer = make_trainer()
    trainer.extend(EarlyStopping("val/los"))
    with pytest.warns(UserWarning, match="'val/los' was not observed; there are: train/loss"):
        trainer.run()
    with pytest.raises(WeftError, match="patience must be an integer from 0 on"):
        EarlyStopping(patience=-1)
    with pytest.raises(WeftError, match="mode must be"):
        EarlyStopping(mode="auto")


def test_nan_stop_keeps_the_last_good_checkpoint(tmp_path: Path) -> None:
    def poison(batch: Any) -> Any:
        return batch if trainer.iteration < 7 else (batch[0] * math.nan, batch[1])

    trainer = make_trainer(tmp_path, stop=(3, "epoch"), prepare=poison)
    trainer.extend(Checkpoint())
    trainer.extend(NanStop())
    with pytest.raises(NonFiniteError, match=r"train/loss is nan at iteration 8 \(epoch 1.6\)"):
        trainer.run()
    latest = CheckpointManager(tmp_path / "checkpoints").latest()
    assert latest is not None
    assert latest.name == "step-00000005"


def test_nan_stop_looks_at_parameters() -> None:
    trainer = make_trainer()

    def spoil(trainer: Trainer) -> None:
        with wf.no_grad():
            trainer.model.bias.fill_(math.inf)

    trainer.extend(spoil, priority=999)
    trainer.extend(NanStop(parameters=True))
    with pytest.raises(NonFiniteError, match="parameter bias is not finite at iteration 1"):
        trainer.run()


# -- rates and averages ----------------------------------------------------------------------------


def test_rate_of_the_iteration_is_reported_before_the_schedule_changes_it() -> None:
    trainer = make_trainer(stop=(3, "epoch"))
    rates: list[float] = []
    trainer.extend(LearningRate())
    trainer.extend(Schedule(lr.ExponentialLR(trainer.updater.optimizer, gamma=0.5)))
    trainer.extend(lambda t: rates.append(t.observation["lr"]), name="probe", priority=0)
    trainer.run()
    assert rates == [0.1] * 5 + [0.05] * 5 + [0.025] * 5


def test_rates_of_groups_have_names() -> None:
    trainer = make_trainer(stop=(1, "iteration"))
    optimizer = trainer.updater.optimizer
    extra = wf.nn.Parameter(wf.zeros(1))
    optimizer.add_param_group({"params": [extra], "lr": 0.5, "name": "extra"})
    trainer.extend(LearningRate())
    trainer.run()
    assert trainer.observation["lr/0"] == 0.1
    assert trainer.observation["lr/extra"] == 0.5


def test_schedule_with_a_metric() -> None:
    trainer = make_trainer(stop=(4, "epoch"))
    report(trainer, "val/loss", [1.0, 1.0, 1.0, 1.0])
    plateau = lr.ReduceLROnPlateau(trainer.updater.optimizer, patience=1)
    trainer.extend(Schedule(plateau, metric="val/loss"))
    trainer.run()
    assert trainer.updater.optimizer.param_groups[0]["lr"] == pytest.approx(0.01)
    other = make_trainer(stop=(1, "epoch"))
    other.extend(Schedule(lr.ReduceLROnPlateau(other.updater.optimizer), metric="nothing"))
    with pytest.warns(UserWarning, match="'nothing' was not observed"):
        other.run()
    with pytest.raises(WeftError, match="Received: float"):
        Schedule(0.1)


def test_average_follows_and_is_kept_when_asked() -> None:
    trainer = make_trainer(stop=(4, "iteration"))
    seen = []
    trainer.extend(lambda t: seen.append(weights(t)["weight"]), name="p", priority=999)
    trainer.extend(Average(0.5, keep=True))
    trainer.run()
    expected = seen[0]
    for value in seen[1:]:
        expected = 0.5 * expected + 0.5 * value
    np.testing.assert_allclose(weights(trainer)["weight"], expected, rtol=1e-5)
    with pytest.raises(WeftError, match="made when training starts"):
        Average().applied()


# -- pictures and displays -------------------------------------------------------------------------


def test_profiler_writes_phases_and_functions(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path)
    trainer.extend(Profiler(start=2, count=3, top=5))
    trainer.run()
    text = (tmp_path / "profile.txt").read_text()
    assert text.splitlines()[0].split() == ["phase", "seconds", "share"]
    assert "update" in text
    assert "function calls" in text
    assert (tmp_path / "profile.prof").stat().st_size > 0


def test_profiler_stops_after_an_error(tmp_path: Path) -> None:
    def fail(trainer: Trainer) -> None:
        raise ValueError("stop")

    for _ in range(2):  # a profile left running would make the second one fail
        trainer = make_trainer(tmp_path)
        trainer.extend(Profiler(start=0))
        trainer.extend(fail, trigger=(3, "iteration"))
        with pytest.raises(ValueError, match="stop"):
            trainer.run()


def test_progress_bar(tmp_path: Path) -> None:
    console = pytest.importorskip("rich.console")
    text = io.StringIO()
    trainer = make_trainer(tmp_path)
    shown = console.Console(file=text, force_terminal=True, width=120)
    trainer.extend(ProgressBar(console=shown))
    trainer.extend(Log())
    write = trainer.write
    trainer.run()
    output = text.getvalue()
    assert "100%" in output
    assert "epoch 2" in output
    assert "train/loss" in output
    assert "iteration" in output  # the log's table goes through the bar's console
    assert trainer.write is write


def test_progress_bar_without_an_end_and_after_an_error() -> None:
    console = pytest.importorskip("rich.console")
    shown = console.Console(file=io.StringIO())
    trainer = make_trainer(stop=None)
    trainer.extend(ProgressBar(console=shown))
    trainer.extend(lambda t: 1 / 0, trigger=(7, "iteration"))
    with pytest.raises(ZeroDivisionError):
        trainer.run()
    assert not shown._live_stack


def test_curves_and_confusion(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    trainer = make_trainer(tmp_path, stop=(3, "epoch"))
    trainer.extend(Evaluator(batches(2), ["mse"]))
    trainer.extend(PlotCurves(log_scale=["loss"]))
    matrix = np.array([[3, 1], [0, 2]])
    trainer.extend(lambda t: t.observation.update({"val/confusion_matrix": matrix}), priority=999)
    trainer.extend(PlotConfusion(class_names=["cat", "dog"]))
    trainer.run()
    for name in ("curves.png", "confusion.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert not list(tmp_path.glob(".*"))
    xs, ys = trainer.get_extension("PlotCurves")._series["val/mse"]
    assert xs == [1.0, 2.0, 3.0]
    assert len(ys) == 3


@pytest.mark.parametrize(
    ("matrix", "names", "message"),
    [
        (np.zeros((2, 3)), None, "must be square"),
        (np.zeros((0, 0)), None, "must be square"),
        (np.eye(2), ["a"], "1 class names for 2 classes"),
    ],
)
def test_bad_confusion(matrix: Any, names: Any, message: str) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(WeftError, match=message):
        draw_confusion(matrix, names)


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    trainer = make_trainer(tmp_path)
    images = {
        "gray": np.zeros((4, 4)),
        "one": wf.zeros(3, 4, 4),
        "many": np.zeros((2, 3, 4, 4), np.uint8),
    }
    trainer.extend(TensorBoard(histograms=(1, "epoch"), images=lambda t: images))
    trainer.run()
    (events,) = (tmp_path / "tensorboard").iterdir()
    content = events.read_bytes()
    for tag in (b"train/loss", b"weight/grad", b"bias", b"gray", b"many"):
        assert tag in content


def test_tensorboard_refuses_other_images(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    trainer = make_trainer(tmp_path)
    trainer.extend(TensorBoard(images=lambda t: {"bad": np.zeros(3)}))
    with pytest.raises(WeftError, match=r"summary.image 'bad': must be \(H, W\)"):
        trainer.run()


@pytest.mark.parametrize(
    ("module", "make", "extra"),
    [
        ("rich.progress", ProgressBar, "progress"),
        ("matplotlib.figure", PlotCurves, "plot"),
        ("matplotlib.figure", PlotConfusion, "plot"),
        ("tensorboardX", TensorBoard, "tensorboard"),
    ],
)
def test_missing_package_says_how_to_install(
    monkeypatch: pytest.MonkeyPatch, module: str, make: Any, extra: str
) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(MissingDependencyError, match=rf'pip install "weft\[{extra}\]"'):
        make()
