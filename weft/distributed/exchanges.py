"""What moves arrays among the processes of a group: at once, or by a thread while others compute.

All exchanges of a transport happen one after another, in the order in which they were begun, which
must be the same on all processes: before each the processes compare what they are about to do. What
is begun with `start` has an array of its own until `wait` hands out the result.
"""

from __future__ import annotations

import threading
import warnings
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from ..ops.collective.exchange import COMPUTED, POINTS
from .errors import MismatchError
from .launcher.heartbeat import pulse
from .programs import RunningProgram, agree, checksum, difference, differing_numbers, packed
from .transport import Array, Transport

IN_PLACE = (*COMPUTED, "mean", "total", "receive")  # what takes the place of an operand


class ExchangeSignature(NamedTuple):
    """What a process is about to do with the others: must be the same on all."""

    how: str
    shape: tuple[int, ...]
    dtype: str
    axis: int = 0
    place: int = 0
    note: str = ""

    @classmethod
    def of(
        cls, array: Array, how: str, axis: int = 0, place: int = 0, note: str = ""
    ) -> ExchangeSignature:
        """Return what is done with an array."""
        return cls(how, array.shape, array.dtype.name, axis, place, note)

    def __str__(self) -> str:
        further = f", axis={self.axis}, place={self.place}" if self.axis or self.place else ""
        note = f" ({self.note})" if self.note else ""
        return f"{self.how} of {self.dtype}{list(self.shape)}{further}{note}"


class PendingExchange:
    """An exchange that was begun: its result, when it is there."""

    __slots__ = ("_done", "_error", "_result", "ticket", "work")

    def __init__(self, work: Callable[[], Array]) -> None:
        self.work = work
        self.ticket = _next_ticket()
        self._done = threading.Event()
        self._result: Array | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Do it; an error is raised by who waits."""
        try:
            self._result = self.work()
        except BaseException as error:
            self._error = error
        self.work = _nothing
        self._done.set()

    @property
    def is_done(self) -> bool:
        """Tell whether the result is there."""
        return self._done.is_set()

    def wait(self) -> Array:
        """Return the result when it is there."""
        with pulse.waiting("an exchange"):
            self._done.wait()
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result


def _nothing() -> Array:
    raise AssertionError("an exchange runs once")


_tickets: dict[int, PendingExchange] = {}
_next_ticket = count(1).__next__


class Exchanges:
    """The exchanges of one transport, in order; a thread does those that were begun before."""

    checks = True  # whether processes compare what they are about to do
    differing = 0  # who lets the programs differ which that belongs to

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._queue: deque[PendingExchange] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy = self._ends = False
        self._told: set[tuple[int, ...]] = set()  # different numbers in programs that were named

    # -- in order ------------------------------------------------------------------------------

    def run(self, work: Callable[[], Any]) -> Any:
        """Do something behind all that was begun, and return what it returns."""
        with self._changed:
            idle = not self._busy and not self._queue
        if idle:  # only this thread begins exchanges, so nothing comes in between
            with pulse.waiting("an exchange"):
                return work()
        pending = self.begin(work)
        return pending.wait()

    def begin(self, work: Callable[[], Any]) -> PendingExchange:
        """Let the thread do something behind all that was begun before."""
        pending = PendingExchange(work)
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="weft exchanges")
                self._thread.daemon = True
                self._thread.start()
            self._queue.append(pending)
            self._changed.notify()
        return pending

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                while not self._queue and not self._ends:
                    self._changed.wait()
                if not self._queue:
                    return
                pending = self._queue.popleft()
                self._busy = True
            pending.run()

    def finish(self) -> None:
        """End the thread when it has done what was begun."""
        thread = self._thread
        if thread is not None:
            with self._changed:
                self._ends = True
                self._changed.notify()
            thread.join(timeout=10.0)  # another process may be gone

    # -- arrays --------------------------------------------------------------------------------

    def exchange(
        self, array: Array, signature: ExchangeSignature, program: RunningProgram | None = None
    ) -> Array:
        """Do something with an array of each process; return the result.

        program   which it belongs to, where that is known
        """
        changes = signature.how in IN_PLACE
        own = np.array(array, order="C") if changes else np.ascontiguousarray(array)
        found: Array = self.run(lambda: self._exchanged(own, signature, program))
        return found

    def start(
        self, array: Array, signature: ExchangeSignature, program: RunningProgram | None = None
    ) -> PendingExchange:
        """Begin the same on an array that is given away; `take` finds it by its ticket."""
        begun = self.begin(lambda: self._exchanged(array, signature, program))
        _tickets[begun.ticket] = begun
        return begun

    def _exchanged(
        self, own: Array, signature: ExchangeSignature, program: RunningProgram | None
    ) -> Array:
        pulse.count += 1
        if self.checks and signature.how not in POINTS:
            self._compare(str(signature), None if self.differing else program)
        if signature.how in COMPUTED:
            return self.transport.reduce(own, signature.how)
        found: Array = getattr(Ways, signature.how)(self.transport, own, signature)
        return found

    # -- agreeing ------------------------------------------------------------------------------

    def check(self, text: str) -> None:
        """Raise on all processes unless all came here with the same text."""
        self.run(lambda: self._compare(text))

    def _compare(self, text: str, program: RunningProgram | None = None) -> None:
        numbers = self.transport.agree(packed(checksum(text), program))
        same = agree(numbers)
        if same.exchange and same.program:
            if not same.numbers:
                self._compare_numbers(tuple(numbers), program)
            return
        said = []
        if not same.exchange:
            texts = self.transport.objects(text)
            said = [f"rank {i}: {text}" for i, text in enumerate(texts)]
        if not same.program:
            said.append(difference(self.transport.objects(program and program.lines)))
        what = "do the same" if not same.exchange else "run the same program"
        raise MismatchError(f"the processes do not {what}: {'; '.join(said)}")

    def _compare_numbers(self, seen: tuple[int, ...], program: RunningProgram | None) -> None:
        """Warn, once, if programs that are alike compute with different real numbers."""
        if seen in self._told:  # on all processes: they have seen the same
            return
        self._told.add(seen)
        mine = None if program is None else (program.sizes, program.numbers)
        said = differing_numbers(self.transport.objects(mine))
        if said is not None:
            warnings.warn(
                f"the processes compute with different numbers: {said}; the results are those of "
                "each with its own, which is right only if it is meant",
                RuntimeWarning,
                stacklevel=1,
            )


def take(ticket: int) -> PendingExchange:
    """Return the exchange of a ticket, which is good for one result."""
    return _tickets.pop(ticket)


# -- how ---------------------------------------------------------------------------------------


def _parted(array: Array, axis: int, count: int) -> Array:
    """Return equal parts along an axis as rows."""
    parts = array.reshape((*array.shape[:axis], count, -1, *array.shape[axis + 1 :]))
    return np.ascontiguousarray(np.moveaxis(parts, axis, 0))


def _joined(rows: Array, axis: int) -> Array:
    """Return rows one after another along an axis."""
    parts = np.moveaxis(rows, 0, axis)
    return parts.reshape((*parts.shape[:axis], -1, *parts.shape[axis + 2 :]))


class Ways:
    """How the arrays of all processes become a result: a function for each, by its name."""

    @staticmethod
    def mean(transport: Transport, own: Array, at: ExchangeSignature) -> Array:
        """Return the mean of all."""
        total = transport.reduce(own, "sum")
        total /= transport.size
        return total

    @staticmethod
    def pairwise(transport: Transport, own: Array, at: ExchangeSignature) -> Array:
        """Return a sum that is added as a balanced tree."""
        return transport.pairwise_sum(own)

    @staticmethod
    def broadcast(transport: Transport, own: Array, at: ExchangeSignature) -> Array:
        """Return the array of one process."""
        return transport.broadcast(own, at.place)

    @staticmethod
    def reduce(transport: Transport, own: Array, at: ExchangeSignature) -> Array:
        """Return the sum to one process."""
        return transport.reduce_to(own, at.place)

    @staticmethod
    def gather(transport: Transport, own: Array, at: ExchangeSignature) -> Array:
        """Return all, one after another."""
        return _joined(transport.gather(own), at.axis)

    @staticmethod
    def scatter(transport: Transport, own: Array, at: ExchangeSignature) -> Array:
        """Return a part of the sum."""
        return transport.scatter_sum(_parted(own, at.axis, transport.size))

    @staticmethod
    def mean_part(transport: Transport, own: Array, at: ExchangeSignature) -> Array:
        """Return a part of the mean."""
        total = Ways.scatter(transport, own, at)
        total /= transport.size
        return total

    @staticmethod
    def all_to_all(transport: Transport, own: Array, at: ExchangeSignature) -> Array:
        """Return a part of each."""
        return _joined(transport.swap(_parted(own, at.axis, transport.size)), at.place)

    @staticmethod
    def shift(transport: Transport, own: Array, at: ExchangeSignature) -> Array:
        """Return the array of a neighbour."""
        return transport.shift(own, at.place)

    @staticmethod
    def total(transport: Transport, own: Array, at: ExchangeSignature) -> Array:
        """Return the sum of all."""
        return transport.reduce(own, "sum")

    @staticmethod
    def collect(transport: Transport, own: Array, at: ExchangeSignature) -> Array:
        """Return all, one after another."""
        return Ways.gather(transport, own, at)

    @staticmethod
    def whole(transport: Transport, own: Array, at: ExchangeSignature) -> Array:
        """Return all, one after another."""
        return Ways.gather(transport, own, at)

    @staticmethod
    def send(transport: Transport, own: Array, at: ExchangeSignature) -> Array:
        """Send what is sent, and how to check it; return the receipt."""
        said = np.array([checksum(_point(at))], np.int64)
        transport.send(said, at.place, SAID)
        transport.send(own, at.place, SENT)
        return np.zeros((), own.dtype)

    @staticmethod
    def receive(transport: Transport, own: Array, at: ExchangeSignature) -> Array:
        """Return what another process sent; raise if it is something else."""
        said = np.zeros(1, np.int64)
        transport.receive(said, at.place, SAID)
        if said[0] != checksum(_point(at)):
            raise MismatchError(
                f"rank {transport.rank} expects {_point(at)} from rank {at.place}, which sends "
                "something of another shape or dtype"
            )
        transport.receive(own, at.place, SENT)
        return own


SAID, SENT = 11, 12  # tags of messages


def _point(at: ExchangeSignature) -> str:
    note = f" ({at.note})" if at.note else ""
    return f"{at.dtype}{list(at.shape)}{note}"
