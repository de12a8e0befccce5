"""Run branches of a program at the same time that need nothing of one another.

A program that is planned tells how long each of its kernels holds up the run: small ones, loops and
others that threads do not share take as long as on one thread. Where a stretch of them falls apart
into components by the memory that they touch, components are chains: a thread does each of them,
one kernel after another. Stretches are chosen so that most time is gained, by estimates; the
program is then planned once more, and the plan that takes less time is kept. What a kernel
computes, and in which order it adds, is the same in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

from ..core.dim import is_known
from ..lower.kernels import (
    BranchKernel,
    Kernel,
    LoopKernel,
    ScatterKernel,
    TogetherKernel,
    calls_library,
    may_fail,
    walk,
)
from ..lower.program import KernelProgram
from ..lower.schedule import BranchCalls, LoopCalls, Region
from ..lower.storage import Buffer, buffers_behind
from .device import Device
from .memory import with_memory
from .threads import with_schedule
from .times import PER_CALL, SHARED, calls_time, region_time, schedule_time, shared_time, turns_of

LEAST_GAIN = 4000.0  # nanoseconds: less is not worth another plan
LEAST_SHARE = 0.1  # of the time of a run: estimates are not better than that
FOR_MEMORY = 0.3  # of it, where the plan takes more memory
MORE = 1.25  # times as much memory, to be more
AMPLE = 1 << 18  # bytes of a plan that are no matter: a part of the cache of one processor
WINDOW = 256  # the most kernels of a stretch: the search takes time with its square
CHAINS_PER_THREAD = 2  # more balance better, but each has memory of its own
CHEAP = 400.0  # nanoseconds of a kernel that is done first, so that it joins nothing
SMALL = 4096  # bytes that it may make


def with_branches(program: KernelProgram, device: Device) -> KernelProgram:
    """Return a program whose branches run at the same time, if it takes less time like that."""
    assert program.schedule is not None, "how long it takes follows from who calls kernels"
    if device.threads == 1 or _writes_rows(program):
        return program
    now = schedule_time(program.schedule, device.threads)
    finder = _Finder(program, device.threads)
    kernels = finder.grouped(program.kernels)
    if not finder.found:
        return program
    bare = replace(program, kernels=tuple(kernels), memory=None, schedule=None)
    made = with_schedule(with_memory(bare), device)
    return made if _pays(program, made, now, device.threads) else program


def _writes_rows(program: KernelProgram) -> bool:
    """Tell whether rows of states are written in place, which stands behind all else already.

    The copies that such states would need in another order are gone from the program.
    """
    assert program.memory is not None, "it is planned"
    shared = program.memory.shared
    scatters = (kernel for kernel in program.kernels if isinstance(kernel, ScatterKernel))
    return any(not shared.keys().isdisjoint(_written(kernel)) for kernel in scatters)


def _pays(program: KernelProgram, made: KernelProgram, now: float, threads: int) -> bool:
    """Tell whether a plan with chains is better than one without, which takes so long now."""
    assert program.memory is not None, "both are planned"
    assert made.memory is not None, "both are planned"
    assert made.schedule is not None, "both are planned"
    gained = now - schedule_time(made.schedule, threads)
    larger = made.memory.arena_bytes > max(AMPLE, MORE * program.memory.arena_bytes)
    return gained >= max(LEAST_GAIN, (FOR_MEMORY if larger else LEAST_SHARE) * now)


class _Step(NamedTuple):
    """A kernel as the search sees it.

    now      nanoseconds for which it holds up the run, as it is planned
    alone    nanoseconds on one thread
    after    which of the steps before it must have ended
    """

    kernel: Kernel
    now: float
    alone: float
    after: frozenset[int]


class _Finder:
    """Finds what of a planned program can run at the same time."""

    def __init__(self, program: KernelProgram, threads: int) -> None:
        assert program.schedule is not None, "it is planned"
        assert program.memory is not None, "it is planned"
        self.threads = threads
        self.found = 0
        self._times: dict[int, tuple[float, float]] = {}
        self._in_place = program.memory.shared
        self._commits = {view.buffer for _, view in program.commits}
        for calls in (program.schedule.steps, *program.schedule.stretches):
            self._note(calls)

    def grouped(self, kernels: Sequence[Kernel]) -> list[Kernel]:
        """Return kernels with chains in the place of some."""
        made: list[Kernel] = []
        for by_host, group in groupby(kernels, calls_library):
            together = list(group)
            made += map(self._inside, together) if by_host else self._chained(together)
        return made

    def _inside(self, kernel: Kernel) -> Kernel:
        """Return control flow with chains among its kernels."""
        if isinstance(kernel, LoopKernel):
            body = tuple(self.grouped(kernel.body))
            return kernel if _same(body, kernel.body) else replace(kernel, body=body)
        if isinstance(kernel, BranchKernel):
            yes, no = (tuple(self.grouped(part)) for part in kernel.parts)
            both = _same(yes, kernel.yes) and _same(no, kernel.no)
            return kernel if both else replace(kernel, yes=yes, no=no)
        return kernel

    def _chained(self, kernels: Sequence[Kernel]) -> list[Kernel]:
        """Return kernels that need no host, in a new order where chains are found."""
        steps = self._steps(self._cheap_first(kernels))
        windows = list(_best_windows(steps, self.threads))
        if not windows:
            return [self._inside(kernel) for kernel in kernels]
        made: list[Kernel] = []
        for window in windows:
            chains, later = self._chains(steps, window)
            if chains is None:
                made += [self._inside(steps[i].kernel) for i in window]
            else:
                self.found += 1
                made += [TogetherKernel(chains[0][-1].name, chains), *later]
        return made

    # -- times -------------------------------------------------------------------------------------

    def _note(self, calls: Iterable[Any]) -> None:
        """Note how long kernels take, by the schedule."""
        for call in calls:
            if isinstance(call, Region):
                took = region_time(call, self.threads)
                total = sum(PER_CALL + piece.cost for piece in call.pieces)
                for piece in call.pieces:
                    alone = PER_CALL + piece.cost
                    self._times[id(piece.kernel)] = took * alone / total, alone
            elif isinstance(call, LoopCalls):
                inner = (*call.test, *call.body)
                self._note(inner)
                self._note_control(call.kernel, inner, turns_of(call))
            elif isinstance(call, BranchCalls):
                longer = max((call.yes, call.no), key=lambda part: calls_time(part, self.threads))
                self._note(call.yes)
                self._note(call.no)
                self._note_control(call.kernel, longer, 1.0)

    def _note_control(self, kernel: Kernel, calls: Iterable[Any], times: float) -> None:
        now = times * calls_time(calls, self.threads)
        inner = (k for part in kernel.parts for k in part)
        if isinstance(kernel, BranchKernel):
            alone = max((sum(map(self._alone, part)) for part in kernel.parts), default=0.0)
        else:
            alone = times * sum(map(self._alone, inner))
        self._times[id(kernel)] = now, max(now, alone)

    def _alone(self, kernel: Kernel) -> float:
        return self._times.get(id(kernel), (0.0, 0.0))[1]

    def _cheap_first(self, kernels: Sequence[Kernel]) -> list[Kernel]:
        """Return kernels with those first that take no time and need none that does.

        They are a learning rate, a mask: made for many, they would join what is apart otherwise.
        """
        order, first = _Dependencies(self._in_place), set[int]()
        for i, kernel in enumerate(kernels):
            ready = order.add(kernel) <= first and not may_fail(kernel)
            cheap = self._alone(kernel) <= CHEAP and all(map(_is_small, _written(kernel)))
            if ready and cheap:
                first.add(i)
        rest = [kernel for i, kernel in enumerate(kernels) if i not in first]
        return [*(kernels[i] for i in sorted(first)), *rest]

    def _steps(self, kernels: Sequence[Kernel]) -> list[_Step]:
        order = _Dependencies(self._in_place)
        return [_Step(k, *self._times.get(id(k), (0.0, 0.0)), order.add(k)) for k in kernels]

    # -- chains ------------------------------------------------------------------------------------

    def _chains(
        self, steps: Sequence[_Step], window: range
    ) -> tuple[tuple[tuple[Kernel, ...], ...] | None, list[Kernel]]:
        """Return the chains of a window, and what is done after them; None if that takes longer."""
        if len(window) < 2:
            return None, []
        later = self._later(steps, window)
        parts = _components(steps, [i for i in window if i not in later])
        groups = _packed(parts, steps, CHAINS_PER_THREAD * self.threads)
        took = shared_time([sum(steps[i].alone for i in g) for g in groups], self.threads)
        gained = sum(steps[i].now for i in window if i not in later) - took
        if len(groups) < 2 or gained < LEAST_GAIN:
            return None, []
        return _kernels_of(steps, groups), self._after(steps, groups, later)

    def _after(
        self, steps: Sequence[_Step], groups: list[list[int]], later: set[int]
    ) -> list[Kernel]:
        """Return what is done after chains: in chains too, which go on with what each has made.

        Who ran a chain has that in its caches, and often is who runs the one in its place.
        """
        found = _continued(steps, groups, later)
        if len(found) > 1:
            took = shared_time([sum(steps[i].alone for i in g) for g in found], self.threads)
            if took < sum(steps[i].now for i in later):
                chains = _kernels_of(steps, found)
                return [TogetherKernel(chains[0][-1].name, chains)]
        return [steps[i].kernel for i in sorted(later)]

    def _later(self, steps: Sequence[_Step], window: range) -> set[int]:
        """Return what is done after the chains of a window: it makes new values of states.

        They can be written over the old ones only when nothing can fail any more, also in another
        chain.
        """
        if not any(may_fail(steps[i].kernel) for i in window):
            return set()
        needed = {i for k in window for i in steps[k].after}
        commits = self._commits
        writers = (i for i in window if not commits.isdisjoint(_written(steps[i].kernel)))
        return {i for i in writers if i not in needed}


def _same(made: Sequence[Kernel], old: Sequence[Kernel]) -> bool:
    return len(made) == len(old) and all(a is b for a, b in zip(made, old, strict=True))


# -- what depends on what --------------------------------------------------------------------------


def _touched(kernel: Kernel) -> Iterator[Buffer]:
    for inner in walk([kernel]):
        for view in inner.views:
            yield from buffers_behind(view.buffer)


def _written(kernel: Kernel) -> set[Buffer]:
    """Return the memory that a kernel writes, itself or inside."""
    found = set()
    for inner in walk([kernel]):
        views = inner.views
        found |= {buffers_behind(views[i].buffer)[0] for i in inner.written}
    return found


class _Dependencies:
    """Tells which of the kernels before it a kernel has to wait for, by what they touch.

    in_place   new values of states that are written over the old ones, which others must have read
    """

    def __init__(self, in_place: Mapping[Buffer, Buffer]) -> None:
        self._in_place = in_place
        self._count = 0
        self._writer: dict[Buffer, int] = {}
        self._readers: dict[Buffer, list[int]] = {}

    def add(self, kernel: Kernel) -> frozenset[int]:
        """Return what a kernel waits for; it is the next one."""
        number, written, found = self._count, _written(kernel), set[int]()
        self._count += 1
        written |= {self._in_place[buffer] for buffer in written if buffer in self._in_place}
        for buffer in {*_touched(kernel), *written}:
            if buffer in self._writer:
                found.add(self._writer[buffer])
            if buffer in written:
                found.update(self._readers.pop(buffer, ()))
                self._writer[buffer] = number
            else:
                self._readers.setdefault(buffer, []).append(number)
        return frozenset(found)


def _is_small(buffer: Buffer) -> bool:
    return is_known(buffer.shape) and buffer.nbytes <= SMALL


# -- the search ------------------------------------------------------------------------------------


def _best_windows(steps: Sequence[_Step], threads: int) -> Iterator[range]:
    """Yield stretches that together are all steps, chosen so that chains gain most time.

    Those without a gain have one step. Nothing is yielded if none has a gain.
    """
    if not _may_gain(steps, threads):
        return
    count = len(steps)
    best, ends = [0.0] * (count + 1), list(range(1, count + 2))
    for start in reversed(range(count)):
        best[start] = best[start + 1]
        for end, gain in _gains(steps, start, threads):
            if gain + best[end] > best[start] + 1e-6:
                best[start], ends[start] = gain + best[end], end
    if best[0] < LEAST_GAIN:
        return
    start = 0
    while start < count:
        yield range(start, ends[start])
        start = ends[start]


def _may_gain(steps: Sequence[_Step], threads: int) -> bool:
    """Tell whether chains could take less time, if all went as well as it can."""
    reached: list[float] = []
    for step in steps:
        reached.append(step.alone + max((reached[i] for i in step.after), default=0.0))
    shortest = max(max(reached, default=0.0), sum(s.alone for s in steps) / threads)
    return sum(step.now for step in steps) - shortest - SHARED >= LEAST_GAIN


def _gains(steps: Sequence[_Step], start: int, threads: int) -> Iterator[tuple[int, float]]:
    """Yield ends of stretches from a step on, and what chains gain in them, in nanoseconds."""
    component: dict[int, int] = {}
    cost: dict[int, float] = {}
    now = alone = longest = 0.0
    for i in range(start, min(len(steps), start + WINDOW)):
        step = steps[i]
        joined = {_root(component, k) for k in step.after if k >= start}
        component[i] = i
        cost[i] = step.alone
        for root in joined:
            component[root] = i
            cost[i] += cost.pop(root)
        now, alone, longest = now + step.now, alone + step.alone, max(longest, cost[i])
        if len(cost) > 1:
            yield i + 1, now - max(longest, alone / threads) - SHARED


def _root(component: dict[int, int], i: int) -> int:
    while component[i] != i:
        component[i] = component[component[i]]
        i = component[i]
    return i


def _components(steps: Sequence[_Step], chosen: Sequence[int]) -> list[list[int]]:
    """Return steps in lists that need nothing of one another."""
    inside, component = set(chosen), dict[int, int]()
    for i in chosen:
        component[i] = i
        for k in steps[i].after & inside:
            component[_root(component, k)] = i
    found: dict[int, list[int]] = {}
    for i in chosen:
        found.setdefault(_root(component, i), []).append(i)
    return list(found.values())


def _kernels_of(steps: Sequence[_Step], groups: list[list[int]]) -> tuple[tuple[Kernel, ...], ...]:
    return tuple(tuple(steps[i].kernel for i in sorted(group)) for group in groups)


def _continued(steps: Sequence[_Step], groups: list[list[int]], later: set[int]) -> list[list[int]]:
    """Return later steps in a list for each group of steps that they go on from.

    Of several groups it is the longest, which stands first.
    """
    home = {i: g for g, group in enumerate(groups) for i in group}
    found: dict[int, list[int]] = {}
    for part in _components(steps, sorted(later)):
        before = (home[k] for i in part for k in steps[i].after if k in home)
        found.setdefault(min(before, default=0), []).extend(part)
    return [found[g] for g in sorted(found)]


def _packed(parts: list[list[int]], steps: Sequence[_Step], most: int) -> list[list[int]]:
    """Return at most so many lists of steps, the longest first, of about equal times."""
    groups: list[tuple[float, list[int]]] = []
    costs = {id(part): sum(steps[i].alone for i in part) for part in parts}
    for part in sorted(parts, key=lambda part: -costs[id(part)]):
        if len(groups) < most:
            groups.append((costs[id(part)], list(part)))
        else:
            least = min(range(most), key=lambda g: groups[g][0])
            groups[least] = groups[least][0] + costs[id(part)], [*groups[least][1], *part]
    return [group for _, group in sorted(groups, key=lambda g: -g[0])]
