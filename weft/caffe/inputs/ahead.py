"""Batches made ahead by a thread, while the net is in machine code."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from queue import Empty, Queue
from typing import Any
from weakref import finalize

_STEP_SECONDS, _STEPS = 0.01, 300


class Ahead:
    """An iterator whose next items a thread makes; errors are raised where they would come."""

    def __init__(self, items: Iterator[Any], count: int) -> None:
        self._queue: Queue[tuple[Any, BaseException | None]] = Queue(count)
        self._stop = threading.Event()
        # The thread knows neither this object nor its reader, so that both may be forgotten.
        arguments = (items, self._queue, self._stop)
        self._thread = threading.Thread(
            target=_make, args=arguments, name="caffe-data", daemon=True
        )
        self._thread.start()
        # At the exit too: what the thread reads by a library must not go before the thread does.
        self._end = finalize(self, _end, self._thread, self._queue, self._stop)

    def __iter__(self) -> Ahead:
        return self

    def __next__(self) -> Any:
        item, error = self._queue.get()
        if error is None:
            return item
        self._queue.put((None, error))  # whoever asks again is told again
        raise error

    def close(self) -> None:
        """End the thread."""
        self._end()


def _make(items: Any, queue: Queue[Any], stop: threading.Event) -> None:
    try:
        for item in items:
            queue.put((item, None))
            if stop.is_set():
                return
        queue.put((None, StopIteration()))
    except BaseException as error:
        queue.put((None, error))
    finally:
        items.close()


def _end(thread: threading.Thread, queue: Queue[Any], stop: threading.Event) -> None:
    """End the thread, which may be waiting for room; the garbage collector may call from it."""
    stop.set()
    for _ in range(_STEPS):  # a reader that hangs must not hang whoever stops reading
        if not thread.is_alive() or thread is threading.current_thread():
            return
        with suppress(Empty):
            queue.get_nowait()
        thread.join(_STEP_SECONDS)
