"""Walker's alias method: draws from a discrete distribution in constant time.

The random numbers are Weft's (`wf.manual_seed`), so that draws can be part of a compiled step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.op import F
from ...core.tensor import Tensor, wrap
from ...ops.random.draw import rand, randint


class WalkerAlias:
    """Draws indices with given probabilities.

    >>> sampler = WalkerAlias([0.0, 1.0, 0.0])
    >>> sampler.sample((2, 2))
    array([[1, 1],
           [1, 1]], dtype=int32)
    """

    def __init__(self, probs: Any) -> None:
        weights = np.array(probs, np.float64)
        if weights.ndim != 1 or not len(weights) or (weights < 0).any() or not weights.sum() > 0:
            raise ValueError(
                f"probabilities must be a vector of positive numbers. Received: {probs!r:.60}"
            )
        count = len(weights)
        scaled = weights * count / weights.sum()
        self.threshold, self.alias = np.ones(count), np.arange(count, dtype=np.int32)
        small, large = list(np.flatnonzero(scaled < 1)), list(np.flatnonzero(scaled >= 1))
        while small and large:
            little, much = small.pop(), large[-1]
            self.threshold[little], self.alias[little] = scaled[little], much
            scaled[much] -= 1 - scaled[little]
            if scaled[much] < 1:
                small.append(large.pop())

        # As tensors they are part of the programs that draw.
        self._threshold, self._alias = wrap(self.threshold), wrap(self.alias)

    def draw(self, shape: Any) -> Tensor:
        """Return a tensor of draws, int32: a place for each, or in its stead the one beside it."""
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        place = randint(0, len(self.alias), sizes, dtype="int32")
        taken = rand(*sizes, dtype="float64") < F.take(self._threshold, place, 0)
        return F.where(taken, place, F.take(self._alias, place, 0))

    def sample(self, shape: Any) -> Any:
        """Return an int32 array of draws."""
        return self.draw(shape).numpy()
