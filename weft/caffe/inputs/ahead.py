"""Batches made ahead by a thread, while the net is in machine code."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any
from weakref import finalize

_GRACE_SECONDS = 3.0  # a reader that hangs must not hang whoever stops reading


class Ahead:
    """An iterator whose next items a thread makes; errors are raised where they would come.

    Orders go to the thread and items come back by queues of machine code, as many at a time as may
    be made ahead: a queue with a bound is one of Python code, and takes longer than many a batch.
    """

    def __init__(self, items: Iterator[Any], count: int) -> None:
        self._orders: SimpleQueue[None] = SimpleQueue()
        self._made: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self._error: BaseException | None = None
        for _ in range(count):
            self._orders.put(None)
        stop = threading.Event()
        # The thread knows neither this object nor its reader, so that both may be forgotten.
        arguments = (items, self._orders, self._made, stop)
        self._thread = threading.Thread(
            target=_make, args=arguments, name="caffe-data", daemon=True
        )
        self._thread.start()
        # At the exit too: what the thread reads by a library must not go before the thread does.
        self._end = finalize(self, _end, self._thread, self._orders, stop)

    def __iter__(self) -> Ahead:
        return self

    def __next__(self) -> Any:
        if self._error is not None:  # whoever asks again is told again
            raise self._error
        item, self._error = self._made.get()
        if self._error is not None:
            raise self._error
        self._orders.put(None)
        return item

    def close(self) -> None:
        """End the thread."""
        self._end()


def _make(
    items: Any, orders: SimpleQueue[None], made: SimpleQueue[Any], stop: threading.Event
) -> None:
    try:
        orders.get()
        while not stop.is_set():
            made.put((next(items), None))
            orders.get()
    except BaseException as error:  # the end of the items too
        made.put((None, error))
    finally:
        items.close()


def _end(thread: threading.Thread, orders: SimpleQueue[None], stop: threading.Event) -> None:
    """End the thread, which may be waiting for an order; the garbage collector may call from it."""
    stop.set()
    orders.put(None)
    if thread is not threading.current_thread():
        thread.join(_GRACE_SECONDS)
