"""Write the clock that timed code reads: the system's steady one, as `i64 weft_profile_clock()`."""

from __future__ import annotations

from ...codegen.profile import CLOCK
from ...codegen.target import Target
from .template import module_text

# A timespec is two words wherever pointers have 64 bits.
_POSIX = """
declare i32 @clock_gettime(i32, ptr)

define i64 @<name>() nounwind {
  %now = alloca [2 x i64], align 8
  call i32 @clock_gettime(i32 <clock>, ptr %now)
  %seconds = load i64, ptr %now, align 8
  %at.rest = getelementptr i64, ptr %now, i64 1
  %rest = load i64, ptr %at.rest, align 8
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %rest
  ret i64 %sum
}
"""
_WINDOWS = """
declare i32 @QueryPerformanceCounter(ptr)

define i64 @<name>() nounwind {
  %now = alloca i64, align 8
  call i32 @QueryPerformanceCounter(ptr %now)
  %ticks = load i64, ptr %now, align 8
  ret i64 %ticks
}
"""


def clock_text(target: Target, clock: int | None) -> str:
    """Return the module of the clock: a POSIX clock by number (nanoseconds), or Windows' ticks."""
    body = _WINDOWS if clock is None else _POSIX
    return module_text(target, body, {"name": CLOCK, "clock": clock})
