"""CheckpointManager: which checkpoints are kept, found and skipped."""

import math
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import ArgumentError, ArgumentTypeError
from weft.core.tensor import wrap
from weft.io import CheckpointError, CheckpointManager, CheckpointWarning


def steps(manager: CheckpointManager) -> list[int]:
    return [checkpoint.step for checkpoint in manager.checkpoints()]


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def saved(directory: Path, *numbers: int, **options: Any) -> CheckpointManager:
    manager = CheckpointManager(directory, **options)
    for number in numbers:
        manager.save(number, {"step": number, "w": wrap(np.full(3, number))})
    return manager


def test_save_and_load(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path / "runs" / "a")
    assert manager.latest() is None
    assert manager.checkpoints() == []
    path = manager.save(100, {"x": 1}, {"loss": 0.5, "accuracy": np.float32(0.25)})
    assert path.name == "step-00000100"
    assert manager.latest() == path
    assert manager.load() == manager.load(path) == manager.load(str(path)) == {"x": 1}
    (checkpoint,) = manager.checkpoints()
    assert checkpoint == (path, 100, {"loss": 0.5, "accuracy": 0.25}, 1)


def test_nothing_to_load(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no good checkpoint"):
        CheckpointManager(tmp_path).load()


def test_last_are_kept(tmp_path: Path) -> None:
    manager = saved(tmp_path, 1, 2, 3, 4, 5, keep_last=2)
    assert steps(manager) == [4, 5]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["step-00000004", "step-00000005"]


def test_all_are_kept(tmp_path: Path) -> None:
    assert steps(saved(tmp_path, *range(6), keep_last=None)) == list(range(6))


@pytest.mark.parametrize(("mode", "kept"), [("min", [2, 4, 6]), ("max", [1, 5, 6])])
def test_best_are_kept(tmp_path: Path, mode: Any, kept: list[int]) -> None:
    manager = CheckpointManager(tmp_path, keep_last=1, keep_best=2, metric="loss", mode=mode)
    for step, loss in enumerate([0.9, 0.1, 0.5, 0.2, 0.8, 0.4], start=1):
        manager.save(step, {}, {"loss": loss})
    assert steps(manager) == kept
    best = manager.best()
    assert best is not None
    assert best.name.endswith("2" if mode == "min" else "1")


def test_metrics_that_do_not_count(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path, keep_last=1, keep_best=1, metric="loss")
    manager.save(1, {}, {"loss": math.nan})
    assert manager.best() is None
    manager.save(2, {}, {"loss": math.inf})
    manager.save(3, {}, {"other": -1.0})
    manager.save(4, {})
    assert steps(manager) == [2, 4]
    assert manager.load(manager.best()) == {}


def test_newest_of_equals_is_best(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path, metric="loss")
    for step in (1, 2, 3):
        manager.save(step, {}, {"loss": 1.0})
    assert str(manager.best()).endswith("3")


@given(losses=st.lists(st.floats(0, 9), max_size=8), last=st.integers(1, 3), best=st.integers(0, 3))
def test_kept_are_exactly_the_last_and_the_best(
    tmp_path_factory: pytest.TempPathFactory, losses: list[float], last: int, best: int
) -> None:
    directory = tmp_path_factory.mktemp("runs")
    manager = CheckpointManager(directory, keep_last=last, keep_best=best, metric="loss")
    for step, loss in enumerate(losses):
        manager.save(step, {}, {"loss": loss})
    order = sorted(range(len(losses)), key=lambda step: (losses[step], -step))
    assert set(steps(manager)) == {*order[:best], *range(len(losses))[-last:]}


def test_order_is_that_of_writing(tmp_path: Path) -> None:
    """Who goes back to step 10 and trains on wants what was written since."""
    manager = saved(tmp_path, 10, 20, 30, keep_last=2)
    manager.save(15, {"step": 15})
    assert steps(manager) == [30, 15]
    assert manager.load() == {"step": 15}


def test_same_step_is_replaced(tmp_path: Path) -> None:
    manager = saved(tmp_path, 1, 2)
    manager.save(1, {"again": True})
    assert steps(manager) == [2, 1]
    assert manager.load() == {"again": True}
    assert len(list(tmp_path.iterdir())) == 2


def test_two_managers_see_the_same(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2)
    assert saved(tmp_path, 3).checkpoints()[-1].sequence == 3


def test_large_steps_are_ordered(tmp_path: Path) -> None:
    manager = saved(tmp_path, 99_999_999, 100_000_000, 10**12)
    assert steps(manager) == [99_999_999, 100_000_000, 10**12]


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("x")
    (tmp_path / "step-5").mkdir()
    (tmp_path / "step-00000007").write_text("a file")
    saved(tmp_path, 1, 2, 3, keep_last=1)
    names = {"config.toml", "step-5", "step-00000007", "step-00000003"}
    assert {entry.name for entry in tmp_path.iterdir()} == names


# -- damage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda path: flip(path / "state.safetensors"), "checksum differs"),
        (lambda path: flip(path / "state.json"), "checksum differs"),
        (lambda path: flip(path / "manifest.json"), "valid JSON"),
        (lambda path: (path / "manifest.json").unlink(), "no manifest.json"),
        (lambda path: (path / "state.json").unlink(), "state.json is missing"),
        (lambda path: os.truncate(path / "state.safetensors", 9), "9 bytes instead of"),
        (lambda path: os.truncate(path / "manifest.json", 0), "valid JSON"),
    ],
)
def test_damaged_checkpoint_is_skipped_with_the_reason(
    tmp_path: Path, spoil: Any, reason: str
) -> None:
    manager = saved(tmp_path, 1, 2)
    newest = manager.latest()
    assert newest is not None
    spoil(newest)
    with pytest.warns(CheckpointWarning, match=rf"skipped the checkpoint step-00000002.*{reason}"):
        found = manager.latest()
    assert found == tmp_path / "step-00000001"
    assert manager.load(found)["step"] == 1
    with pytest.raises(ValueError, match=reason):
        manager.load(newest)


def test_all_damaged(tmp_path: Path) -> None:
    manager = saved(tmp_path, 1, 2)
    for path in tmp_path.iterdir():
        flip(path / "state.safetensors")
    with pytest.warns(CheckpointWarning, match="skipped"):
        assert manager.latest() is None


def test_damaged_best_is_skipped(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path, metric="loss")
    first, second = (manager.save(step, {}, {"loss": -step}) for step in (1, 2))
    flip(second / "state.json")
    with pytest.warns(CheckpointWarning, match="step-00000002"):
        assert manager.best() == first


def test_saving_goes_on_beside_a_damaged_one(tmp_path: Path) -> None:
    manager = saved(tmp_path, 1, 2, keep_last=2)
    (tmp_path / "step-00000002" / "manifest.json").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        manager.save(3, {"step": 3})
    with pytest.warns(CheckpointWarning, match="step-00000002"):
        assert steps(manager) == [1, 3]


def test_damaged_step_can_be_saved_again(tmp_path: Path) -> None:
    manager = saved(tmp_path, 1, 2)
    flip(tmp_path / "step-00000002" / "state.json")
    manager.save(2, {"step": "new"})
    assert manager.load() == {"step": "new"}


def test_interrupted_replacement_is_found(tmp_path: Path) -> None:
    """A crash between the two renames leaves the old directory under its other name."""
    manager = saved(tmp_path, 1)
    (tmp_path / "step-00000001").rename(tmp_path / ".step-00000001.previous")
    assert manager.load()["step"] == 1
    assert manager.load(tmp_path / "step-00000001")["step"] == 1
    manager.save(2, {"step": 2})
    assert steps(manager) == [1, 2]
    shutil.copytree(tmp_path / "step-00000001", tmp_path / ".step-00000002.previous")
    manager.save(3, {"step": 3})
    names = ["step-00000001", "step-00000002", "step-00000003"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == names


def test_checkpoint_of_another_writer_is_no_candidate(tmp_path: Path) -> None:
    manager = saved(tmp_path / "a", 1)
    shutil.copytree(tmp_path / "a" / "step-00000001", tmp_path / "b" / "step-00000009")
    other = CheckpointManager(tmp_path / "b")
    assert steps(other) == steps(manager)


# -- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep_last": 0}, "keep_last must be an integer from 1 on, or None for all. Received: 0"),
        ({"keep_last": -1}, "keep_last"),
        ({"keep_last": 1.5}, "keep_last.*1.5"),
        ({"keep_last": True}, "keep_last.*True"),
        ({"keep_best": -1, "metric": "x"}, "keep_best must be an integer from 0 on"),
        ({"keep_best": 1}, "keep_best needs the name of a metric"),
        ({"mode": "smallest"}, "mode must be 'min' or 'max'. Received: 'smallest'"),
    ],
)
def test_bad_options(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        CheckpointManager(tmp_path, **options)


def test_bad_arguments(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path)
    with pytest.raises(ArgumentTypeError, match=r"step must be an integer\. Received: 1\.5"):
        manager.save(1.5, {})
    with pytest.raises(ArgumentError, match="step must not be negative"):
        manager.save(-1, {})
    with pytest.raises(ArgumentTypeError, match="metrics must be a dictionary"):
        manager.save(1, {}, [1])
    with pytest.raises(ArgumentTypeError, match="metrics must be numbers"):
        manager.save(1, {}, {"loss": "low"})
    with pytest.raises(ArgumentError, match=r"best\(\) needs"):
        manager.best()
    assert list(tmp_path.iterdir()) == []
    manager.save(np.int64(3), {})
    assert steps(manager) == [3]
