"""The thread pool that native kernels spread their chunks over.

    parallel_for(function, context, chunks)   # addresses; from kernels: weft_parallel_for

`function` is the address of a native `void f(ptr context, i64 chunk, i64 thread)`; it is called
once for each chunk, by any thread, in any order. `thread` is below the number of threads and no two
that run at the same time have the same one (in a job inside a job it is always 0).

Workers are Python threads inside a native loop (see native/pool.py), so no C compiler is needed and
the interpreter lock is not held. They spin for some 50 us after a job, then sleep. They are started
when the first job would have used them: that job runs on one thread, and results do not depend on
the number of threads. At the end of the process they are left where they are, asleep.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable

from ....core.locks import fork_safe_lock
from ....core.threads import get_num_threads, watch_num_threads
from ..codegen.target import host
from .linking import Library, link
from .native.pool import EXPORTS, FIELDS, KERNELS_CALL, MAX_THREADS, POOL_BYTES, pool_text
from .native.sleep import PTHREADS, WAIT_ON_ADDRESS, Sleep, futex
from .objects import runtime_code

SPIN_SECONDS = 50e-6
_CALIBRATION_TURNS = 2000

# Linux's number of the futex system call; other machines sleep by pthreads.
FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}

_lock = fork_safe_lock("workers")


class Pool:
    """The pool of a process: native state and functions, and the Python threads that serve it."""

    def __init__(self, sleep: Sleep) -> None:
        self.sleep = sleep
        target = host()
        self.library: Library = link(
            [runtime_code(pool_text(target, sleep), target)], EXPORTS, _sleep_symbols(sleep)
        )
        self._base = self.library.address("weft_pool")
        self._worker = self._function("weft_pool_worker", None, ctypes.c_void_p, ctypes.c_int64)
        self._wake = self._function("weft_pool_wake", None)
        self._try_lock = self._function("weft_pool_try_lock", ctypes.c_int32)
        self._unlock = self._function("weft_pool_unlock", None)
        self.parallel_for_up_to = self._function(
            "weft_parallel_for_up_to",
            None,
            *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64),
        )
        self._threads: list[tuple[threading.Thread, ctypes.c_int32]] = []
        self._prepare()

    def field(self, name: str) -> ctypes.c_int32:
        """Return a 32-bit field of the native state."""
        return ctypes.c_int32.from_address(self._base + FIELDS[name])

    def symbols(self) -> dict[str, int]:
        """Return the addresses that kernels are linked with."""
        return {name: self.library.address(name) for name in KERNELS_CALL}

    def resize(self, threads: int) -> None:
        """Have that many threads, the caller of a job included, from the next job on.

        Too many workers leave at once (a job that runs now ends first); missing ones are started
        when a job asks for them.
        """
        with _lock:
            self.field("desired").value = min(threads, MAX_THREADS) - 1
        if len(self._threads) > threads - 1:
            _uninterrupted(self._adjust)

    def start_workers(self) -> None:
        """Start the workers that are missing; where the system refuses, make do with fewer."""
        self.field("wanted").value = 0
        missing = len(self._threads) < self.field("desired").value
        if missing and not _uninterrupted(self._adjust):
            self._make_do()

    def reset_after_fork(self) -> None:
        """Forget the parent's workers and jobs: none of its threads exists in the child."""
        kept = {name: self.field(name).value for name in ("desired", "spins", "generation")}
        ctypes.memset(self._base, 0, POOL_BYTES)
        self._threads = []
        for name, value in kept.items():
            self.field(name).value = value
        self.field("generation").value += 1
        self._make_mutex()

    def _prepare(self) -> None:
        self._make_mutex()
        self.field("generation").value = 1
        self.field("spins").value = self._spins()
        self.field("desired").value = min(get_num_threads(), MAX_THREADS) - 1

    def _adjust(self) -> None:
        with _lock:
            self._change(self.field("desired").value)
            self._make_do()

    def _make_do(self) -> None:
        """Want no more workers than there are: where one could not be started, none will be."""
        with _lock:
            desired = self.field("desired")
            desired.value = min(desired.value, len(self._threads))

    def _change(self, workers: int) -> None:
        """Stop or start workers while no job runs, so that thread numbers stay unique."""
        while not self._try_lock():
            time.sleep(50e-6)
        try:
            self._stop(self._threads[workers:])
            del self._threads[workers:]
            while len(self._threads) < workers and self._start():
                pass
            self.field("workers").value = len(self._threads)
        finally:
            self._unlock()

    def _start(self) -> bool:
        stop, number = ctypes.c_int32(0), len(self._threads) + 1
        thread = threading.Thread(
            target=self._worker,
            args=(ctypes.addressof(stop), number),
            name=f"weft-worker-{number}",
            daemon=True,
        )
        try:
            thread.start()
        except RuntimeError:  # the system allows no more threads, or the process is ending
            return False
        self._threads.append((thread, stop))
        return True

    def _stop(self, threads: list[tuple[threading.Thread, ctypes.c_int32]]) -> None:
        for _, stop in threads:
            stop.value = 1
        if threads:
            self._wake()
        for thread, _ in threads:
            thread.join()

    def _spins(self) -> int:
        """Return how many pauses last SPIN_SECONDS on this machine: they differ tenfold."""
        spin = self._function("weft_pool_spin", None, ctypes.c_int64)
        best = min(_seconds(spin, _CALIBRATION_TURNS) for _ in range(3))
        return max(1, int(SPIN_SECONDS * _CALIBRATION_TURNS / best))

    def _make_mutex(self) -> None:
        if self.sleep is PTHREADS:
            process = ctypes.CDLL(None)
            process.pthread_mutex_init(ctypes.c_void_p(self._base + FIELDS["mutex"]), None)
            process.pthread_cond_init(ctypes.c_void_p(self._base + FIELDS["condition"]), None)

    def _function(self, name: str, returns: type | None, *arguments: type) -> ctypes._CFunctionType:
        return ctypes.CFUNCTYPE(returns, *arguments)(self.library.address(name))


class _Process:
    pool: Pool | None = None


def pool() -> Pool:
    """Return the process's pool. It is never freed: its workers stand in its code until the end."""
    return _Process.pool or _keep_pool(Pool(_platform_sleep()))


def _keep_pool(made: Pool) -> Pool:
    """Make a pool the process's, unless another thread was faster: no lock is held to compile."""
    with _lock:
        if _Process.pool is None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
            watch_num_threads(made.resize)
            made.resize(get_num_threads())  # it may have changed since
            _Process.pool = made
        return _Process.pool


def _reset_after_fork() -> None:
    if _Process.pool is not None:
        _Process.pool.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def parallel_for(function: int, context: int, chunks: int, *, limit: int | None = None) -> None:
    """Call a native function once for each chunk, on up to `limit` threads; return when all ran."""
    made = pool()
    made.parallel_for_up_to(function, context, chunks, 2**31 - 1 if limit is None else limit)
    if made.field("wanted").value:
        made.start_workers()


def pool_symbols() -> dict[str, int]:
    """Return the addresses that kernels are linked with to use the process's pool."""
    return pool().symbols()


def _platform_sleep() -> Sleep:
    if sys.platform == "win32":
        return WAIT_ON_ADDRESS
    number = FUTEX.get(host().architecture) if sys.platform.startswith("linux") else None
    return PTHREADS if number is None else futex(number)


def _sleep_symbols(sleep: Sleep) -> dict[str, int]:
    """Return what is not among the symbols of the process."""
    if sleep is not WAIT_ON_ADDRESS:
        return {}
    functions = ctypes.CDLL("api-ms-win-core-synch-l1-2-0")
    return {
        name: ctypes.cast(getattr(functions, name), ctypes.c_void_p).value or 0
        for name in ("WaitOnAddress", "WakeByAddressAll")
    }


def _uninterrupted(change: Callable[[], None]) -> bool:
    """Run a function where Ctrl-C cannot break it off halfway: in a thread of its own.

    Return False where no thread can be started: the process has too many, or is ending.
    """
    helper = threading.Thread(target=change, name="weft-pool", daemon=True)
    try:
        helper.start()
    except RuntimeError:
        return False
    helper.join()
    return True


def _seconds(spin: ctypes._CFunctionType, turns: int) -> float:
    start = time.perf_counter()
    spin(turns)
    return time.perf_counter() - start
