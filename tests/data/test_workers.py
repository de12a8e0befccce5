"""Worker processes: errors, deaths, interrupts and leaks."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentError, ArgumentTypeError
from weft.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    TensorDataset,
    WorkerError,
    WorkerTimeoutError,
    transforms,
    worker_info,
)
from weft.data.errors import WorkerTraceback

ROOT = Path(__file__).resolve().parents[2]
HAS_PROC = Path("/proc/self/fd").is_dir()


class Failing(Dataset):
    """A dataset that does something at item 7."""

    def __init__(self, act: Any, n: int = 20) -> None:
        self.act, self.n = act, n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> int:
        if i == 7:
            self.act()
        return i


class PeculiarError(Exception):
    """An exception that cannot be pickled back."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__("peculiar")


def no_children() -> bool:
    """Tell whether all workers are gone; finished ones are reaped on the way."""
    return not multiprocessing.active_children()


def raise_lookup() -> None:
    raise LookupError("no such row")


@pytest.mark.parametrize("workers", [0, 2])
def test_error_of_an_item_keeps_its_type_and_names_the_item(workers: int) -> None:
    loader = DataLoader(Failing(raise_lookup), 2, num_workers=workers)
    iterator = iter(loader)
    assert [next(iterator).tolist() for _ in range(3)] == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(LookupError, match="no such row") as caught:
        next(iterator)
    notes = " ".join(caught.value.__notes__)
    assert "while making item 7 (batch 3 of epoch 0)" in notes
    if workers:
        assert "raised in DataLoader worker 1" in notes
        assert isinstance(caught.value.__cause__, WorkerTraceback)
        assert "raise_lookup" in str(caught.value.__cause__)  # the worker's own line
    with pytest.raises(StopIteration):
        next(iterator)
    assert no_children()
    assert loader.state_dict()["batch"] == 3


def test_error_with_persistent_workers_lets_the_loader_start_anew() -> None:
    loader = DataLoader(Failing(raise_lookup), 2, num_workers=2, persistent_workers=True)
    for _ in range(2):
        with pytest.raises(LookupError):
            list(loader)


def raise_peculiar() -> None:
    raise PeculiarError(1, 2)


def test_error_that_cannot_be_pickled() -> None:
    with pytest.raises(WorkerError, match="PeculiarError: peculiar") as caught:
        list(DataLoader(Failing(raise_peculiar), 2, num_workers=1))
    assert "raise_peculiar" in str(caught.value.__cause__)


def test_exit_in_a_worker_is_an_error_here() -> None:
    with pytest.raises(WorkerError, match="SystemExit: 3"):
        list(DataLoader(Failing(lambda: sys.exit(3)), 2, num_workers=1))


@pytest.mark.parametrize("workers", [0, 1])
def test_stop_iteration_does_not_end_the_epoch_silently(workers: int) -> None:
    def stop() -> None:
        next(iter([]))

    with pytest.raises(RuntimeError, match="StopIteration"):
        list(DataLoader(Failing(stop), 2, num_workers=workers))


@pytest.mark.parametrize("workers", [0, 1])
def test_batch_that_cannot_be_collated(workers: int) -> None:
    loader = DataLoader([np.zeros(2), np.zeros(3)], 2, num_workers=workers)
    with pytest.raises(ValueError, match="same shape") as caught:
        list(loader)
    assert "batch 0 of epoch 0" in " ".join(caught.value.__notes__)


def test_batch_that_cannot_be_sent() -> None:
    loader = DataLoader([1, 2], 2, num_workers=1, collate_fn=lambda items: lambda: items)
    with pytest.raises(Exception, match=r"pickle|local object") as caught:
        list(loader)
    assert "raised in DataLoader worker 0" in " ".join(caught.value.__notes__)


@pytest.mark.parametrize("workers", [0, 2])
def test_error_in_a_stream_names_the_place(workers: int) -> None:
    class Broken(IterableDataset):
        def __iter__(self) -> Iterator[int]:
            yield from range(5)
            raise LookupError("torn tape")

    with pytest.raises(LookupError, match="torn tape") as caught:
        list(DataLoader(Broken(), 2, num_workers=workers))
    assert "item 5 of the stream" in " ".join(caught.value.__notes__)


def test_killed_worker_is_reported() -> None:
    loader = DataLoader(Failing(lambda: os.kill(os.getpid(), signal.SIGKILL)), 2, num_workers=2)
    with pytest.raises(WorkerError, match=r"worker 1 \(pid \d+\).*batch \d.*SIGKILL.*memory"):
        list(loader)
    assert no_children()


def test_worker_that_exits_is_reported() -> None:
    loader = DataLoader(Failing(lambda: os._exit(5)), 2, num_workers=2)
    with pytest.raises(WorkerError, match="exited with code 5"):
        list(loader)


def test_worker_killed_from_outside_while_sending() -> None:
    loader = DataLoader(
        TensorDataset(np.zeros((8, 1 << 20))), 1, num_workers=1, persistent_workers=True
    )
    iterator = iter(loader)
    next(iterator)
    (worker,) = multiprocessing.active_children()
    os.kill(worker.pid or 0, signal.SIGKILL)
    with pytest.raises(WorkerError, match="SIGKILL"):
        list(iterator)
    assert len(list(loader)) == 8


def test_timeout() -> None:
    loader = DataLoader(Failing(lambda: time.sleep(60)), 2, num_workers=2, timeout=0.2)
    with pytest.raises(WorkerTimeoutError, match=r"batch 3 of epoch 0.*timeout=0.2.*\[6, 7\]"):
        list(loader)
    assert no_children()


def test_break_ends_the_workers() -> None:
    loader = DataLoader(TensorDataset(np.arange(1000)), 1, num_workers=2)
    for _ in loader:
        assert len(multiprocessing.active_children()) == 2
        break
    gc.collect()
    assert no_children()


def test_deleting_a_loader_ends_persistent_workers() -> None:
    loader = DataLoader(TensorDataset(np.arange(10)), 1, num_workers=2, persistent_workers=True)
    list(loader)
    pids = {child.pid for child in multiprocessing.active_children()}
    list(loader)
    assert {child.pid for child in multiprocessing.active_children()} == pids
    assert len(pids) == 2
    del loader
    gc.collect()
    assert no_children()


class Shards(IterableDataset):
    """A stream that each worker reads its own part of."""

    shards_itself = True

    def __iter__(self) -> Iterator[int]:
        info = worker_info()
        assert info is not None
        return iter(range(info.id, 11, info.num_workers))


@pytest.mark.parametrize("at", range(7))
@pytest.mark.parametrize("kind", ["items", "shards"])
def test_paused_iteration_has_no_workers_and_goes_on(kind: str, at: int) -> None:
    dataset = Shards() if kind == "shards" else TensorDataset(np.arange(12))
    loader = DataLoader(dataset, 2, num_workers=2)
    whole = [batch.tolist() for batch in loader]
    iterator = iter(loader)
    batches = [next(iterator).tolist() for _ in range(min(at, len(whole)))]
    iterator.pause()
    assert no_children()
    assert batches + [batch.tolist() for batch in iterator] == whole
    assert no_children()


def test_pause_leaves_persistent_and_absent_workers_alone() -> None:
    for options in ({}, {"num_workers": 2, "persistent_workers": True}):
        iterator = iter(DataLoader(TensorDataset(np.arange(4)), 2, **options))
        next(iterator)
        before = multiprocessing.active_children()
        iterator.pause()
        assert multiprocessing.active_children() == before
        assert next(iterator).tolist() == [2, 3]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_start_methods(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    images = np.arange(6 * 4 * 4, dtype=np.float32).reshape(6, 1, 4, 4) / 96
    dataset = TensorDataset(images, np.arange(6)).map(transforms.RandomCrop(3), key=0)
    runs = [
        [
            batch[0].tolist()
            for batch in DataLoader(
                dataset,
                2,
                seed=1,
                num_workers=workers,
                multiprocessing_context=method if workers else None,
            )
        ]
        for workers in (0, 1)
    ]
    assert runs[0] == runs[1]


def test_what_cannot_be_sent_to_a_spawned_worker_is_explained() -> None:
    dataset = TensorDataset(np.arange(3)).map(lambda x: x)
    loader = DataLoader(dataset, 1, num_workers=1, multiprocessing_context="spawn")
    with pytest.raises(ArgumentTypeError, match=r"cannot be sent to a worker.*no lambdas"):
        list(loader)


def test_workers_inside_a_worker_are_refused() -> None:
    class Nested(Dataset):
        def __len__(self) -> int:
            return 1

        def __getitem__(self, i: int) -> Any:
            return list(DataLoader(TensorDataset(np.arange(3)), 1, num_workers=1))

    with pytest.raises(ArgumentError, match="use num_workers=0"):
        list(DataLoader(Nested(), 1, num_workers=1))


def test_large_empty_and_odd_arrays_arrive_unchanged() -> None:
    items = [
        {
            "big": np.arange(1 << 19, dtype=np.float64) + i,
            "empty": np.zeros((0, 3), np.int8),
            "strided": np.arange(12).reshape(3, 4).T + i,
            "half": wf.tensor([1.5, float("nan")], dtype=wf.float16),
            "flag": np.array(True),
            "text": f"item {i}",
        }
        for i in range(3)
    ]
    here, there = (list(DataLoader(items, 2, num_workers=w)) for w in (0, 1))
    for a, b in zip(here, there, strict=True):
        assert a.keys() == b.keys()
        assert a["text"] == b["text"]
        for key in ("big", "empty", "strided", "half", "flag"):
            assert a[key].dtype == b[key].dtype
            np.testing.assert_array_equal(a[key].numpy(), b[key].numpy())


@pytest.mark.skipif(not HAS_PROC, reason="counts open files in /proc")
def test_no_files_stay_open() -> None:
    def open_files() -> int:
        return len(os.listdir("/proc/self/fd"))

    loader = DataLoader(TensorDataset(np.arange(20)), 2, num_workers=2)
    list(loader)
    before = open_files()
    for _ in range(5):
        list(loader)
        next(iter(loader))
        gc.collect()
    assert open_files() == before


class Rows(Dataset):
    """100,000 small items, made one by one."""

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, i: int) -> np.ndarray[Any, Any]:
        return np.full(8, i, np.float32)


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not HAS_PROC, reason="reads memory from /proc")
def test_memory_does_not_grow_over_five_epochs_of_100_000_items() -> None:
    loader = DataLoader(Rows(), 256, shuffle=True, num_workers=2, persistent_workers=True, seed=0)
    used = []
    for _ in range(5):
        seen = 0
        total = 0.0
        for batch in loader:
            seen += len(batch)
            total += float(batch[:, 0].sum())
        assert seen == 100_000
        assert total == pytest.approx(100_000 * 99_999 / 2, rel=1e-6)
        workers = [child.pid for child in multiprocessing.active_children()]
        used.append(
            [resident_bytes(pid) for pid in (os.getpid(), *map(int, filter(None, workers)))]
        )
    growth = np.max(np.array(used[4]) - np.array(used[1]))  # the first epoch warms things up
    assert growth < 8 << 20, used


def test_resume_in_the_middle_of_100_000_items() -> None:
    def make() -> DataLoader:
        return DataLoader(Rows(), 256, shuffle=True, num_workers=2, seed=0)

    loader, later = make(), (1, 200, 389)
    states, firsts = {}, {}
    for number, batch in enumerate(loader):
        if number in later:
            firsts[number] = batch.numpy()
        if number + 1 in later:
            states[number + 1] = loader.state_dict()
    for number in later:
        again = make()
        again.load_state_dict(states[number])
        iterator = iter(again)
        np.testing.assert_array_equal(next(iterator).numpy(), firsts[number])
        if number == later[-1]:
            assert len(list(iterator)) == 391 - number - 1


# -- interrupts, in processes of their own --------------------------------------------------------

PROGRAM = """
    import sys, time
    import numpy as np
    from weft.data import DataLoader, Dataset

    class Slow(Dataset):
        def __len__(self):
            return 10_000

        def __getitem__(self, i):
            time.sleep(0.002)
            return np.full(1000, i)

    loader = DataLoader(Slow(), 4, num_workers=2, persistent_workers={persistent})
    try:
        for number, batch in enumerate(loader):
            if number == 5:
                import multiprocessing
                print(*(child.pid for child in multiprocessing.active_children()), flush=True)
    except KeyboardInterrupt:
        print("interrupted after", loader.batches_done > 5, flush=True)
        {after}
        sys.exit(7)
"""


def start(persistent: bool = False, after: str = "pass") -> tuple[subprocess.Popen[str], list[int]]:
    program = dedent(PROGRAM).format(persistent=persistent, after=after)
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a group of its own, which Ctrl-C reaches as a whole
    )
    assert process.stdout is not None
    return process, [int(pid) for pid in process.stdout.readline().split()]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


def gone(pids: list[int]) -> bool:
    for _ in range(200):
        if not any(map(alive, pids)):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="process groups are POSIX")
@pytest.mark.parametrize("persistent", [False, True])
def test_ctrl_c_reaches_the_main_process_only(persistent: bool) -> None:
    process, workers = start(persistent)
    assert len(workers) == 2
    time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 7, errors
    assert "interrupted after True" in out
    assert errors == ""  # no worker has printed a traceback
    assert gone(workers)


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="process groups are POSIX")
def test_loader_works_again_after_ctrl_c() -> None:
    after = "print('next', next(iter(loader)).shape, flush=True)"
    process, workers = start(True, after)
    os.killpg(process.pid, signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert "next (4, 1000)" in out, errors
    assert gone(workers)


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="process groups are POSIX")
def test_workers_end_when_the_main_process_is_killed() -> None:
    process, workers = start()
    process.kill()
    process.communicate(timeout=60)
    assert len(workers) == 2
    assert gone(workers)
