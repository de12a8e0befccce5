"""Forks at any moment: no child is left with a lock, and nobody waits for one for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from textwrap import dedent

import pytest

from weft.core import locks
from weft.core.locks import LEAVES, ORDER, CheckedLock, fork_safe_lock
from weft.eager.background import Background

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS = 240  # after which what hangs is killed
NAMES = [name for name in ORDER if name != "jobs"]
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
may_fork = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # from 3.12 on


def run(program, cache, *arguments, timeout=SECONDS):
    """Run a program in a process of its own, cold and with checked locks; return what it prints."""
    result = subprocess.run(
        [sys.executable, "-c", dedent(program), *map(str, arguments)],
        env={**os.environ, "WEFT_CACHE_DIR": str(cache), "WEFT_CHECK_LOCKS": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert result.stderr == ""
    assert result.returncode == 0
    return result.stdout.split()


# Each child waits for nothing but its own work; an alarm kills one that waits for ever.
CHILD = """
    import os, signal, sys, threading, time, warnings
    import numpy as np, weft as wf
    warnings.filterwarnings("ignore", "This process", DeprecationWarning)  # from 3.12 on
    wf.set_num_threads(2)

    def work(i, again=True):
        a = wf.ones(80_000 + 64 * i)
        for _ in range(3):  # machine code in the background
            y = wf.sqrt(a * 2 + 7) / 3
        assert (y.numpy() == 1).all()
        x = np.full((3 + i % 5, 600), 2, np.float32)
        assert (wf.exp(wf.zeros((700, 800))) == 1).all()  # waits for its machine code
        z = wf.compile(lambda t: (t * 3 + i).sum(axis=1), x)(x)  # in the foreground
        assert (z.numpy() == 600 * (6 + i)).all()
        with wf.no_grad():
            wf.randn(3)
        if again:
            in_child(i, lambda: work(i + 1, again=False))

    def in_child(i, do):
        child = os.fork()
        if child == 0:
            signal.alarm(120)
            try:
                do()
            except BaseException:
                import traceback
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        assert status == 0, (i, status)
"""

STRESS = (
    CHILD
    + """
    count, compiling = int(sys.argv[1]), int(sys.argv[2])
    done = threading.Event()

    def compile_on(k):
        for i in range(10**9):
            if done.is_set():
                return
            x = np.ones((2, 40 + 10 * k + i), np.float32)
            wf.compile(lambda t: wf.tanh(t * i).sum(axis=0), x)(x)

    others = [threading.Thread(target=compile_on, args=(k,)) for k in range(compiling)]
    for other in others:
        other.start()
    try:
        for i in range(count):
            a = wf.ones(70_000 + 64 * i)
            for _ in range(2):  # the second time orders machine code
                wf.sqrt(a * 2 + 1) / 3
            in_child(i, lambda: work(i, again=i % 4 == 0))
    finally:
        done.set()
        for other in others:
            other.join()
    print("done")
"""
)


@forks
def test_forks_during_cold_compilation(tmp_path):
    assert run(STRESS, tmp_path, 6, 1) == ["done"]


@forks
@pytest.mark.long
@pytest.mark.parametrize("compiling", [0, 2], ids=["background", "foreground"])
def test_a_thousand_forks_during_cold_compilation(tmp_path, compiling):
    assert run(STRESS, tmp_path, 500, compiling, timeout=3600) == ["done"]


@forks
def test_workers_start_while_kernels_are_compiled(tmp_path):
    program = """
        import warnings
        import numpy as np, weft as wf
        warnings.filterwarnings("ignore", "This process", DeprecationWarning)
        data = [np.float32(i) for i in range(32)]
        for e in range(3):
            a = wf.ones(70_000 + 64 * e)
            [wf.sqrt(a * 2 + 1) / 3 for _ in range(3)]
            batches = list(wf.data.DataLoader(data, batch_size=8, num_workers=2))
            assert len(batches) == 4
        print("done")
    """
    assert run(program, tmp_path) == ["done"]


HOLDING = (
    CHILD
    + """
    from weft.core import locks
    from weft.eager import background
    background.PATIENCE = 0.2
    for i, name in enumerate(sys.argv[1:]):
        a = wf.ones(70_000 + 64 * i)
        for _ in range(2):
            wf.sqrt(a * 2 + 1) / 3
        with locks.fork_safe_lock(name):
            child = os.fork()
            if child == 0:
                signal.alarm(120)
        if child == 0:  # the lock is free here, for other threads too
            work(i, again=False)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0, name
    print("done")
"""
)


@forks
def test_a_thread_may_fork_while_it_holds_a_lock(tmp_path):
    assert run(HOLDING, tmp_path, "states", "objects") == ["done"]


@forks
@pytest.mark.long
def test_a_thread_may_fork_while_it_holds_any_lock(tmp_path):
    assert run(HOLDING, tmp_path, *NAMES) == ["done"]


@forks
def test_jobs_and_other_threads_may_fork(tmp_path):
    program = (
        CHILD
        + """
    from weft.eager.background import background
    failed = []

    def forking(i):
        try:
            in_child(i, lambda: work(i, again=False))
        except BaseException as error:
            failed.append(error)

    ended = threading.Event()
    background.submit(lambda: forking(1))
    background.submit(ended.set)
    thread = threading.Thread(target=forking, args=(2,))
    thread.start()
    forking(3)
    thread.join()
    assert ended.wait(200)
    assert not failed, failed
    print("done")
"""
    )
    assert run(program, tmp_path) == ["done"]


@forks
def test_ctrl_c_while_a_fork_waits_comes_when_it_is_done(tmp_path):
    program = """
        import os, signal, sys, threading, time, warnings
        warnings.filterwarnings("ignore", "This process", DeprecationWarning)
        import weft
        from weft.core.locks import fork_safe_lock
        lock, held = fork_safe_lock("objects"), threading.Event()

        def fork_waits():
            frame = sys._current_frames()[threading.main_thread().ident]
            while frame is not None and frame.f_code.co_name != "prepare":
                frame = frame.f_back
            return frame is not None

        def hold():
            with lock:
                held.set()
                while not fork_waits():
                    time.sleep(0.01)
                signal.raise_signal(signal.SIGINT)
                time.sleep(0.2)

        holder = threading.Thread(target=hold)
        holder.start()
        held.wait()
        child = None
        try:
            child = os.fork()
            if child == 0:
                os._exit(0)
            for _ in range(1000):
                time.sleep(0.01)
        except KeyboardInterrupt:
            print("interrupted", child is not None)
        holder.join()
        with lock:
            print(os.waitpid(child, 0)[1])
    """
    assert run(program, tmp_path) == ["interrupted", "True", "0"]


def test_no_module_asks_for_the_lock_of_imports(tmp_path):
    """Else two threads could import modules, each waiting for the other."""
    program = """
        import importlib, pkgutil, sys
        import weft
        from weft.core import locks
        acquire = locks.CheckedLock.acquire

        def watched(lock, *args, **kwargs):
            frame = sys._getframe(1)
            while lock.name == "imports" and frame is not None:
                if frame.f_code.co_name == "<module>" and "weft" in frame.f_globals["__name__"]:
                    print(frame.f_globals["__name__"])
                frame = frame.f_back
            return acquire(lock, *args, **kwargs)

        locks.CheckedLock.acquire = watched
        for module in pkgutil.walk_packages(weft.__path__, "weft."):
            if "__main__" not in module.name:
                importlib.import_module(module.name)
    """
    assert run(program, tmp_path) == []


# -- the order -------------------------------------------------------------------------------------


@pytest.fixture
def checked():
    return {name: CheckedLock(name, threading.RLock()) for name in NAMES}


def test_locks_are_taken_in_order(checked):
    with checked["states"], checked["imports"], checked["objects"], checked["states"]:
        pass
    with checked["objects"]:
        pass


@pytest.mark.parametrize(
    ("first", "second"), [("imports", "states"), ("objects", "imports"), ("objects", "llvm")]
)
def test_the_wrong_order_is_found(checked, first, second):
    with checked[first]:
        with pytest.raises(AssertionError, match=rf"'{second}' is taken while \['{first}'\]"):
            checked[second].acquire()
        assert checked[second].acquire(blocking=False)  # that waits for nobody
        checked[second].release()
    assert checked[second].acquire()
    checked[second].release()


def test_leaves_come_last():
    assert 0 < LEAVES < len(ORDER)
    assert ORDER.index("jobs") < LEAVES


def test_a_lock_has_one_name():
    lock = fork_safe_lock("objects")
    assert getattr(lock, "lock", lock) is locks._locks["objects"]
    with pytest.raises(AssertionError):
        locks.stop_for_forks("objects", print, print)
    with pytest.raises(AssertionError):
        locks.stop_for_forks("nobody", print, print)


# -- the background --------------------------------------------------------------------------------


def test_a_stop_waits_for_the_running_job_and_lets_none_begin():
    background, order = Background(), []
    begun, may_end, last = threading.Event(), threading.Event(), threading.Event()

    def job():
        begun.set()
        may_end.wait(60)
        order.append("job")

    background.submit(job)
    background.submit(lambda: order.append("next"))
    background.submit(last.set)
    assert begun.wait(60)
    threading.Timer(0.05, may_end.set).start()
    background._stop()
    order.append("stopped")
    background._go_on()
    assert last.wait(60)
    assert order == ["job", "stopped", "next"]
    background.end()


def test_a_stop_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr("weft.eager.background.PATIENCE", 0.05)
    background = Background()
    begun, may_end = threading.Event(), threading.Event()
    background.submit(lambda: (begun.set(), may_end.wait(60)))
    assert begun.wait(60)
    background._stop()
    assert not may_end.is_set()
    background._go_on()
    may_end.set()
    background.end()


def test_one_thread_serves_jobs_of_many():
    background = Background()
    together = threading.Barrier(8)
    served = set()

    def submit():
        together.wait()
        background.submit(lambda: served.add(threading.current_thread()))

    threads = [threading.Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = threading.Event()
    background.submit(done.set)
    assert done.wait(60)
    assert served == {background.thread}
    background.end()


@forks
@may_fork
def test_a_fork_in_a_fork_releases_what_both_took():
    """As the handler of a signal may do, while a fork waits for a lock."""
    locks._before()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        locks._after_in_child()
        os._exit(0 if free_for_others() else 1)
    locks._after_in_parent()
    assert os.waitpid(child, 0)[1] == 0
    assert free_for_others()


def free_for_others():
    """Tell whether another thread can take all locks."""
    taken = []

    def take():
        for lock in locks._locks.values():
            if lock.acquire(timeout=10):
                taken.append(lock)
                lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return len(taken) == len(locks._locks)
