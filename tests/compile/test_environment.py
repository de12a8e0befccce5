"""The compiler in hostile surroundings: no tools, bad disks, several processes, killed ones.

Every test runs real processes that compile and run a program, and checks what it computes.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from weft.backends.store import SUFFIX

ROOT = Path(__file__).resolve().parent.parent.parent
posix = pytest.mark.skipif(os.name != "posix", reason="about users, modes and signals")
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs the rights to be somebody else"
)

# Compiles a program of several kernels and prints its result and what the cache holds.
PROGRAM = """
    import json, sys, warnings
    import numpy as np
    import weft as wf
    from weft.backends.store import cache_info

    def build():
        with wf.Graph() as graph:
            x = wf.placeholder((9, 5), wf.float32)
            y = wf.nn.functional.softmax(wf.tanh(x @ x.mT), axis=-1).sum(axis=0)
            z = wf.exp(x).sum(axis=1)
        return graph, [y, z], {x: np.arange(45, dtype=np.float32).reshape(9, 5) / 50}

    def check():
        graph, fetches, feeds = build()
        expected = wf.Session(graph, compiled=False).run(fetches, feeds)
        found = wf.Session(graph, compiled=True).run(fetches, feeds)
        for a, b in zip(found, expected):
            np.testing.assert_allclose(a, b, rtol=1e-5)
"""
ONCE = """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check()
    info = cache_info()
    said = [str(w.message) for w in caught]
    print(json.dumps({"files": info.files, "hits": info.hits, "misses": info.misses, "said": said}))
"""


def start(cache, script=ONCE, **environment):
    command = [sys.executable, "-c", dedent(PROGRAM) + dedent(script)]
    settings = {**os.environ, "WEFT_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT), **environment}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=settings, cwd=ROOT, **pipes)


def finish(process):
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return json.loads(out.splitlines()[-1])


def run(cache, **environment):
    """Compile and run the program in a process of its own; return what it reports."""
    return finish(start(cache, **environment))


def test_no_tools_and_an_empty_cache(tmp_path):
    cold = run(tmp_path / "cache", PATH="")
    assert cold["files"] == cold["misses"] > 3
    assert not cold["said"]
    warm = run(tmp_path / "cache", PATH="")
    assert (warm["hits"], warm["misses"]) == (cold["misses"], 0)


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_place_that_cannot_be_a_directory(tmp_path, place):
    (tmp_path / "file").write_text("")
    found = run(tmp_path / place)
    assert found["files"] == 0
    assert len(found["said"]) == 1
    assert "is not used" in found["said"][0]


@posix
@as_root
def test_directory_of_another_user(tmp_path):
    os.chown(tmp_path, 65534, -1)
    assert_refused(tmp_path, "another user")


@posix
@as_root
@pytest.mark.parametrize("below", ["", "new"])
def test_directory_that_cannot_be_written_to(tmp_path, below):
    with mounted(tmp_path, "ro,mode=0700"):
        (said,) = run(tmp_path / below)["said"]
        assert "Read-only file system" in said


@posix
def test_directory_that_everybody_may_write_to(tmp_path):
    tmp_path.chmod(0o777)
    assert_refused(tmp_path, "other users may write")


def assert_refused(directory, reason):
    """Assert that nothing is kept in a directory, and that a warning says why."""
    assert reason in run(directory)["said"][0]
    assert not list(directory.iterdir())


@posix
@as_root
@pytest.mark.parametrize("limit", ["nr_inodes=3", "size=8k"])
def test_full_disk(tmp_path, limit):
    with mounted(tmp_path, f"mode=0700,{limit}"):
        found = run(tmp_path)
        (said,) = found["said"]
        assert "No space left" in said
        assert run(tmp_path)["hits"] == found["files"]


@contextmanager
def mounted(path, options):
    """Mount a disk in memory for as long as the context lasts."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount a disk here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(path)], check=True)


def spoil(path, number):
    """Make a file of the cache unusable, in one of several ways."""
    content = path.read_bytes()
    ways = (
        lambda: path.write_bytes(b""),
        lambda: path.write_bytes(content[: len(content) // 2]),
        lambda: path.write_bytes(os.urandom(len(content))),
        lambda: path.write_bytes(content[:-1] + bytes([content[-1] ^ 1])),
        lambda: path.write_bytes(b"\x7fELF" + content[4:]),
        lambda: path.write_bytes(content + b"more"),
        lambda: (path.unlink(), path.mkdir()),
        lambda: (path.unlink(), path.symlink_to("/dev/null")),
        lambda: (path.unlink(), path.symlink_to(path)),
    )
    ways[number % len(ways)]()


def test_cache_full_of_garbage(tmp_path):
    cache = tmp_path / "cache"
    cold = run(cache)
    for number, path in enumerate(sorted(cache.iterdir())):
        spoil(path, number)
    (cache / ("0" * 64 + SUFFIX)).write_bytes(os.urandom(999))
    (cache / "notes.txt").write_text("not ours")
    again = run(cache)
    assert again["hits"] == 0
    assert again["misses"] == cold["misses"]
    assert (cache / "notes.txt").read_text() == "not ours"


def test_code_of_another_kernel_under_a_name(tmp_path):
    """Files that are whole, but not what their names say, are not run."""
    cache = tmp_path / "cache"
    cold = run(cache)
    paths = sorted(cache.iterdir())
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, [*contents[1:], contents[0]], strict=True):
        path.write_bytes(content)
    assert run(cache)["misses"] == cold["misses"]


def test_limits_from_the_environment(tmp_path):
    assert run(tmp_path / "a", WEFT_CACHE_MB="0")["files"] == 0
    assert run(tmp_path / "b", WEFT_CACHE_MB="1")["files"] > 3
    odd = run(tmp_path / "c", WEFT_CACHE_MB="lots")
    assert any("'lots'" in text for text in odd["said"])


def test_processes_that_compile_the_same_at_once(tmp_path):
    cache = tmp_path / "cache"
    for found in [finish(process) for process in [start(cache) for _ in range(3)]]:
        assert not found["said"]
    warm = run(cache)
    assert warm["misses"] == 0
    assert not list(cache.glob("*.tmp"))


# Forks children that compile from scratch, and kills them at random moments.
KILLED = """
    import os, random, signal, time
    from weft.compiler.stages import compile_program  # loaded before the forks, but not yet used

    kills, chance = KILLS, random.Random(0)
    graph, fetches, feeds = build()

    def child():
        try:
            check()
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)

    start = time.perf_counter()
    if os.fork() == 0:
        os.environ["WEFT_CACHE_DIR"] += "-other"
        child()
    assert os.wait()[1] == 0
    span = time.perf_counter() - start  # of a whole compilation here and now
    killed = 0
    for _ in range(kills):
        pid = os.fork()
        if pid == 0:
            child()
        time.sleep(chance.uniform(0, span))
        os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        killed += os.WIFSIGNALED(status)
        assert os.WIFSIGNALED(status) or status == 0
        if chance.random() < 0.5:  # else the next one goes on from there
            for name in os.listdir(os.environ["WEFT_CACHE_DIR"]):
                if chance.random() < 0.5:
                    os.unlink(os.path.join(os.environ["WEFT_CACHE_DIR"], name))
    print(json.dumps({"killed": killed}))
"""


def kill(tmp_path, kills):
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    found = finish(start(cache, KILLED.replace("KILLS", str(kills))))
    assert found["killed"] > kills // 4
    left = run(cache)  # what is there is right, or is made again
    assert not left["said"]
    assert run(cache)["misses"] == 0


@posix
def test_killed_compilers_harm_nobody(tmp_path):
    kill(tmp_path, 50)


@posix
@pytest.mark.long
def test_five_hundred_killed_compilers_harm_nobody(tmp_path):
    kill(tmp_path, 500)


@posix
def test_killed_processes(tmp_path):
    """Whole processes, killed anywhere between their start and their end."""
    chance = random.Random(1)
    for _ in range(4):
        process = start(tmp_path / "cache")
        try:
            process.wait(chance.uniform(0.2, 1.5))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
    run(tmp_path / "cache")
    assert run(tmp_path / "cache")["misses"] == 0
