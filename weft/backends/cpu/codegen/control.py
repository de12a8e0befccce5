"""Write control flow around calls of kernels: loops and branches of an entry function.

The numbers that windows move with lie in memory, not in registers: a chunk of a kernel that another
thread does finds them there, and so does Python where it drives a loop itself.

A loop may run for hours, and Ctrl-C must end it: every some microseconds of work, as estimated, it
calls `weft_poll` of the runtime, and gives up the run if that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....core.dim import is_known, typical
from ....lower.schedule import BranchCalls, Calls, LoopCalls, Region, TogetherCalls
from ....lower.storage import Buffer, View, contiguous
from ...host import first_index
from .text import FunctionText
from .values import IRValue

POLL = "weft_poll"  # i32 (), not 0: give up
POLL_EVERY = 20_000.0  # nanoseconds
MOST_TURNS = 4096
PER_TURN = 5.0  # nanoseconds of a turn, and of each kernel in it, beside those of its work

Address = Callable[[View], IRValue]
Write = Callable[[Sequence[Any]], None]
GiveUp = Callable[
    [FunctionText], IRValue
]  # writes a test, not 0: leave; notes it where others look


def polled(f: FunctionText) -> IRValue:
    """Write the question whether a signal's handler has raised."""
    return f.call(POLL, "i32", declare=True)


def turns_between_polls(calls: LoopCalls) -> int:
    """Return how many turns of a loop, a power of two, may pass until it polls again."""
    return _turns(_nanoseconds((*calls.test, *calls.body)))


def _turns(nanoseconds: float) -> int:
    wished = min(MOST_TURNS, max(1.0, POLL_EVERY / nanoseconds))
    return 1 << int(wished).bit_length() - 1


def _nanoseconds(calls: Sequence[Any]) -> float:
    """Estimate how long calls may run without a poll."""
    return PER_TURN + sum(map(_nanoseconds_of, calls))


def _nanoseconds_of(call: Any) -> float:
    if isinstance(call, LoopCalls):
        turn = _nanoseconds((*call.test, *call.body))
        length = call.kernel.length
        return turn * min(_turns(turn), MOST_TURNS if length is None else typical(length))
    if isinstance(call, BranchCalls):
        return max(_nanoseconds(call.yes), _nanoseconds(call.no))
    if isinstance(call, TogetherCalls):
        return max(map(_nanoseconds, call.chains))
    assert isinstance(call, Region)
    return sum(PER_TURN + piece.cost for piece in call.pieces)


def write_calls(
    f: FunctionText,
    calls: Calls,
    address: Address,
    write: Write,
    give_up: GiveUp | None = None,
) -> None:
    """Write a loop or a branch; `write` writes the calls of kernels, `address` finds memory.

    `give_up` writes the question whether to go on, and what is left behind if not, in a chain.
    """
    if isinstance(calls, BranchCalls):
        _write_branch(f, calls, address, write)
    else:
        _LoopWriter(f, calls, address, write, give_up or polled).write()


def _write_branch(f: FunctionText, calls: BranchCalls, address: Address, write: Write) -> None:
    yes, no, done = f.label("yes"), f.label("no"), f.label("joined")
    f.branch_if(f.load("i1", address(calls.kernel.chosen)), yes, no)
    for label, part in ((yes, calls.yes), (no, calls.no)):
        f.block(label)
        write(part)
        f.branch(done)
    f.block(done)


class _LoopWriter:
    def __init__(
        self,
        f: FunctionText,
        calls: LoopCalls,
        address: Address,
        write: Write,
        give_up: GiveUp,
    ) -> None:
        self.f = f
        self.give_up = give_up
        self.calls = calls
        self.kernel = calls.kernel
        self.address = address
        self.write_calls = write

    def write(self) -> None:
        """Write the loop: test, body, then on to the next step."""
        f, kernel = self.f, self.kernel
        head, step, done = f.label("head"), f.label("step"), f.label("left")
        for word, number in ((kernel.index, first_index(kernel)), (kernel.half, 0)):
            f.store(f.constant("i64", number), self._word(word))
        before = f.current
        f.branch(head)
        f.block(head)
        taken = f.phi("i64", (f.constant("i64", 0), before))
        self._leave_unless_more(taken, step, done)
        self.write_calls(self.calls.body)
        following = f.add(taken, 1)
        self._move_on()
        self._leave_if_interrupted(following)
        taken.incoming(following, self._end_step(head, done))
        f.block(done)

    def _leave_unless_more(self, taken: IRValue, step: str, done: str) -> None:
        f, kernel = self.f, self.kernel
        if kernel.length is not None:
            more = f.icmp("slt", taken, kernel.length)
        else:
            self.write_calls(self.calls.test)
            assert kernel.holds is not None
            more = f.load("i1", self.address(kernel.holds))
        f.branch_if(more, step, done)
        f.block(step)

    def _move_on(self) -> None:
        f, kernel = self.f, self.kernel
        index, half = self._word(kernel.index), self._word(kernel.half)
        f.store(f.add(f.load("i64", index), -1 if kernel.reverse else 1), index)
        f.store(f.sub(f.constant("i64", 1), f.load("i64", half)), half)

    def _leave_if_interrupted(self, taken: IRValue) -> None:
        """End the run if the handler of a signal has raised."""
        f, turns = self.f, turns_between_polls(self.calls)
        length = self.kernel.length
        if length is not None and is_known([length]) and length < turns:
            return
        poll, leave, stay = f.label("poll"), f.label("leave"), f.label("stay")
        f.branch_if(f.icmp("eq", f.and_(taken, turns - 1), 0), poll, stay)
        f.block(poll)
        f.branch_if(f.icmp("ne", self.give_up(f), 0), leave, stay)
        f.block(leave)
        f.ret()
        f.block(stay)

    def _end_step(self, head: str, done: str) -> str:
        f, stops = self.f, self.kernel.stops
        last = f.current
        if stops is None:
            f.branch(head)
        else:
            f.branch_if(f.load("i1", self.address(stops)), done, head)
        return last

    def _word(self, word: Buffer) -> IRValue:
        return self.address(contiguous(word, ()))
