"""Write chains of kernels that run at the same time: a function each, and the pool's job of them.

    void chain_3(ptr arrays, ptr memory, ptr stopped, i64 thread)

runs one chain. A chunk of the job is a chain; the pool gives each to one thread, and what kernels
inside would share among threads, that thread does itself.

`stopped` is a word that all chains of a job see. Only the main thread learns of a signal: where its
loop is told to give up, or where it waits for the others, it sets the word, and loops of the others
look there whenever they would poll. What follows the chains is left out then.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....core.dim import Dim
from ....lower.kernels import LoopKernel, walk
from ....lower.schedule import TogetherCalls
from .control import POLL, polled
from .text import FunctionText, ModuleText
from .values import IRValue

CHAIN_PARAMETERS = ("ptr", "ptr", "ptr", "i64")
PARALLEL_FOR = "weft_parallel_for"
PARALLEL_CHAINS = "weft_parallel_chains"  # void (function, context, chunks, poll, stopped)
STOPPED = "weft_chain_stopped"  # i32 (ptr stopped), not 0: give up


def in_chain(f: FunctionText) -> bool:
    """Tell whether a function runs a chain, or a part of one."""
    return len(f.parameters) == len(CHAIN_PARAMETERS)


def chain_thread(f: FunctionText) -> IRValue:
    """Return the number of the thread that runs a chain."""
    return f.parameters[3]


def stopped_or_polled(f: FunctionText) -> IRValue:
    """Write the question whether a chain goes on; one that does not says so to the others."""
    stopped, raised = f.parameters[2], polled(f)
    note, look = f.label("note"), f.label("look")
    f.branch_if(f.icmp("ne", raised, 0), note, look)
    f.block(note)
    f.store(f.constant("i64", 1), stopped)
    f.branch(look)
    f.block(look)
    return f.call(STOPPED, "i32", stopped, declare=True)


def write_chains(
    module: ModuleText,
    run: FunctionText,
    calls: TogetherCalls,
    names: Sequence[str],
    task: str,
) -> None:
    """Write the calls of chains, by their functions' names: by the pool, or one after another."""
    context = run.alloca("ptr", 3)
    arrays, memory = run.parameters[:2]
    stopped = run.gep(context, 2, "ptr")
    for i, value in enumerate((arrays, memory)):
        run.store(value, run.gep(context, i, "ptr"))
    run.store(run.constant("i64", 0), stopped)
    _write_task(module, names, task)
    if not isinstance(calls.parallel, Dim):
        _by_pool(module, run, calls, task, context)
    else:
        together, alone, done = run.label("together"), run.label("alone"), run.label("chains")
        run.branch_if(run.icmp("ne", run.size(calls.parallel), 0), together, alone)
        run.block(together)
        _by_pool(module, run, calls, task, context)
        run.branch(done)
        run.block(alone)
        for name in names:
            _call(run, name, arrays, memory, stopped, run.constant("i64", 0))
        run.branch(done)
        run.block(done)
    if _has_loops(calls):
        _return_if_stopped(run, stopped)


def _write_task(module: ModuleText, names: Sequence[str], task: str) -> None:
    """Write the function that runs the chain of a chunk."""
    f = module.function(task, ["ptr", "i64", "i64"])
    context, chunk, thread = f.parameters
    arrays, memory = (f.load("ptr", f.gep(context, i, "ptr")) for i in range(2))
    stopped = f.gep(context, 2, "ptr")
    _return_if_stopped(f, stopped)  # before this chain began: nobody polls twice
    for i, name in enumerate(names):
        this, other = f.label("this"), f.label("other")
        f.branch_if(f.icmp("eq", chunk, i), this, other)
        f.block(this)
        _call(f, name, arrays, memory, stopped, thread)
        f.ret()
        f.block(other)
    f.ret()


def _return_if_stopped(f: FunctionText, stopped: IRValue) -> None:
    leave, stay = f.label("leave"), f.label("stay")
    f.branch_if(f.icmp("ne", f.load("i64", stopped), 0), leave, stay)
    f.block(leave)
    f.ret()
    f.block(stay)


def _by_pool(
    module: ModuleText, run: FunctionText, calls: TogetherCalls, task: str, context: IRValue
) -> None:
    """Write the job of the pool; where a chain may run for hours, who waits for it polls."""
    function, chunks = IRValue(f"@{task}", "ptr"), run.constant("i64", len(calls.chains))
    if not _has_loops(calls):
        run.call(PARALLEL_FOR, "void", function, context, chunks)
        return
    module.declare(POLL, [], "i32")
    poll, stopped = IRValue(f"@{POLL}", "ptr"), run.gep(context, 2, "ptr")
    job = (function, context, chunks, poll, stopped)
    run.call(PARALLEL_CHAINS, "void", *job, declare=True)


def _call(f: FunctionText, name: str, *arguments: IRValue) -> None:
    """Write the call of a chain, which finds the table of sizes itself."""
    f.write(f"call void @{name}({', '.join(a.typed for a in arguments)})")


def _has_loops(calls: TogetherCalls) -> bool:
    return any(isinstance(kernel, LoopKernel) for kernel in walk([calls.kernel]))
