"""The native half of the thread pool, as LLVM IR.

A job is a function, a context and a number of chunks. It is published as one 64-bit word: the low
half counts the chunks that nobody has claimed yet, the high half is the most threads that may take
part. Claiming is a compare-and-swap that lowers the word by one. Whoever has claimed a chunk knows
that the job cannot end before that chunk is reported, so function and context can be read after the
claim; a worker that comes late finds nothing to claim and touches nothing.

    word      free chunks and thread limit; beside it, in the same cache line, the job itself
    pending   chunks not yet reported; the caller waits for zero
    busy      held by the caller of the running job, or by Python while it changes the workers
    flags     whether each worker sleeps; `sleepers` counts them

Before sleeping, a worker raises its flag and looks for a job once more; the caller publishes the
job before it looks at the flags. Both are sequentially consistent, so at least one of them sees the
other (Dekker), and no wake-up is lost. The same holds between the thread that reports the last
chunk and a caller that sleeps. Whoever wakes a worker lowers its flag, so that nobody wakes it
twice while the system is slow to run it; as many workers are woken as there are chunks for them,
low numbers first.

A job of chains may run for hours. Its caller, when it has nothing to do but wait, polls for signals
each time it is woken, and notes in a word of the job that it is to be given up; loops in chains
look at that word, and wake a caller that sleeps now and then.

A caller that finds the pool busy (a job of another Python thread, or a job inside a job) runs all
its chunks itself: it never waits for others, so nothing can deadlock.
"""

from __future__ import annotations

from ...codegen.target import Target
from .sleep import Sleep
from .template import module_text

# Offsets in bytes. What different threads write lies two cache lines apart: processors fetch them
# in pairs.
_LINES = (
    ("word", "function", "context", "chunks"),
    ("pending", "waiting", "looks"),
    ("busy",),
    ("sleepers",),
    ("workers", "spins", "wanted", "desired", "generation"),
    ("mutex",),
    ("condition",),
)
FIELDS = {
    name: 128 * line + 8 * place
    for line, names in enumerate(_LINES)
    for place, name in enumerate(names)
}
MAX_THREADS = 1024
FIELDS["flags"] = 128 * len(_LINES)  # 4 bytes for each thread
POOL_BYTES = FIELDS["flags"] + 4 * MAX_THREADS

EXPORTS = (
    "weft_pool",
    "weft_pool_spin",
    "weft_pool_try_lock",
    "weft_pool_unlock",
    "weft_pool_wake",
    "weft_pool_worker",
    "weft_parallel_for",
    "weft_parallel_for_up_to",
    "weft_parallel_chains",
    "weft_chain_stopped",
)
KERNELS_CALL = EXPORTS[-4:]  # what code of programs is linked with


_PAUSE = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}


def pool_text(target: Target, sleep: Sleep) -> str:
    """Return the module of the pool: its state and the functions in `EXPORTS`."""
    declare_pause, pause = _PAUSE.get(target.architecture, ("", "fence seq_cst"))
    address = "getelementptr (i8, ptr @weft_pool, i64 {})"
    names = {name: address.format(offset) for name, offset in FIELDS.items()}
    names |= {"threads": str(MAX_THREADS), "pause": pause, "wait": sleep.wait, "wake": sleep.wake}
    state = f"@weft_pool = global [{POOL_BYTES} x i8] zeroinitializer, align 128"
    return module_text(target, f"{state}\n{declare_pause}\n{sleep.declarations}\n{_BODY}", names)


_BODY = """
define internal void @wait(ptr %address, i32 %seen) nounwind {
  <wait>
  ret void
}

define internal void @rouse(ptr %address) nounwind {
  <wake>
  ret void
}

define void @weft_parallel_for(ptr %function, ptr %context, i64 %chunks) nounwind {
  tail call void @weft_parallel_for_up_to(ptr %function, ptr %context, i64 %chunks, i64 2147483647)
  ret void
}

define void @weft_parallel_for_up_to(ptr %function, ptr %context, i64 %chunks, i64 %limit)
    nounwind {
  tail call void @run_job(ptr %function, ptr %context, i64 %chunks, i64 %limit, ptr null, ptr null)
  ret void
}

define void @weft_parallel_chains(ptr %function, ptr %context, i64 %chunks, ptr %poll, ptr %stopped)
    nounwind {
  tail call void @run_job(
    ptr %function, ptr %context, i64 %chunks, i64 2147483647, ptr %poll, ptr %stopped)
  ret void
}

; Return whether the chains of a job are given up; now and then, let its caller look for signals.
define i32 @weft_chain_stopped(ptr %stopped) nounwind {
  %word = load atomic i64, ptr %stopped acquire, align 8
  %stop = icmp ne i64 %word, 0
  %result = zext i1 %stop to i32
  %waiting = load atomic i32, ptr <waiting> monotonic, align 4
  %dozing = icmp ne i32 %waiting, 0
  br i1 %dozing, label %count, label %done
count:
  %looks = atomicrmw add ptr <looks>, i32 1 monotonic
  %part = and i32 %looks, 511
  %now = icmp eq i32 %part, 0
  br i1 %now, label %wake, label %done
wake:
  call void @rouse(ptr <pending>)
  br label %done
done:
  ret i32 %result
}

define internal void @run_job(
    ptr %function, ptr %context, i64 %chunks, i64 %limit, ptr %poll, ptr %stopped) nounwind {
  %several = icmp sgt i64 %chunks, 1
  %countable = icmp slt i64 %chunks, 2147483648
  %shared = icmp sgt i64 %limit, 1
  %sensible = and i1 %several, %countable
  %worthwhile = and i1 %sensible, %shared
  br i1 %worthwhile, label %look, label %alone

look:
  %workers = load atomic i32, ptr <workers> monotonic, align 4
  %desired = load atomic i32, ptr <desired> monotonic, align 4
  %short = icmp slt i32 %workers, %desired
  br i1 %short, label %ask, label %count

ask:                               ; Python starts the missing workers when it is in control again
  store atomic i32 1, ptr <wanted> monotonic, align 4
  br label %count

count:
  %helped = icmp sgt i32 %workers, 0
  br i1 %helped, label %acquire, label %alone

acquire:
  %locked = call i32 @weft_pool_try_lock()
  %mine = icmp ne i32 %locked, 0
  br i1 %mine, label %publish, label %alone

publish:                           ; the caller keeps chunk 0 for itself
  store ptr %function, ptr <function>, align 8
  store ptr %context, ptr <context>, align 8
  store i64 %chunks, ptr <chunks>, align 8
  %others = sub i64 %chunks, 1
  %others.32 = trunc i64 %others to i32
  store atomic i32 %others.32, ptr <pending> monotonic, align 4
  %capped = call i64 @llvm.smin.i64(i64 %limit, i64 2147483647)
  %high = shl i64 %capped, 32
  %word = or i64 %high, %others
  store atomic i64 %word, ptr <word> seq_cst, align 8
  %sleeping = load atomic i32, ptr <sleepers> seq_cst, align 4
  %asleep = icmp sgt i32 %sleeping, 0
  br i1 %asleep, label %wake, label %run

wake:
  %crew = add i32 %workers, 1
  %crew.64 = zext i32 %crew to i64
  %most = call i64 @llvm.smin.i64(i64 %capped, i64 %crew.64)
  %end = call i64 @llvm.smin.i64(i64 %most, i64 %chunks)
  call void @wake_up_to(i64 %end)
  br label %run

run:
  call void %function(ptr %context, i64 0, i64 0) nounwind
  call void @work(i64 0)
  %spins = load i32, ptr <spins>, align 4
  br label %spin

spin:
  %turn = phi i32 [ 0, %run ], [ %next, %relax ]
  %left = load atomic i32, ptr <pending> acquire, align 4
  %finished = icmp eq i32 %left, 0
  br i1 %finished, label %release, label %relax

relax:
  <pause>
  %next = add i32 %turn, 1
  %patient = icmp slt i32 %next, %spins
  br i1 %patient, label %spin, label %tire

tire:
  store atomic i32 1, ptr <waiting> seq_cst, align 4
  br label %doze

doze:
  %open.chunks = load atomic i32, ptr <pending> seq_cst, align 4
  %ended = icmp eq i32 %open.chunks, 0
  br i1 %ended, label %wake.up, label %sleep

sleep:
  call void @wait(ptr <pending>, i32 %open.chunks)
  %polls = icmp ne ptr %poll, null
  br i1 %polls, label %known, label %doze

known:                             ; what a handler raised is raised once
  %given.up = load atomic i64, ptr %stopped acquire, align 8
  %goes.on = icmp eq i64 %given.up, 0
  br i1 %goes.on, label %ask.signals, label %doze

ask.signals:
  %raised = call i32 %poll()
  %quiet = icmp eq i32 %raised, 0
  br i1 %quiet, label %doze, label %stop

stop:
  store atomic i64 1, ptr %stopped release, align 8
  br label %doze

wake.up:
  store atomic i32 0, ptr <waiting> monotonic, align 4
  br label %release

release:
  call void @weft_pool_unlock()
  ret void

alone:
  %any = icmp sgt i64 %chunks, 0
  br i1 %any, label %each, label %over

each:
  %chunk = phi i64 [ 0, %alone ], [ %following, %each ]
  call void %function(ptr %context, i64 %chunk, i64 0) nounwind
  %following = add i64 %chunk, 1
  %more = icmp slt i64 %following, %chunks
  br i1 %more, label %each, label %over

over:
  ret void
}

; Run chunks of the current job until none is free, then report them.
define internal void @work(i64 %thread) nounwind {
  br label %fresh

fresh:
  %done = phi i32 [ 0, %0 ], [ %done.next, %run ]
  %first = load atomic i64, ptr <word> acquire, align 8
  br label %judge

judge:
  %seen = phi i64 [ %first, %fresh ], [ %found, %claim ]
  %free = and i64 %seen, 4294967295
  %limit = lshr i64 %seen, 32
  %some = icmp ne i64 %free, 0
  %admitted = icmp slt i64 %thread, %limit
  %possible = and i1 %some, %admitted
  br i1 %possible, label %claim, label %finish

claim:
  %lowered = sub i64 %seen, 1
  %pair = cmpxchg ptr <word>, i64 %seen, i64 %lowered acq_rel acquire, align 8
  %found = extractvalue { i64, i1 } %pair, 0
  %claimed = extractvalue { i64, i1 } %pair, 1
  br i1 %claimed, label %run, label %judge

run:
  %chunks = load i64, ptr <chunks>, align 8
  %function = load ptr, ptr <function>, align 8
  %context = load ptr, ptr <context>, align 8
  %chunk = sub i64 %chunks, %free
  call void %function(ptr %context, i64 %chunk, i64 %thread) nounwind
  %done.next = add i32 %done, 1
  br label %fresh

finish:
  %idle = icmp eq i32 %done, 0
  br i1 %idle, label %leave, label %report

report:
  %before = atomicrmw sub ptr <pending>, i32 %done seq_cst
  %last = icmp eq i32 %before, %done
  br i1 %last, label %look, label %leave

look:
  %waiting = load atomic i32, ptr <waiting> seq_cst, align 4
  %dozing = icmp ne i32 %waiting, 0
  br i1 %dozing, label %wake, label %leave

wake:
  call void @rouse(ptr <pending>)
  br label %leave

leave:
  ret void
}

; The life of a worker: ends when the word at %stop is set.
define void @weft_pool_worker(ptr %stop, i64 %thread) nounwind {
  %flag = getelementptr i32, ptr <flags>, i64 %thread
  br label %awake

awake:
  call void @work(i64 %thread)
  %spins = load i32, ptr <spins>, align 4
  br label %spin

spin:
  %turn = phi i32 [ 0, %awake ], [ %next, %relax ]
  %stopped = load atomic i32, ptr %stop acquire, align 4
  %ends = icmp ne i32 %stopped, 0
  br i1 %ends, label %leave, label %look

look:
  %ready = call i1 @has_work(i64 %thread)
  br i1 %ready, label %awake, label %relax

relax:
  <pause>
  %next = add i32 %turn, 1
  %patient = icmp slt i32 %next, %spins
  br i1 %patient, label %spin, label %tire

tire:
  store atomic i32 1, ptr %flag seq_cst, align 4
  atomicrmw add ptr <sleepers>, i32 1 seq_cst
  %late = load atomic i32, ptr %stop seq_cst, align 4
  %ending = icmp ne i32 %late, 0
  %came = call i1 @has_work(i64 %thread)
  %up = or i1 %ending, %came
  br i1 %up, label %rise, label %doze

rise:
  %mine = call i1 @lower_flag(ptr %flag)
  br label %awake

doze:
  call void @wait(ptr %flag, i32 1)
  %raised = load atomic i32, ptr %flag acquire, align 4
  %still = icmp ne i32 %raised, 0
  br i1 %still, label %doze, label %awake

leave:
  ret void
}

define internal i1 @has_work(i64 %thread) nounwind {
  %word = load atomic i64, ptr <word> seq_cst, align 8
  %free = and i64 %word, 4294967295
  %limit = lshr i64 %word, 32
  %some = icmp ne i64 %free, 0
  %admitted = icmp slt i64 %thread, %limit
  %ready = and i1 %some, %admitted
  ret i1 %ready
}

define i32 @weft_pool_try_lock() nounwind {
  %held = load atomic i32, ptr <busy> monotonic, align 4
  %free = icmp eq i32 %held, 0
  br i1 %free, label %try, label %fail
try:
  %before = atomicrmw xchg ptr <busy>, i32 1 acquire
  %mine = icmp eq i32 %before, 0
  %result = zext i1 %mine to i32
  ret i32 %result
fail:
  ret i32 0
}

define void @weft_pool_unlock() nounwind {
  store atomic i32 0, ptr <busy> release, align 4
  ret void
}

define void @weft_pool_wake() nounwind {
  fence seq_cst
  call void @wake_up_to(i64 <threads>)
  ret void
}

; Wake those of the workers 1, 2, ... below a number that sleep.
define internal void @wake_up_to(i64 %end) nounwind {
  br label %each
each:
  %thread = phi i64 [ 1, %0 ], [ %next, %on ]
  %more = icmp slt i64 %thread, %end
  br i1 %more, label %look, label %done
look:
  %flag = getelementptr i32, ptr <flags>, i64 %thread
  %raised = load atomic i32, ptr %flag seq_cst, align 4
  %sleeps = icmp ne i32 %raised, 0
  br i1 %sleeps, label %lower, label %on
lower:
  %lowered = call i1 @lower_flag(ptr %flag)
  br i1 %lowered, label %wake, label %on
wake:
  call void @rouse(ptr %flag)
  br label %on
on:
  %next = add i64 %thread, 1
  br label %each
done:
  ret void
}

; Return whether it was this call that lowered the flag; then a worker sleeps less.
define internal i1 @lower_flag(ptr %flag) nounwind {
  %before = atomicrmw xchg ptr %flag, i32 0 seq_cst
  %lowered = icmp ne i32 %before, 0
  br i1 %lowered, label %count, label %done
count:
  atomicrmw sub ptr <sleepers>, i32 1 seq_cst
  br label %done
done:
  ret i1 %lowered
}

; Pause as often as told, to measure how long that takes.
define void @weft_pool_spin(i64 %turns) nounwind {
  br label %spin
spin:
  %turn = phi i64 [ 0, %0 ], [ %next, %spin ]
  %ignored = load atomic i64, ptr <word> acquire, align 8
  <pause>
  %next = add i64 %turn, 1
  %more = icmp slt i64 %next, %turns
  br i1 %more, label %spin, label %done
done:
  ret void
}

declare i64 @llvm.smin.i64(i64, i64)
"""
