"""Fewer visits of Python's collector of cycles while a call puts operations off.

What stands for put-off results are objects by the ten thousand, all alive until their example ends.
The collector would look through them after every 700, move them to where it looks rarely, and look
through everything there is once these are many: a sixth of a parser's step. None of them is in a
cycle. So during a call it waits for more objects; how many is a limit to what real cycles can hold.
"""

from __future__ import annotations

import gc

from .signatures import interning

MOST_NEW = 100_000  # objects between two visits


class RareCollection:
    """A context in which the collector waits for more objects; several threads may be inside.

    Where the collector is off, or waits for more already, it is left alone; and so it is at the
    end if somebody has set it in between.
    """

    def __init__(self) -> None:
        self._inside = 0
        self._before = self._ours = gc.get_threshold()

    def __enter__(self) -> None:
        with interning:
            self._inside += 1
            if self._inside == 1:
                self._before = self._ours = gc.get_threshold()
                if 0 < self._before[0] < MOST_NEW:
                    self._ours = (MOST_NEW, *self._before[1:])
                    gc.set_threshold(*self._ours)

    def __exit__(self, *exception: object) -> None:
        with interning:
            self._inside -= 1
            if self._inside == 0 and gc.get_threshold() == self._ours:
                gc.set_threshold(*self._before)


rare_collection = RareCollection()
