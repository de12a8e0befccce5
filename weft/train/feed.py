"""Feed: batches without end from a loader, with an exact count of epochs.

An epoch is one pass over the loader, or `epoch_length` batches if that is given. Whether a batch
was the last of its epoch must be known before the next is asked for, so that extensions run at the
end of an epoch. A loader that knows its length tells; one that does not is read one batch ahead,
and its state of before that is what gets saved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from ..core.errors import ArgumentError, ArgumentTypeError
from ..data.loader import DataLoader, EpochIterator
from .checks import optional_int

_NOTHING: Any = object()
AHEAD = 2  # batches that a thread makes ahead
_ATTEMPTS = 3  # an ended pass, a resumed pass that was at its end, and a new one


class FeedMark(NamedTuple):
    """Where a feed stands: epochs done, batches drawn in this one, batches in an epoch."""

    epoch: int
    drawn: int
    length: int | None

    @property
    def position(self) -> Fraction:
        """Return the number of epochs done, as an exact fraction where the length is known."""
        if not self.length:
            return Fraction(self.epoch)
        return Fraction(self.epoch * self.length + self.drawn, self.length)

    @classmethod
    def at(cls, position: Fraction) -> FeedMark:
        """Return the mark at a number of epochs."""
        whole, rest = divmod(position.numerator, position.denominator)
        return cls(whole, rest, position.denominator)


class Feed:
    """Draw batches from a loader again and again.

    >>> feed = Feed([10, 20, 30])
    >>> [feed.draw() for _ in range(4)], feed.epoch, feed.position
    ([10, 20, 30, 10], 1, Fraction(4, 3))
    """

    def __init__(self, loader: Iterable[Any], epoch_length: int | None = None) -> None:
        if not isinstance(loader, Iterable):
            raise ArgumentTypeError(f"a loader must be iterable. Received: {type(loader).__name__}")
        self.loader = loader
        self._length = optional_int("epoch_length", epoch_length, 1)
        self._fixed = epoch_length is not None
        self.epoch = 0
        self.index = 0  # batches drawn in this epoch
        self._passed = 0  # batches drawn in this pass over the loader
        self._skip = 0
        self._iterator: Iterator[Any] | None = None
        self._held = _NOTHING
        self._held_state: Any = None
        self._known: Any = _NOTHING  # the length of the pass that is under way

    @property
    def length(self) -> int | None:
        """Return the number of batches in an epoch, or None if nobody knows."""
        return self._length if self._fixed else self._length_of_pass()

    def _length_of_pass(self) -> int | None:
        """Return what the loader says of its length, which is asked for once in a pass."""
        found = self._known
        if found is _NOTHING or self._iterator is None:
            found = self._known = _length_of(self.loader)
        return found  # type: ignore[no-any-return]  # a number or None by now

    @property
    def position(self) -> Fraction:
        """Return the number of epochs done, as an exact fraction where the length is known."""
        return FeedMark(self.epoch, self.index, self.length).position

    def draw(self) -> Any:
        """Return the next batch."""
        if self._held is not _NOTHING:
            batch, self._held = self._held, _NOTHING
        else:
            batch = self._next()
        self.index += 1
        self._passed += 1
        length = self._length if self._fixed else self._known
        if length is _NOTHING:
            length = self._length_of_pass()
        if self.index >= length if length is not None else not self._peek():
            self.epoch, self.index = self.epoch + 1, 0
        return batch

    def pause(self) -> None:
        """End worker processes that make batches, until the next batch is drawn."""
        if isinstance(self._iterator, EpochIterator):  # others stay as they are
            self._iterator.pause()

    def _peek(self) -> bool:
        """Read one batch ahead; tell whether there was one."""
        assert self._iterator is not None
        self._held_state = _state_of(self.loader)
        try:
            self._held = next(self._iterator)
        except StopIteration:
            return False
        return True

    def _next(self) -> Any:
        for _ in range(_ATTEMPTS):
            if self._iterator is None:
                self._iterator, self._passed = _iterate(self.loader), 0
                self._known = _NOTHING
                self._skip_again()
            try:
                return next(self._iterator)
            except StopIteration:
                self._iterator = None
        drawn = f" after {self.epoch} epochs" if self.epoch else ""
        raise ArgumentError(
            f"the loader ({type(self.loader).__name__}) gives no batches{drawn}; if it is a "
            "generator, pass something that can be iterated anew, or stop training earlier"
        )

    def _skip_again(self) -> None:
        """Pass over what an interrupted run has seen, in a loader that keeps no state."""
        assert self._iterator is not None
        for _ in range(self._skip):
            if next(self._iterator, _NOTHING) is _NOTHING:
                break
        self._passed, self._skip = self._skip, 0

    def state_dict(self) -> dict[str, Any]:
        """Return the position, and the loader's own state if it has one."""
        held = self._held is not _NOTHING
        return {
            "epoch": self.epoch,
            "index": self.index,
            "passed": self._passed if self.index or self._fixed else 0,
            "loader": self._held_state if held else _state_of(self.loader),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where `state_dict` was taken."""
        self.epoch, self.index = int(state["epoch"]), int(state["index"])
        self._iterator, self._held = None, _NOTHING
        saved = state["loader"]
        if saved is not None and hasattr(self.loader, "load_state_dict"):
            self.loader.load_state_dict(saved)
            self._passed = self._skip = 0
        else:
            self._passed = self._skip = int(state["passed"])


def _iterate(loader: Iterable[Any]) -> Iterator[Any]:
    """Begin a pass over a loader, with batches made ahead where that is known to be safe."""
    if isinstance(loader, DataLoader) and loader.prefetch is None and loader.worth_prefetching:
        return loader.iterate(AHEAD)
    return iter(loader)


def _length_of(loader: Any) -> int | None:
    try:
        return len(loader)
    except (TypeError, NotImplementedError):
        return None


def _state_of(loader: Any) -> Any:
    return loader.state_dict() if hasattr(loader, "state_dict") else None
