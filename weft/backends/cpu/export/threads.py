"""Functions of the runtime for threads: the library's own, or those of whoever calls it.

The pool is that of Python's programs (runtime/native/pool.py), but its workers are threads of C's
library here. There is one for all instances: who finds it busy does its work alone. Workers take no
signals: those are for the threads of the program.
"""

from __future__ import annotations

from ..codegen.chains import PARALLEL_FOR
from ..codegen.values import IRValue, constant
from ..runtime.native.pool import FIELDS, MAX_THREADS
from ..runtime.threads import SPIN_SECONDS
from .records import INSTANCE
from .routine import NULL, Routine, RuntimeModule

INSTANCE_PARALLEL_FOR = "weft_instance_parallel_for"
INSTANCE_CHAINS = "weft_instance_parallel_chains"
# What code of programs calls, and what it is given instead: the same by the threads of an instance.
RENAMED = {PARALLEL_FOR: INSTANCE_PARALLEL_FOR, "weft_parallel_chains": INSTANCE_CHAINS}
_WORKER_BYTES = 16  # the word that stops it, which nobody sets, and its number
_SIGNALS_BYTES = 128
_SET_MASK, _MONOTONIC, _PROCESSORS = 2, 1, 84
_TURNS = 2000


def write_threads(module: RuntimeModule) -> None:
    """Add the functions to a module."""
    module.declare("weft_parallel_for_up_to", ["ptr", "ptr", "i64", "i64"])
    module.declare("weft_pool_worker", ["ptr", "i64"])
    module.declare("weft_pool_try_lock", [], "i32")
    module.declare("weft_pool_unlock", [])
    module.declare("weft_pool_spin", ["i64"])
    module.external("weft_pool")
    module.external("weft_workers")
    _write_parallel_for(module)
    _write_poll(module)
    _write_worker(module)
    _write_start(module)
    _write_measure(module)


def _write_parallel_for(module: RuntimeModule) -> None:
    """Void parallel_for(function, context, chunks): by the pool, or as the caller wants it.

    The context of a program's tasks is its two tables; before the second stands the instance.
    """
    f = module.routine(INSTANCE_PARALLEL_FOR, ["ptr", "ptr", "i64"], "void")
    function, context, chunks = f.parameters
    instance = f.word(f.word(context, 8, "ptr"), -8, "ptr")
    callback = f.word(instance, INSTANCE["parallel_for"], "ptr")
    with f.leaving(f.icmp("ne", f.number_of(callback), 0)):
        user = f.word(instance, INSTANCE["user"], "ptr")
        f.write(
            f"call void {callback}({user.typed}, {function.typed}, {context.typed}, {chunks.typed})"
        )
        f.ret()
    most = f.word(instance, INSTANCE["threads"])
    f.call("weft_parallel_for_up_to", "void", function, context, chunks, most)
    f.ret()
    f = module.routine(INSTANCE_CHAINS, ["ptr", "ptr", "i64", "ptr", "ptr"], "void")
    f.call(INSTANCE_PARALLEL_FOR, "void", *f.parameters[:3])  # there are no signals to poll for
    f.ret()


def _write_poll(module: RuntimeModule) -> None:
    """i32 weft_poll(): what long loops ask; nobody interrupts them here."""
    f = module.routine("weft_poll", [])
    f.ret(constant("i32", 0))


def _write_worker(module: RuntimeModule) -> None:
    f = module.routine("worker", ["ptr"], "ptr")
    (about,) = f.parameters
    f.call("weft_pool_worker", "void", about, f.word(about, 8))
    f.ret(NULL)


def _write_start(module: RuntimeModule) -> None:
    """Void start_threads(count): have so many with that of the caller, if the system allows."""
    f = module.routine("start_threads", ["i64"], "void")
    (count,) = f.parameters
    missing = f.is_null(f.c_address("pthread_create"))
    with f.leaving(f.or_(missing, f.icmp("sle", count, 1))):
        f.ret()
    wait, locked = f.label("wait"), f.label("locked")
    f.branch(wait)
    f.block(wait)
    f.c("sched_yield")
    f.branch_if(f.icmp("ne", f.call("weft_pool_try_lock", "i32"), 0), locked, wait)
    f.block(locked)
    pool = IRValue("@weft_pool", "ptr")
    with f.when(f.icmp("eq", f.word(pool, FIELDS["spins"], "i32"), 0)):
        f.put(pool, FIELDS["generation"], constant("i32", 1))
        f.put(pool, FIELDS["spins"], f.call("measure_spins", "i32"))
    _write_creation(f, pool, count)
    f.call("weft_pool_unlock", "void")
    f.ret()


def _write_creation(f: Routine, pool: IRValue, count: IRValue) -> None:
    signals, before = (f.alloca("i8", _SIGNALS_BYTES, align=16) for _ in range(2))
    f.c("memset", signals, constant("i32", 255), constant("i64", _SIGNALS_BYTES))
    f.c("pthread_sigmask", constant("i32", _SET_MASK), signals, before)
    first = f.add(f.sext(f.word(pool, FIELDS["workers"], "i32"), "i64"), 1)
    most = f.minimum_of(count, MAX_THREADS)
    thread = f.alloca("i64")
    with f.loop(first, most, 1) as i:
        about = f.item(IRValue("@weft_workers", "ptr"), i, _WORKER_BYTES)
        f.put(about, 8, f.add(i, 0))
        worker = IRValue("@worker", "ptr")
        failed = f.c("pthread_create", thread, NULL, worker, about)
        with f.when(f.icmp("eq", failed, 0)):
            f.c("pthread_detach", f.load("i64", thread))
            f.put(pool, FIELDS["workers"], f.trunc(f.add(i, 0), "i32"))
            f.put(pool, FIELDS["desired"], f.trunc(f.add(i, 0), "i32"))
    f.c("pthread_sigmask", constant("i32", _SET_MASK), before, NULL)


def _write_measure(module: RuntimeModule) -> None:
    """i32 measure_spins(): how many pauses last as long as a worker should wait awake."""
    f = module.routine("measure_spins", [])
    times = [_nanoseconds(f, spins) for spins in (0, _TURNS)]
    took = f.add(f.sub(times[1], times[0]), 1)
    spins = f.sdiv(f.constant("i64", round(SPIN_SECONDS * 1e9) * _TURNS), took)
    f.ret(f.trunc(f.add(f.minimum_of(spins, 2**30), 1), "i32"))


def _nanoseconds(f: Routine, spins: int) -> IRValue:
    """Return the time, after some pauses."""
    if spins:
        f.call("weft_pool_spin", "void", f.constant("i64", spins))
    clock = f.alloca("i64", 2)
    f.c("clock_gettime", constant("i32", _MONOTONIC), clock)
    return f.add(f.mul(f.word(clock, 0), 10**9), f.word(clock, 8))


def processors(f: Routine) -> IRValue:
    """Return how many processors there are."""
    return f.c("sysconf", constant("i32", _PROCESSORS))


def worker_words() -> list[int]:
    """Return the records of workers, before there are any."""
    return [0] * (_WORKER_BYTES // 8 * MAX_THREADS)
