"""Connections: so many at a time, and a request's head must come in time and be short.

uvicorn waits for ever for the end of a head, and keeps all of it. Clients that never finish one
would fill memory and the table of connections, so these are closed.
"""

from __future__ import annotations

from typing import Any

from ..core.imports import require
from .answers import error_answer
from .direct import DirectRequests, plans
from .errors import RequestError
from .service import Service

MOST_HEAD_BYTES = 64 * 2**10


def protocol_class(service: Service) -> Any:
    """Return uvicorn's protocol with our limits, and a short way for predictions."""
    found = require("uvicorn.protocols.http.httptools_impl", "serve", "serving a model")
    facts = {
        "head_timeout": service.limits.timeout,
        "max_connections": service.limits.max_connections,
        "plans": plans(service),
        "service": service,
        "status_lines": found.STATUS_LINE,
    }
    return type("ServeProtocol", (DirectRequests, HeadLimits, found.HttpToolsProtocol), facts)


class HeadLimits:
    """What is put before uvicorn's protocol, which may be missing, so it is no base of this."""

    head_timeout: float
    max_connections: int
    connections: Any
    status_lines: dict[int, bytes]
    cycle: Any
    loop: Any
    transport: Any
    _waiting: Any = None  # the timer of a head that has not ended
    _head = 0  # bytes of it

    def connection_made(self, transport: Any) -> None:
        """Expect a request, or refuse a client that is one too many."""
        super().connection_made(transport)  # type: ignore[misc]  # of uvicorn's
        if len(self.connections) > self.max_connections:
            self._refuse(503, f"there are {self.max_connections} clients already")
        else:
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing any more."""
        self._got_head()
        super().connection_lost(exc)  # type: ignore[misc]  # of uvicorn's

    def eof_received(self) -> bool:
        """Answer a client that says no more; close when nothing is left to be answered."""
        waiting = self.cycle is not None and not self.cycle.response_complete
        if waiting:
            self.cycle.keep_alive = False
        return waiting

    def data_received(self, data: bytes) -> None:
        """Read, and count what belongs to a head."""
        if self._waiting is None and (self.cycle is None or not self.cycle.more_body):
            self._expect_head()  # of the next request on this connection
        self._head += len(data)
        super().data_received(data)  # type: ignore[misc]  # of uvicorn's
        if self._waiting is not None and self._head > MOST_HEAD_BYTES:
            self._refuse(431, f"the head of a request may have {MOST_HEAD_BYTES} bytes")

    def on_headers_complete(self) -> None:
        """Begin to answer."""
        self._got_head()
        super().on_headers_complete()  # type: ignore[misc]  # of uvicorn's

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        self._refuse(400, msg)

    def _expect_head(self) -> None:
        self._head = 0
        self._waiting = self.loop.call_later(self.head_timeout, self._late)

    def _got_head(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _late(self) -> None:
        seconds = f"{self.head_timeout:g} s"
        self._refuse(408, f"the head of the request did not arrive within {seconds}")

    def _is_answering(self) -> bool:
        cycle = self.cycle
        return cycle is not None and cycle.response_started and not cycle.response_complete

    def _refuse(self, status: int, message: str) -> None:
        """Answer without a request, and close."""
        self._got_head()
        if self.transport.is_closing():
            return
        if not self._is_answering():
            headers = {"connection": "close"} | ({"retry-after": "1"} if status == 503 else {})
            answer = error_answer(RequestError(status, message, headers))
            lines = [self.status_lines[status]]
            lines += [name + b": " + value + b"\r\n" for name, value in answer.headers]
            self.transport.write(b"".join([*lines, b"\r\n", answer.body]))
        self.transport.close()
