"""The loop: order of events, errors, interrupts, and resumption."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft as wf
from tests.train.helpers import Affine, assert_same_weights, make_trainer, squared_error
from weft.core.errors import WeftError
from weft.data import DataLoader, TensorDataset
from weft.optim import Adam, lr
from weft.train import (
    Average,
    Checkpoint,
    EarlyStopping,
    Evaluator,
    Extension,
    LearningRate,
    Log,
    Schedule,
    Trainer,
    TrainingMetrics,
    Updater,
    make_extension,
    read_log,
)


class Recorder(Extension):
    """Writes down what happens to it."""

    def __init__(self, events: list[str], label: str = "", fails: str = "") -> None:
        self.events, self.label, self.fails = events, label, fails

    def _note(self, event: str) -> None:
        self.events.append(self.label + event)
        if event == self.fails:
            raise ValueError(f"{self.label} failed in {event}")

    def initialize(self, trainer: Trainer) -> None:
        self._note("initialize")

    def observe(self, trainer: Trainer) -> None:
        self._note("observe")

    def __call__(self, trainer: Trainer) -> None:
        self._note("call")

    def finish(self, trainer: Trainer) -> None:
        self._note("finish")

    def on_error(self, trainer: Trainer, error: BaseException) -> None:
        self._note("on_error")

    def finalize(self) -> None:
        self._note("finalize")


def test_life_of_an_extension() -> None:
    events: list[str] = []
    trainer = make_trainer(stop=(3, "iteration"))
    trainer.extend(Recorder(events), trigger=(2, "iteration"))
    trainer.run()
    assert events == ["initialize", "observe", "observe", "call", "observe", "finish", "finalize"]


def test_descending_priority_then_order_of_adding() -> None:
    seen: list[str] = []
    trainer = make_trainer(stop=(1, "iteration"))
    for name, priority in [("low", 1), ("first", 50), ("second", 50), ("high", 99)]:
        trainer.extend(lambda t, n=name: seen.append(n), name=name, priority=priority)
    trainer.run()
    assert seen == ["high", "first", "second", "low"]
    assert list(trainer.extensions) == seen


def test_fresh_observation_in_each_iteration() -> None:
    found = []
    trainer = make_trainer(stop=(2, "iteration"))
    trainer.extend(lambda t: t.observation.update(extra=t.iteration), priority=9, name="a")
    trainer.extend(lambda t: found.append(t.observation), priority=1, name="b")
    trainer.run()
    assert found[0] is not found[1]
    assert found[0].keys() == {"train/loss", "extra"}


@pytest.mark.parametrize("where", ["initialize", "observe", "call", "finish"])
def test_error_reaches_every_extension(where: str) -> None:
    events: list[str] = []
    trainer = make_trainer(stop=(2, "iteration"))
    trainer.extend(Recorder(events, "a."), priority=3)
    trainer.extend(Recorder(events, "b.", fails=where), priority=2)
    trainer.extend(Recorder(events, "c."), priority=1)
    with pytest.raises(ValueError, match=r"b. failed"):
        trainer.run()
    tail = ["a.on_error", "b.on_error", "c.on_error", "a.finalize", "b.finalize", "c.finalize"]
    assert events[-6:] == tail


def test_error_in_on_error_and_finalize_does_not_hide_the_first() -> None:
    events: list[str] = []
    trainer = make_trainer(stop=(2, "iteration"))
    trainer.extend(Recorder(events, "a.", fails="call"))
    trainer.extend(Recorder(events, "b.", fails="on_error"))
    trainer.extend(Recorder(events, "c.", fails="finalize"))
    with pytest.raises(ValueError, match=r"a. failed in call") as caught:
        trainer.run()
    assert [note.split(": ")[-1] for note in caught.value.__notes__] == [
        "b. failed in on_error",
        "c. failed in finalize",
    ]
    assert events[-3:] == ["a.finalize", "b.finalize", "c.finalize"]


def test_error_in_finalize_alone_is_raised_after_all_are_done() -> None:
    events: list[str] = []
    trainer = make_trainer(stop=(1, "iteration"))
    trainer.extend(Recorder(events, "a.", fails="finalize"))
    trainer.extend(Recorder(events, "b."))
    with pytest.raises(ValueError, match=r"a. failed in finalize"):
        trainer.run()
    assert events[-2:] == ["a.finalize", "b.finalize"]


def test_error_in_the_update_saves_nothing(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, stop=(2, "epoch"), prepare=fail_after(7))
    trainer.extend(Checkpoint())
    with pytest.raises(RuntimeError, match="bad batch"):
        trainer.run()
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-00000005"]


def fail_after(count: int) -> Any:
    left = [count]

    def prepare(batch: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError("bad batch")
        return batch

    return prepare


def test_request_stop() -> None:
    trainer = make_trainer(stop=None)
    trainer.extend(lambda t: t.request_stop("enough") if t.iteration == 4 else None)
    trainer.run()
    assert (trainer.iteration, trainer.stop_reason) == (4, "enough")


def test_run_goes_on_after_the_end_is_moved() -> None:
    trainer = make_trainer(stop=(1, "epoch"))
    trainer.run()
    trainer.run()
    assert trainer.epoch == 1
    trainer.stop = lambda t: t.epoch >= 3
    trainer.run()
    whole = make_trainer(stop=(3, "epoch"))
    whole.run()
    assert_same_weights(trainer, whole)


# -- Ctrl-C --------------------------------------------------------------------------------------


def press_ctrl_c(trainer: Trainer) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_first_ctrl_c_finishes_the_iteration_and_saves(tmp_path: Path, capfd: Any) -> None:
    events: list[str] = []
    trainer = make_trainer(tmp_path, stop=(9, "epoch"))
    trainer.extend(press_ctrl_c, trigger=(7, "iteration"), priority=999)
    trainer.extend(Recorder(events))
    trainer.extend(Checkpoint())
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    assert trainer.iteration == 7
    assert trainer.stop_reason == "interrupted"
    assert events[-3:] == ["call", "finish", "finalize"]
    assert "press Ctrl-C again" in capfd.readouterr().err
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    resumed = make_trainer(tmp_path, stop=(9, "epoch"))
    resumed.extend(Checkpoint())
    resumed.run(resume="auto")
    whole = make_trainer(stop=(9, "epoch"))
    whole.run()
    assert_same_weights(resumed, whole)


def test_second_ctrl_c_stops_at_once() -> None:
    events: list[str] = []
    trainer = make_trainer(stop=(9, "epoch"))
    trainer.extend(press_ctrl_c, name="one", priority=999)
    trainer.extend(press_ctrl_c, name="two", priority=998)
    trainer.extend(Recorder(events))
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    assert events == ["initialize", "on_error", "finalize"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_runs_in_a_thread_and_leaves_other_handlers_alone() -> None:
    trainer = make_trainer(stop=(1, "epoch"))
    thread = threading.Thread(target=trainer.run)
    thread.start()
    thread.join()
    assert trainer.epoch == 1

    def handler(number: int, frame: Any) -> None: ...

    before = signal.signal(signal.SIGINT, handler)
    try:
        make_trainer(stop=(1, "epoch")).run()
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


# -- resumption ----------------------------------------------------------------------------------


def full_trainer(out: Path, stop: Any, seed: int = 5) -> Trainer:
    """Return a trainer with random data order, dropout, a schedule, and stateful extensions."""
    wf.manual_seed(seed)
    rng = np.random.default_rng(2)
    x = rng.normal(size=(22, 3)).astype("float32")
    data = TensorDataset(x, x[:, :2] * 2)

    class Noisy(Affine):
        def forward(self, x: Any) -> Any:
            noise = wf.rand_like(x) if self.training else 0.5
            return super().forward(x * noise)

    model = Noisy()
    optimizer = Adam(model.parameters(), lr=0.05)
    loader = DataLoader(data, 4, shuffle=True, seed=1)
    trainer = Trainer(Updater(model, optimizer, squared_error, loader), stop=stop, out=out)
    average = Average(0.8)
    for extension in [
        Evaluator(DataLoader(data, 8), ["r2"], average=average),
        average,
        TrainingMetrics(["mae"]),
        LearningRate(),
        Log(console=False),
        EarlyStopping(patience=2, restore_best=True),
        Checkpoint(keep_last=2, keep_best=1, metric="val/loss"),
    ]:
        trainer.extend(extension)
    trainer.extend(Schedule(lr.StepLR(optimizer, 2)), trigger=(0.5, "epoch"))
    return trainer


def without_time(path: Path) -> list[dict[str, Any]]:
    entries = read_log(path / "log.jsonl")
    return [{k: v for k, v in entry.items() if k != "elapsed_time"} for entry in entries]


@pytest.mark.parametrize("cut", [1, 3, 6, 7, 11, 12])
def test_interrupted_run_ends_with_the_same_bits(tmp_path: Path, cut: int) -> None:
    whole = full_trainer(tmp_path / "whole", (4, "epoch"))
    whole.run()
    part = full_trainer(tmp_path / "part", (cut, "iteration"))
    part.run()
    resumed = full_trainer(tmp_path / "part", (4, "epoch"), seed=77)
    resumed.run(resume="auto")
    assert resumed.iteration == whole.iteration
    assert_same_weights(resumed, whole)
    assert without_time(tmp_path / "part") == without_time(tmp_path / "whole")


def test_log_drops_what_the_checkpoint_does_not_know(tmp_path: Path) -> None:
    trainer = full_trainer(tmp_path, (3, "epoch"))
    trainer.run()
    resumed = full_trainer(tmp_path, (4, "epoch"))
    resumed.run(resume=tmp_path / "checkpoints" / "step-00000012")
    assert [entry["iteration"] for entry in read_log(tmp_path / "log.jsonl")] == [6, 12, 18, 24]


def test_resume_auto_without_checkpoint_starts_anew(tmp_path: Path) -> None:
    trainer = full_trainer(tmp_path, (1, "epoch"))
    assert trainer.resume("auto") is False
    trainer.run(resume="auto")
    assert trainer.epoch == 1
    assert full_trainer(tmp_path, (1, "epoch")).resume("auto") is True


def test_state_waits_for_extensions_that_come_later(tmp_path: Path) -> None:
    trainer = full_trainer(tmp_path, (1, "epoch"))
    trainer.run()
    state = trainer.state_dict()
    late = make_trainer_like(trainer)
    late.load_state_dict(state)
    stopping = EarlyStopping(patience=2)
    late.extend(stopping)
    assert stopping.best == trainer.get_extension("EarlyStopping").best


def make_trainer_like(other: Trainer) -> Trainer:
    model = Affine()
    loader = DataLoader(TensorDataset(np.zeros((22, 3)), np.zeros((22, 2))), 4, seed=1)
    updater = Updater(model, Adam(model.parameters()), squared_error, loader)
    return Trainer(updater, stop=(1, "epoch"), out=other.out)


def test_elapsed_time_goes_on() -> None:
    trainer = make_trainer()
    state = {**trainer.state_dict(), "elapsed_time": 100.0}
    trainer.load_state_dict(state)
    assert trainer.elapsed_time == 100.0
    trainer.run()
    assert trainer.elapsed_time > 100.0


# -- arguments -----------------------------------------------------------------------------------


def test_names_are_made_unique() -> None:
    trainer = make_trainer()
    trainer.extend(Log(filename=None))
    trainer.extend(Log(filename=None))
    trainer.extend(make_extension(name="mine")(lambda t: None))
    assert set(trainer.extensions) == {"Log", "Log_1", "mine"}


def test_made_extension_brings_trigger_and_priority() -> None:
    seen = []

    @make_extension(trigger=(2, "iteration"), priority=7)
    def probe(trainer: Trainer) -> None:
        seen.append(trainer.iteration)

    trainer = make_trainer(stop=(5, "iteration"))
    trainer.extend(probe)
    trainer.run()
    assert seen == [2, 4]
    assert trainer.get_extension("probe") is probe


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda t: t.extend(Log), r"an instance. Received: the class Log; write Log\(...\)"),
        (lambda t: t.extend(3), "Received: int"),
        (lambda t: t.extend(Log(), trigger="epoch"), "a trigger must be a pair"),
        (lambda t: t.extend(Log(), priority="high"), "a priority is a number"),
        (lambda t: (t.extend(Log(), name="a"), t.extend(Log(), name="a")), "named 'a' already"),
        (lambda t: t.get_extension("log"), "no extension 'log'; there are: none"),
        (lambda t: t.out_path("x"), r"needs a directory: Trainer\(out=...\)"),
        (lambda t: t.resume("auto"), "needs the extension Checkpoint"),
        (lambda t: t.load_state_dict({}), "takes what state_dict returned"),
        (lambda t: t.load_state_dict(3), "takes what state_dict returned"),
    ],
)
def test_bad_arguments(act: Any, message: str) -> None:
    with pytest.raises(WeftError, match=message):
        act(make_trainer())


# -- worker processes of the loader ----------------------------------------------------------------


def trainer_with_workers(workers: int, end: int = 5) -> Trainer:
    data = TensorDataset(wf.arange(36, dtype=wf.float32).reshape(12, 3), wf.ones(12, 2))
    loader = DataLoader(data, 2, shuffle=True, seed=4, num_workers=workers)
    return make_trainer(stop=(end, "iteration"), loader=loader)


@pytest.mark.parametrize("first", [2, 6])  # in the middle of an epoch, and at its end
def test_ended_run_leaves_no_workers_and_goes_on_where_it_was(first: int) -> None:
    whole, parted = trainer_with_workers(0, 9), trainer_with_workers(2, first)
    whole.run()
    parted.run()
    assert not multiprocessing.active_children()  # though the trainer lives, and could go on
    parted.stop = whole.stop
    parted.run()
    assert not multiprocessing.active_children()
    assert parted.epoch_detail == whole.epoch_detail
    assert_same_weights(parted, whole)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_failed_run_leaves_no_workers(error: type[BaseException]) -> None:
    trainer = trainer_with_workers(2)

    @trainer.extend(trigger=(2, "iteration"))
    def fail(trainer: Trainer) -> None:
        raise error

    with pytest.raises(error):
        trainer.run()
    assert not multiprocessing.active_children()


def test_running_twice_at_once_is_refused() -> None:
    trainer = make_trainer()
    trainer.extend(lambda t: t.run())
    with pytest.raises(WeftError, match="running already"):
        trainer.run()
