"""Whether examples that read values are expected to go the way that they went last."""

from __future__ import annotations

LEAST_TRUST = 7 / 8  # the share of examples below which code runs
CALLS_A_LOOK = 4


class PathTrust:
    """Whether examples that read values are expected to go the way that they went last.

    Going by plans that do not hold costs a forward pass, which pays if few examples have changed.
    Where many do, what they read is noted in one call of some, to see whether that is still so.
    """

    def __init__(self) -> None:
        self._share = 1.0  # of examples that went the same way, of late
        self._calls = 0

    def __bool__(self) -> bool:
        return self._share >= LEAST_TRUST

    def looks(self) -> bool:
        """Count a call, and tell whether it is to note what is read."""
        self._calls += 1
        return bool(self) or self._calls % CALLS_A_LOOK == 0

    def note(self, same: int, count: int) -> None:
        """Learn how many of some examples went the same way as the time before."""
        if count:
            self._share += (same / count - self._share) / 4
