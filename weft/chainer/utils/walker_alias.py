"""Walker's alias method: draws from a discrete distribution in constant time."""

from __future__ import annotations

from typing import Any

import numpy as np


class WalkerAlias:
    """Draws indices with given probabilities."""

    def __init__(self, probs: Any) -> None:
        weights = np.array(probs, np.float64)
        if weights.ndim != 1 or not len(weights) or (weights < 0).any() or not weights.sum() > 0:
            raise ValueError(
                f"probabilities must be a vector of positive numbers. Received: {probs!r:.60}"
            )
        count = len(weights)
        scaled = weights * count / weights.sum()
        self.threshold, self.alias = np.ones(count), np.arange(count)
        small, large = list(np.flatnonzero(scaled < 1)), list(np.flatnonzero(scaled >= 1))
        while small and large:
            little, much = small.pop(), large[-1]
            self.threshold[little], self.alias[little] = scaled[little], much
            scaled[much] -= 1 - scaled[little]
            if scaled[much] < 1:
                small.append(large.pop())

    def sample(self, shape: Any) -> Any:
        """Return an int32 array of draws."""
        place = np.random.randint(0, len(self.alias), shape)  # noqa: NPY002  (seeded as programs do)
        taken = np.random.random_sample(shape) < self.threshold[place]  # noqa: NPY002  (likewise)
        return np.where(taken, place, self.alias[place]).astype(np.int32)
