"""Estimate how long a schedule takes on a number of threads, to choose between schedules.

The costs of kernels are those of the device, right within a factor of two; what is added here is
how threads share them. Estimates are the same in every process, so that plans are.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Any

from ..core.dim import typical
from ..lower.schedule import BranchCalls, LoopCalls, Region, RunSchedule, TogetherCalls

PER_CALL = 30.0  # nanoseconds of calling a kernel, beside its work
SHARED = 2500.0  # of handing work to the pool, and of waiting until all of it is done
TURNS = 16  # of a loop that only its test ends


def schedule_time(schedule: RunSchedule, threads: int) -> float:
    """Return the nanoseconds of all stretches; what the host does itself is not counted."""
    driven = (step for step in schedule.steps if not isinstance(step, str))
    return sum(calls_time(calls, threads) for calls in (driven, *schedule.stretches))


def calls_time(calls: Iterable[Any], threads: int) -> float:
    """Return the nanoseconds of calls one after another."""
    return sum(call_time(call, threads) for call in calls)


def call_time(call: Any, threads: int) -> float:
    """Return the nanoseconds of a region, or of control flow; 0 for what the host does."""
    if isinstance(call, Region):
        return region_time(call, threads)
    if isinstance(call, LoopCalls):
        return turns_of(call) * calls_time((*call.test, *call.body), threads)
    if isinstance(call, BranchCalls):
        return max(calls_time(call.yes, threads), calls_time(call.no, threads))
    if isinstance(call, TogetherCalls):
        chains = [calls_time(chain, threads) for chain in call.chains]
        return shared_time(chains, threads) if call.parallel is not False else sum(chains)
    return 0.0


def turns_of(call: LoopCalls) -> float:
    """Return how often a loop is gone through, as far as that is known."""
    return float(TURNS if call.kernel.length is None else typical(call.kernel.length))


def region_time(region: Region, threads: int) -> float:
    """Return the nanoseconds of a region."""
    if region.parallel is False or threads == 1:
        return alone_time(region)
    chunks = [(p.cost / typical(p.chunks), typical(p.chunks)) for p in region.pieces]
    return PER_CALL + shared_time([cost for cost, count in chunks for _ in range(count)], threads)


def alone_time(region: Region) -> float:
    """Return the nanoseconds of a region on one thread."""
    return sum(PER_CALL + piece.cost for piece in region.pieces)


def shared_time(parts: Sequence[float], threads: int) -> float:
    """Return when the last of several parts has ended that threads take in their order."""
    free = [0.0] * min(threads, len(parts))
    for part in parts:
        heapq.heapreplace(free, free[0] + part)
    return SHARED + max(free)
