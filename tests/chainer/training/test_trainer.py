"""Trainers: loops, reports, evaluation, snapshots and their order, on Chainer's names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.chainer.runs import data, network
from weft import chainer
from weft.chainer import training
from weft.chainer.training import extensions, triggers


def trainer_of(out: Path, stop: Any = (2, "epoch"), **options: Any) -> training.Trainer:
    x, t = data()
    dataset = chainer.datasets.TupleDataset(x, t)
    iterator = chainer.iterators.SerialIterator(dataset, 16, **options)
    optimizer = chainer.optimizers.MomentumSGD(0.1).setup(network(chainer))
    updater = training.updaters.StandardUpdater(iterator, optimizer, device=-1)
    return training.Trainer(updater, stop, out=str(out))


def test_a_run_reports_what_links_tell(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path)
    x, t = data()
    held_out = chainer.datasets.TupleDataset(x, t)
    test = chainer.iterators.SerialIterator(held_out, 20, repeat=False, shuffle=False)
    trainer.extend(extensions.Evaluator(test, trainer.updater.get_optimizer("main").target))
    trainer.extend(extensions.LogReport())
    trainer.extend(extensions.observe_lr())
    trainer.extend(extensions.PrintReport(["epoch", "main/loss", "validation/main/accuracy"]))
    trainer.run()
    log = json.loads((tmp_path / "log").read_text())
    assert [row["iteration"] for row in log] == [3, 6]
    names = {"main/loss", "main/accuracy", "validation/main/loss", "validation/main/accuracy"}
    assert names | {"lr", "epoch", "iteration", "elapsed_time"} == set(log[0])
    assert log[1]["main/loss"] < log[0]["main/loss"]


def test_extensions_run_by_priority_and_trigger(tmp_path: Path) -> None:
    seen: list[str] = []
    trainer = trainer_of(tmp_path, (4, "iteration"))

    @training.make_extension(trigger=(2, "iteration"), priority=training.PRIORITY_EDITOR)
    def second(trainer: Any) -> None:
        seen.append(f"second {trainer.updater.iteration}")

    trainer.extend(lambda _: seen.append("last"), name="last", trigger=(4, "iteration"), priority=0)
    trainer.extend(second)
    trainer.extend(second)
    trainer.run()
    assert seen == ["second 2", "second 2", "second 4", "second 4", "last"]
    assert trainer.get_extension("second_1") is second
    with pytest.raises(ValueError, match="extension third not found"):
        trainer.get_extension("third")


def test_shifts_of_numbers(tmp_path: Path) -> None:
    for shift, wanted in (
        (extensions.ExponentialShift("lr", 0.5), 0.1 * 0.5**6),
        (extensions.LinearShift("lr", (1.0, 0.0), (0, 4)), 0.0),
        (extensions.StepShift("lr", 0.5, 2), 0.1 * 0.5**3),
        (extensions.PolynomialShift("lr", 1.0, 12), 0.05),
        (extensions.InverseShift("lr", 1.0, 1.0), 0.1 / 7),
        (extensions.MultistepShift("lr", 0.1, [2, 4], 0.1), 0.001),
        (extensions.WarmupShift("lr", 0.0, 12, 0.1), 0.05),
    ):
        trainer = trainer_of(tmp_path)
        trainer.extend(shift)
        trainer.run()
        assert trainer.updater.get_optimizer("main").lr == pytest.approx(wanted)


def test_a_snapshot_goes_on_where_it_was(tmp_path: Path) -> None:
    whole = trainer_of(tmp_path / "whole", (3, "epoch"), shuffle=False)
    whole.run()
    first = trainer_of(tmp_path / "part", (1, "epoch"), shuffle=False)
    first.extend(extensions.snapshot(), trigger=(1, "epoch"))
    first.run()
    resumed = trainer_of(tmp_path / "part", (3, "epoch"), shuffle=False)
    chainer.serializers.load_npz(str(tmp_path / "part" / "snapshot_iter_3"), resumed)
    assert resumed.updater.iteration == 3
    resumed.run()
    weights = [
        t.updater.get_optimizer("main").target.predictor[0].W.array for t in (whole, resumed)
    ]
    np.testing.assert_array_equal(*weights)


def test_values_decide_when_to_fire_and_to_stop(tmp_path: Path) -> None:
    best: list[int] = []
    stop = triggers.EarlyStoppingTrigger((1, "iteration"), "main/loss", patience=2)
    trainer = trainer_of(tmp_path, stop)
    trainer.updater.get_optimizer("main").lr = 30.0  # the loss rises
    trigger = triggers.MinValueTrigger("main/loss", (1, "iteration"))
    trainer.extend(lambda t: best.append(t.updater.iteration), name="best", trigger=trigger)
    trainer.run()
    assert best[0] == 1
    assert trainer.updater.iteration < 10


def test_an_updater_of_two_optimizers(tmp_path: Path) -> None:
    class Both(training.updaters.StandardUpdater):
        def update_core(self) -> None:
            x, t = self.converter(self.get_iterator("main").next(), self.device)
            for name in ("a", "b"):
                optimizer = self.get_optimizer(name)
                optimizer.update(optimizer.target, x, t)

    x, t = data()
    iterator = chainer.iterators.SerialIterator(chainer.datasets.TupleDataset(x, t), 16)
    optimizers = {n: chainer.optimizers.Adam().setup(network(chainer)) for n in ("a", "b")}
    trainer = training.Trainer(Both(iterator, optimizers), (3, "iteration"), out=str(tmp_path))
    trainer.extend(extensions.LogReport(trigger=(1, "iteration")))
    trainer.run()
    row = trainer.get_extension("LogReport").log[0]
    assert row["a/loss"] == row["b/loss"]


def test_diverging_parameters_end_the_run(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, (5, "epoch"))
    target = trainer.updater.get_optimizer("main").target
    target.predictor[0].W.array[0, 0] = np.nan
    trainer.extend(extensions.FailOnNonNumber())
    with pytest.raises(RuntimeError, match="parameters in optimizer 'main' diverge"):
        trainer.run()


def test_a_graph_is_dumped(tmp_path: Path) -> None:
    x, t = data()
    model = chainer.links.Classifier(chainer.links.Linear(None, 3))
    iterator = chainer.iterators.SerialIterator(chainer.datasets.TupleDataset(x, t), 16)
    optimizer = chainer.optimizers.SGD().setup(model)
    updater = training.updaters.StandardUpdater(iterator, optimizer)
    trainer = training.Trainer(updater, (2, "iteration"), out=str(tmp_path))
    trainer.extend(extensions.DumpGraph("main/loss"))
    trainer.run()
    assert (tmp_path / "cg.dot").read_text().startswith("digraph")


def test_an_evaluator_refuses_to_go_on_for_ever() -> None:
    rows = chainer.datasets.TupleDataset(*data())
    endless = chainer.iterators.SerialIterator(rows, 16)
    with pytest.raises(ValueError, match=r"repeat=True; make it with SerialIterator\("):
        extensions.Evaluator(endless, network(chainer))()
