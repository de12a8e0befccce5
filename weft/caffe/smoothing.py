"""`average_loss`: the mean of the last losses, as logs show it."""

from __future__ import annotations


class SmoothedLoss:
    """The mean of up to so many losses, kept as Caffe keeps it.

    >>> smoothed = SmoothedLoss(2)
    >>> [smoothed.add(loss) for loss in (4.0, 2.0, 0.0)]
    [4.0, 3.0, 1.0]
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self.clear()

    def clear(self) -> None:
        """Forget all losses."""
        self._losses: list[float] = []
        self._count = 0
        self.mean = 0.0

    def add(self, loss: float) -> float:
        """Add a loss; return the mean."""
        if len(self._losses) < self._window:
            self._losses.append(loss)
            size = len(self._losses)
            self.mean = (self.mean * (size - 1) + loss) / size
        else:
            place = self._count % self._window
            self.mean += (loss - self._losses[place]) / self._window
            self._losses[place] = loss
        self._count += 1
        return self.mean
