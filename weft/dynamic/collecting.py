"""Fewer visits of Python's collector of cycles while a call puts operations off.

What stands for put-off results are objects by the ten thousand, all alive until their example ends.
The collector would look through them after every 700, move them to where it looks rarely, and look
through everything there is once these are many: a sixth of a parser's step. None of them is in a
cycle. So during a call it waits for more objects; how many is a limit to what real cycles can hold.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from threading import get_ident

from .signatures import interning

MOST_NEW = 100_000  # objects between two visits


class RareCollection:
    """A context in which the collector waits for more objects; several threads may be inside.

    Where the collector is off, or waits for more already, it is left alone; and so it is at the
    end if somebody has set it in between.
    """

    def __init__(self) -> None:
        self._inside = Counter[int]()  # how often each thread is
        self._before = self._ours = gc.get_threshold()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._stay_alone)

    def __enter__(self) -> None:
        with interning:
            if not self._inside:
                self._before = self._ours = gc.get_threshold()
                if 0 < self._before[0] < MOST_NEW:
                    self._ours = (MOST_NEW, *self._before[1:])
                    gc.set_threshold(*self._ours)
            self._inside[get_ident()] += 1

    def __exit__(self, *exception: object) -> None:
        with interning:
            self._inside[get_ident()] -= 1
            self._inside = +self._inside  # without those who have left
            self._restore()

    def _restore(self) -> None:
        if not self._inside and gc.get_threshold() == self._ours:
            gc.set_threshold(*self._before)

    def _stay_alone(self) -> None:
        """In a child only the thread that forked goes on: calls of the others never end there."""
        if self._inside:
            own = self._inside[get_ident()]
            self._inside = Counter({get_ident(): own}) if own else Counter()
            self._restore()


rare_collection = RareCollection()
