"""Random numbers of examples: each draws from a stream of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.rng import Generator, make_state


class ExampleDraws:
    """The generators of one run: example i draws from the stream (state at the call, i)."""

    def __init__(self) -> None:
        self._calls: dict[int, tuple[Generator, int, int]] = {}
        self._streams: dict[tuple[int, int], Generator] = {}

    def again(self) -> ExampleDraws:
        """Return the same streams, from their beginning."""
        found = ExampleDraws()
        found._calls = self._calls
        return found

    def state(self, generator: Generator, blocks: int, example: int) -> np.ndarray[Any, Any]:
        """Return the state for the next draw of an example."""
        found = self._streams.get((id(generator), example))
        if found is None:
            call = self._calls.get(id(generator))
            if call is None:
                call = self._calls[id(generator)] = generator, *generator.reserve(1)
            found = Generator.of_example(call[1], call[2], example)
            self._streams[id(generator), example] = found
        return make_state(*found.reserve(blocks))
