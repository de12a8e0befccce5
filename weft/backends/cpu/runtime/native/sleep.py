"""How threads sleep and are woken on each system, as LLVM IR.

The pool needs two things, as Linux's futex gives them: sleep while the 32-bit word at %address is
%seen (a wake-up without cause is harmless: the pool looks again), and wake who sleeps there. Where
the word changes before the wake-up, no sleeper may miss it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sleep:
    """How a thread sleeps while a 32-bit word is %seen, and how another wakes it, as IR."""

    name: str
    declarations: str
    wait: str
    wake: str


def futex(number: int) -> Sleep:
    """Sleep by Linux's futex system call (FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129)."""
    call = f"call i64 (i64, ...) @syscall(i64 {number}, ptr %address,"
    return Sleep(
        "futex",
        "declare i64 @syscall(i64, ...)",
        f"{call} i64 128, i32 %seen, ptr null)",
        f"{call} i64 129, i32 1)",
    )


WAIT_ON_ADDRESS = Sleep(
    "WaitOnAddress",
    "declare i32 @WaitOnAddress(ptr, ptr, i64, i32)\ndeclare void @WakeByAddressAll(ptr)",
    """%copy = alloca i32
  store i32 %seen, ptr %copy
  call i32 @WaitOnAddress(ptr %address, ptr %copy, i64 4, i32 -1)""",
    "call void @WakeByAddressAll(ptr %address)",
)

PTHREADS = Sleep(
    "pthreads",
    """declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)""",
    """call i32 @pthread_mutex_lock(ptr <mutex>)
  %now = load atomic i32, ptr %address seq_cst, align 4
  %same = icmp eq i32 %now, %seen
  br i1 %same, label %sleep, label %done
sleep:
  call i32 @pthread_cond_wait(ptr <condition>, ptr <mutex>)
  br label %done
done:
  call i32 @pthread_mutex_unlock(ptr <mutex>)""",
    # Taking the lock orders this after a sleeper's last look at the word.
    """call i32 @pthread_mutex_lock(ptr <mutex>)
  call i32 @pthread_cond_broadcast(ptr <condition>)
  call i32 @pthread_mutex_unlock(ptr <mutex>)""",
)
