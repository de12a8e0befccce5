"""Messages between processes: a pickle, and beside it the bytes of arrays, uncopied.

Pickle protocol 5 (PEP 574) hands out the buffers of contiguous arrays, which then go through the
pipe as they are. Pipes vanish with the processes that hold them, so nothing can leak, however a
worker ends.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import weakref
from multiprocessing.connection import Connection
from typing import Any, Final

import numpy as np

_HAS_READV: Final = hasattr(os, "readv")  # POSIX; elsewhere the connection's own calls do
_PIPE_BYTES: Final = 1 << 20

Packed = tuple[bytes, list[memoryview]]

# The main process's ends of all pipes to workers. A forked worker inherits them, and as long as it
# holds one, the worker at the other end would not notice that the main process is gone.
_main_ends: weakref.WeakSet[Connection] = weakref.WeakSet()


def remember_main_end(connection: Connection) -> None:
    """Mark an end of a pipe as the main process's."""
    _main_ends.add(connection)


def close_main_ends() -> None:
    """Close, in a forked worker, the ends that belong to the main process."""
    for connection in list(_main_ends):
        connection.close()


def pack(message: Any) -> Packed:
    """Return a message as a pickle and the buffers of its arrays."""
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    views = [buffer.raw() for buffer in buffers]
    return pickle.dumps((body, [view.nbytes for view in views])), views


def send(connection: Connection, packed: Packed) -> None:
    """Write a packed message."""
    header, views = packed
    connection.send_bytes(header)
    for view in views:
        if not view.nbytes:
            continue
        if _HAS_READV:
            _write_all(connection.fileno(), view)
        else:
            connection.send_bytes(view)


def receive(connection: Connection) -> Any:
    """Read a message; EOFError if the other side is gone."""
    body, sizes = pickle.loads(connection.recv_bytes())
    buffers = [np.empty(size, np.uint8) for size in sizes]
    for buffer in buffers:
        if buffer.size and _HAS_READV:
            _read_all(connection.fileno(), buffer.data)
        elif buffer.size:
            connection.recv_bytes_into(buffer)
    return pickle.loads(body, buffers=buffers)


def widen(connection: Connection) -> None:
    """Let a pipe hold more, where the system allows it: a batch then takes fewer wake-ups."""
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import fcntl  # noqa: PLC0415  (POSIX only)

        fcntl.fcntl(connection.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _write_all(handle: int, view: memoryview) -> None:
    done = 0
    while done < view.nbytes:
        done += os.write(handle, view[done:])


def _read_all(handle: int, view: memoryview) -> None:
    done = 0
    while done < view.nbytes:
        count = os.readv(handle, [view[done:]])
        if count == 0:
            raise EOFError("the other side closed the pipe in the middle of a message")
        done += count
