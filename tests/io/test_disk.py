"""Full disks, read-only directories and failing system calls: a clear error, and nothing lost."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import weft.io as wio
from weft.io import CheckpointManager, CheckpointWarning, SaveError, disk

ROOT = Path(__file__).resolve().parents[2]

# Saves a small checkpoint and file, then larger ones that must fail, in the directory argv[1].
PROGRAM = """
    import os, sys, warnings
    import numpy as np
    import weft.io as wio
    warnings.simplefilter("error")
    where = sys.argv[1]
    manager = wio.CheckpointManager(where, keep_last=1)
    manager.save(1, {"w": np.ones(10)})
    wio.save(where + "/x.safetensors", {"w": np.ones(10)})
    BEFORE
    for attempt in range(3):
        for work in (
            lambda: manager.save(2, {"w": np.ones(SIZE)}),
            lambda: manager.save(1, {"w": np.ones(SIZE)}),
            lambda: wio.save(where + "/x.safetensors", {"w": np.ones(SIZE)}),
        ):
            try:
                work()
            except wio.SaveError as error:
                print(error.errno, error)
            else:
                print("saved")
    assert manager.load()["w"].tolist() == [1.0] * 10
    assert wio.load(where + "/x.safetensors")["w"].tolist() == [1.0] * 10
    assert sorted(os.listdir(where)) == ["step-00000001", "x.safetensors"], os.listdir(where)
"""


def run(prefix: list[str], directory: Path, before: str, size: int) -> list[str]:
    program = dedent(PROGRAM).replace("SIZE", str(size)).replace("BEFORE", before)
    command = [*prefix, sys.executable, "-c", program, str(directory)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) == 9
    return lines


def mount_prefix(directory: Path) -> list[str]:
    """Return a command that gives its arguments a small file system of their own."""
    script = 'mount -t tmpfs -o size=1m tmpfs "$0" && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, str(directory)]


def require_mounts(directory: Path) -> list[str]:
    prefix = mount_prefix(directory)
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not mount")
    return prefix


def test_disk_is_full(tmp_path: Path) -> None:
    lines = run(require_mounts(tmp_path), tmp_path, "", 1_000_000)
    for line in lines:
        assert line.startswith(f"{errno.ENOSPC} ")
        assert "the disk is full: free some space" in line
        assert "MB free" in line
        assert "what was saved before is intact" in line


def test_file_system_is_read_only(tmp_path: Path) -> None:
    remount = "import subprocess; subprocess.run(['mount', '-o', 'remount,ro', where], check=True)"
    for line in run(require_mounts(tmp_path), tmp_path, remount, 10):
        assert line.startswith(f"{errno.EROFS} ")
        assert "read-only: choose another directory" in line


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
def test_file_size_limit(tmp_path: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"
    for line in run([], tmp_path, limit, 1000):
        assert line.startswith(f"{errno.EFBIG} ")
        assert "limit allows" in line


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="POSIX permissions")
def test_directory_is_not_writable(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path)
    manager.save(1, {"x": 1})
    tmp_path.chmod(0o555)
    try:
        if os.access(tmp_path, os.W_OK):
            pytest.skip("this user may write anywhere")
        with pytest.raises(SaveError, match="not writable: choose another") as caught:
            manager.save(2, {"x": 2})
        assert caught.value.errno == errno.EACCES
        assert manager.load() == {"x": 1}
    finally:
        tmp_path.chmod(0o755)


# Which system calls the two ways of saving make.
CALLS = [("state", call) for call in ("mkdir", "open", "fsync", "rename")]
CALLS += [("file", call) for call in ("mkdir", "open", "fsync", "replace")]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EIO])
@pytest.mark.parametrize(("what", "call"), CALLS)
def test_any_failing_call_keeps_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, call: str, code: int
) -> None:
    manager = CheckpointManager(tmp_path, keep_last=1)
    file = tmp_path / "x.safetensors"

    def save(value: int) -> None:
        if what == "state":
            manager.save(1, {"x": value})
        else:
            wio.save(file, {"x": np.full(1, value)})

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise OSError(code, os.strerror(code))

    save(1)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(SaveError, match=os.strerror(code)) as caught:
            save(2)
    assert caught.value.errno == code
    assert (manager.load()["x"] if what == "state" else wio.load(file)["x"].item()) == 1
    save(3)  # removes what could not be removed while os.open failed
    assert len(list(tmp_path.iterdir())) == 1


def test_failure_between_the_renames_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wio.save_state(tmp_path / "c", {"x": 1})
    rename = os.rename

    def fail_second(source: Path, target: Path) -> None:
        if ".tmp-" in source.name:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", fail_second)
        with pytest.raises(SaveError, match="Input/output error"):
            wio.save_state(tmp_path / "c", {"x": 2})
    assert wio.load_state(tmp_path / "c") == {"x": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["c"]


def test_interrupt_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wio.save_state(tmp_path / "c", {"x": 1})

    def interrupt(*args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            wio.save_state(tmp_path / "c", {"x": 2})
    assert wio.load_state(tmp_path / "c") == {"x": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["c"]


def test_old_checkpoint_that_cannot_be_removed_is_only_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = CheckpointManager(tmp_path, keep_last=1)
    manager.save(1, {"x": 1})
    rename = os.rename

    def fail_trash(source: Path, target: Path) -> None:
        if ".trash-" in target.name:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail_trash)
    with pytest.warns(CheckpointWarning, match="cannot remove the old checkpoint"):
        manager.save(2, {"x": 2})
    assert manager.load() == {"x": 2}


def test_directory_sync_may_be_unsupported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def refuse_directories(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_directories)
    wio.save_state(tmp_path / "c", {"x": 1})
    assert wio.load_state(tmp_path / "c") == {"x": 1}


# -- leftovers of dead writers ---------------------------------------------------------------------


def dead_process() -> int:
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.skipif(os.name == "nt", reason="Windows cannot ask for a process so")
def test_leftovers_of_dead_writers_are_removed(tmp_path: Path) -> None:
    target = tmp_path / "step-00000001"
    name = disk._temporary_name(target, "tmp").name
    own, dead = str(os.getpid()), str(dead_process())
    removed = [name, name.replace(own, dead), name.replace(own, dead).replace(".tmp-", ".trash-")]
    kept = [
        name.replace(own, str(os.getppid())),
        name.replace(f"-{own}-", f"-{own}x-"),
        name.replace(own, dead).replace(f"-{disk._HOST}-", "-elsewhere-"),
        ".step-00000001.tmp",
        "step-00000001.tmp-a-1-00000000",
    ]
    for leftover in (*removed, *kept):
        (tmp_path / leftover).mkdir()
        (tmp_path / leftover / "state.json").touch()
    disk.sweep(tmp_path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(kept)


def test_writers_in_progress_are_not_disturbed(tmp_path: Path) -> None:
    def write(temporary: Path) -> None:
        disk.sweep(tmp_path)
        (temporary / "a").write_text("x")

    disk.replace_directory(tmp_path / "c", write)
    assert (tmp_path / "c" / "a").read_text() == "x"


def test_sweeping_nowhere_is_harmless(tmp_path: Path) -> None:
    disk.sweep(tmp_path / "none")
    disk.discard(tmp_path / "none")
