"""The thread pool: every chunk once, whatever else happens."""

import ctypes
import io
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

import weft as wf
from tests.backends.cpu.runtime.kernels import DOT, JOBS, MARK_NAMES, MARKS, addresses, load
from weft.backends.cpu.codegen.target import avx2, host, neon
from weft.backends.cpu.runtime import threads
from weft.backends.cpu.runtime.linking import compile_module
from weft.backends.cpu.runtime.native.pool import pool_text
from weft.backends.cpu.runtime.native.sleep import PTHREADS, WAIT_ON_ADDRESS, futex
from weft.backends.cpu.runtime.threads import Pool, parallel_for, pool
from weft.core import threads as core_threads

ROOT = Path(__file__).resolve().parents[4]

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
# From Python 3.12 on, a fork of a process with threads warns.
may_fork = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")

SLEEPS = {"native": threads._platform_sleep()} | ({} if os.name == "nt" else {"pthreads": PTHREADS})


class Workbench:
    """A pool with four threads, and the kernels of `MARKS` linked with it."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.library = load(MARKS, *MARK_NAMES, pool=pool)
        self.counts = np.zeros(20_000, np.int64)

    def address(self, name):
        return self.library.address(name)

    def run(self, name, chunks, limit=2**31 - 1):
        self.pool.parallel_for_up_to(self.address(name), self.counts.ctypes.data, chunks, limit)

    def many(self, jobs, counts=None):
        counts = self.counts if counts is None else counts
        JOBS(self.address("many"))(counts.ctypes.data, jobs)


@pytest.fixture(params=SLEEPS)
def bench(request):
    made = Pool(SLEEPS[request.param])
    made.resize(4)
    made.start_workers()
    yield Workbench(made)
    made.resize(1)


@pytest.fixture
def four_threads():
    before = wf.get_num_threads()
    wf.set_num_threads(4)
    pool().start_workers()
    yield
    wf.set_num_threads(before)


def workers_alive(made: Pool) -> int:
    return len(made._threads)


@pytest.mark.parametrize("chunks", [0, 1, 2, 3, 4, 5, 17, 1000, 20_000])
def test_every_chunk_runs_once(bench, chunks):
    bench.run("mark", chunks)
    assert (bench.counts[:chunks] == 1).all()
    assert not bench.counts[chunks:].any()


def test_negative_number_of_chunks_runs_nothing(bench):
    bench.run("mark", -5)
    assert not bench.counts.any()


def test_many_jobs_in_a_row(bench):
    bench.many(50_000)
    assert (bench.counts[:16] == 50_000).all()


def test_jobs_after_sleep(bench):
    for turn in range(50):
        threading.Event().wait(0.002)  # the workers fall asleep after some 50 us
        bench.run("mark", 16)
        assert (bench.counts[:16] == turn + 1).all()


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 4, 100])
def test_no_more_threads_than_allowed_take_part(bench, limit):
    for _ in range(50):
        bench.run("mark_thread", 64, limit)
    assert bench.counts.sum() == 50 * 64
    assert not bench.counts[max(1, min(limit, 4)) :].any()


def test_thread_numbers_are_not_shared(bench):
    for _ in range(200):
        bench.run("collide", 256)
    assert not bench.counts.any()


def test_jobs_inside_jobs(bench):
    for _ in range(20):
        bench.run("nested", 100)
    assert (bench.counts[:16] == 2000).all()


def test_several_python_threads_at_once(bench):
    counts = [np.zeros(16, np.int64) for _ in range(4)]
    callers = [threading.Thread(target=bench.many, args=(5000, c)) for c in counts]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert all((c == 5000).all() for c in counts)


def test_number_of_threads_changes_while_jobs_run(bench):
    caller = threading.Thread(target=bench.many, args=(20_000,))
    caller.start()
    while caller.is_alive():
        for count in (1, 3, 2, 5):
            bench.pool.resize(count)
            bench.pool.start_workers()
            assert workers_alive(bench.pool) == count - 1
    caller.join()
    assert (bench.counts[:16] == 20_000).all()


def test_python_functions_as_chunks(bench):
    """A chunk may need the interpreter lock: the caller does not hold it."""
    seen = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    def note(context, chunk, thread):
        seen.append(chunk)

    address = ctypes.cast(note, ctypes.c_void_p).value
    bench.pool.parallel_for_up_to(address, 0, 100, 4)
    assert sorted(seen) == list(range(100))


def test_system_without_threads_to_spare(bench, monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    bench.pool.resize(2)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        bench.pool.resize(8)
        bench.pool.start_workers()
    assert workers_alive(bench.pool) == 1
    bench.many(100)
    assert not bench.pool.field("wanted").value  # it does not try again at every job
    assert (bench.counts[:16] == 100).all()


# -- the process's pool --------------------------------------------------------------------------


def test_workers_start_when_a_job_asks_for_them(four_threads):
    library = load(MARKS, *MARK_NAMES)
    counts = np.zeros(64, np.int64)
    wf.set_num_threads(1)
    assert workers_alive(pool()) == 0
    wf.set_num_threads(3)
    assert workers_alive(pool()) == 0
    for turn in range(3):
        parallel_for(library.address("mark"), counts.ctypes.data, 64)
        assert workers_alive(pool()) == 2
        assert (counts == turn + 1).all()


def test_jobs_of_one_chunk_start_no_workers(four_threads):
    library = load(MARKS, *MARK_NAMES)
    counts = np.zeros(64, np.int64)
    wf.set_num_threads(1)
    wf.set_num_threads(3)
    parallel_for(library.address("mark"), counts.ctypes.data, 1)
    parallel_for(library.address("mark"), counts.ctypes.data, 64, limit=1)
    assert workers_alive(pool()) == 0


def test_results_are_the_same_on_any_number_of_threads(four_threads):
    library = load(DOT, "dot")
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 64 * 1024))
    results = []
    for count in (1, 2, 3, 4):
        wf.set_num_threads(count)
        pool().start_workers()
        sums = np.zeros(64)
        table = addresses([x, y, sums])
        JOBS(library.address("dot"))(table.ctypes.data, 64)
        results.append(sums.tobytes())
    assert len(set(results)) == 1


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"WEFT_NUM_THREADS": "3", "OMP_NUM_THREADS": "5"}, 3),
        ({"OMP_NUM_THREADS": "5,2"}, 5),
        ({"WEFT_NUM_THREADS": "many", "OMP_NUM_THREADS": "0"}, None),
        ({}, None),
    ],
)
def test_number_of_threads_at_first(monkeypatch, variables, expected):
    for name in ("WEFT_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert core_threads._initial_count() == (expected or core_threads.usable_processors())


@pytest.mark.parametrize(
    ("quota", "expected"), [("max 100000", 16), ("150000 100000", 2), ("1000 100000", 1), ("", 16)]
)
def test_processors_of_a_container(monkeypatch, quota, expected):
    monkeypatch.setattr(
        core_threads, "open", lambda *args, **how: io.StringIO(quota), raising=False
    )
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)
    assert core_threads.usable_processors() == expected


def test_more_threads_than_the_pool_can_have(bench):
    bench.pool.resize(10**6)
    assert bench.pool.field("desired").value == 1023
    bench.pool.resize(4)
    bench.many(10)


@needs_fork
@may_fork
def test_child_after_a_fork_has_workers_of_its_own(four_threads):
    library = load(MARKS, *MARK_NAMES)
    counts = np.zeros(64, np.int64)
    parallel_for(library.address("mark"), counts.ctypes.data, 64)

    def work_in_child():
        if workers_alive(pool()) != 0:
            return 2
        for _ in range(5):
            parallel_for(library.address("mark"), counts.ctypes.data, 64)
        return 0 if workers_alive(pool()) == 3 and (counts == 6).all() else 3

    assert run_in_child(work_in_child) == 0
    parallel_for(library.address("mark"), counts.ctypes.data, 64)
    assert (counts == 2).all()


@needs_fork
@may_fork
def test_fork_while_jobs_run_in_another_thread(four_threads):
    library = load(MARKS, *MARK_NAMES)
    counts = np.zeros(64, np.int64)
    stop = threading.Event()

    def run_jobs():
        while not stop.is_set():
            parallel_for(library.address("mark"), counts.ctypes.data, 64)

    caller = threading.Thread(target=run_jobs)
    caller.start()

    def work_in_child():
        mine = np.zeros(64, np.int64)
        for _ in range(20):
            parallel_for(library.address("mark"), mine.ctypes.data, 64)
        compile_module("define void @f() {\n  ret void\n}", host())
        return 0 if (mine == 20).all() else 3

    try:
        assert [run_in_child(work_in_child) for _ in range(10)] == [0] * 10
    finally:
        stop.set()
        caller.join()


def run_in_child(work) -> int:
    """Fork, run a function that returns an exit code, and give up on a child that hangs."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            signal.alarm(60)
            code = work()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


START = """
    import ctypes, sys, threading, time
    import numpy as np
    import weft as wf
    from tests.backends.cpu.runtime.kernels import JOBS, MARK_NAMES, MARKS, load
    from weft.backends.cpu.runtime.threads import parallel_for, pool

    library = load(MARKS, *MARK_NAMES)
    counts = np.zeros(64, np.int64)
    address = counts.ctypes.data
    wf.set_num_threads(4)
    pool().start_workers()
    parallel_for(library.address("mark"), address, 64)
"""

ENDINGS = {
    "spinning": "",
    "asleep": "time.sleep(0.05)",
    "stopped": "wf.set_num_threads(1)",
    "busy": """
        jobs = JOBS(library.address("many"))
        threading.Thread(target=jobs, args=(address, 10**12), daemon=True).start()
        time.sleep(0.05)
    """,
    "busy in python": """
        def run():
            while True:
                parallel_for(library.address("mark"), address, 64)
        threading.Thread(target=run, daemon=True).start()
        time.sleep(0.05)
    """,
    "starting at the end": """
        import atexit
        def late():
            wf.set_num_threads(6)
            parallel_for(library.address("mark"), address, 64)
            parallel_for(library.address("mark"), address, 64)
            print("late", flush=True)
        atexit.register(late)
    """,
    "few processors": """
        import os
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        wf.set_num_threads(8)
        pool().start_workers()
        for _ in range(300):
            parallel_for(library.address("mark"), address, 64)
        assert (counts == 301).all()
    """,
    "exception": "raise SystemExit(0)",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_process_ends(ending):
    program = f"{dedent(START)}\n{dedent(ENDINGS[ending])}\nprint('end')"
    command = [sys.executable, "-X", "faulthandler", "-c", program]
    result = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""


@pytest.mark.parametrize("target", [avx2(), neon()], ids=["avx2", "neon"])
@pytest.mark.parametrize("sleep", [futex(98), PTHREADS, WAIT_ON_ADDRESS], ids=lambda s: s.name)
def test_pool_compiles_for_other_machines(target, sleep):
    assert compile_module(pool_text(target, sleep), target)
