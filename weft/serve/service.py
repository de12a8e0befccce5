"""The service behind the pages: bodies in, answers out, by way of the queue; no HTTP library.

The event loop reads, parses small bodies and writes. One thread runs batches, a few others parse
large bodies and prepare images, so that neither a slow model nor a large body holds others up.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from ..core.dtype import Array
from ..core.errors import WeftError
from ..core.installed import version
from ..graph.node import Value
from .answers import ANSWER_KINDS, Answer, answer_form, error_answer
from .batching import Batcher, Expired, QueueClosed, QueueFull, ServeJob
from .bodies import Columns, body_kinds, parse_body
from .errors import RequestError
from .limits import ServeLimits
from .metrics import Metrics
from .model import ServedModel
from .pending import Pending, deliver
from .runner import Runner

_LARGE = 32 * 2**10  # bytes of a body that takes a thread of its own, in parsing
_PARSERS = 2
_log = logging.getLogger("weft.serve")

Receive = Callable[[], Awaitable[Mapping[str, Any]]]


class Service:
    """A model that answers requests in batches.

    ready    whether the programs are made
    ending   whether new requests are refused
    """

    def __init__(self, model: ServedModel, limits: ServeLimits) -> None:
        self.model, self.limits = model, limits
        self.metrics = Metrics()
        self._runner = Runner(model.program, limits.max_batch)
        self._most = self._runner.max_batch
        batching = replace(limits, max_batch=self._most)
        self._batcher = Batcher(self._runner, batching, self.metrics, deliver)
        self._parsers = ThreadPoolExecutor(_PARSERS, "weft-serve-parse")
        self._slow_items = bool(model.prepare or model.readers)
        self.ready = self.ending = False
        self._batcher.start(self._warm)

    def close(self, timeout: float | None = None) -> bool:
        """Finish what waits and end; tell whether that was in time."""
        self.ending = True
        self.ready = False
        self._parsers.shutdown(wait=False)
        return self._batcher.close(timeout)

    def _warm(self) -> None:
        try:
            self._runner.warm()
        except Exception as error:  # the requests will say so, one by one
            warnings.warn(f"serve: the model failed on zeros: {error}", stacklevel=2)
        self.ready = not self.ending

    # -- a request ---------------------------------------------------------------------------------

    async def answer(self, headers: Mapping[str, str], query: str, receive: Receive) -> Answer:
        """Return the answer to a request for predictions; it never raises."""
        started, found = self.begin(), None
        try:
            found = await self._answer(headers, query, receive, started)
        except asyncio.CancelledError:
            if not self.ending:
                raise
            found = error_answer(ending_error())  # the time for what was in flight is over
        except Exception as error:
            found = failure_answer(error)
        finally:
            self.end(None if found is None else found.status, started)
        return found

    def begin(self) -> float:
        """Count a request that has come; return when."""
        self.metrics.in_flight += 1
        return time.monotonic()

    def end(self, status: int | None, started: float) -> None:
        """Count a request that was answered, or of which nobody will know."""
        self.metrics.in_flight -= 1
        if status is not None:
            self.metrics.observe_request(status, time.monotonic() - started)

    async def _answer(
        self, headers: Mapping[str, str], query: str, receive: Receive, started: float
    ) -> Answer:
        if self.ending:
            raise ending_error()
        form = answer_form(headers, query)
        body = await self._read(headers, receive)
        columns = await self._parse(body, headers)
        outputs = await self._computed(columns.arrays, started + self.limits.timeout)
        return form.answer(self.model, outputs, columns.alone)

    async def _read(self, headers: Mapping[str, str], receive: Receive) -> bytes:
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length[:20]) > self.limits.max_body:
            raise self._too_large(length)
        try:
            async with asyncio.timeout(self.limits.timeout):
                return await self._received(receive)
        except TimeoutError:
            raise self.late_body() from None

    def late_body(self) -> RequestError:
        """Return what a client is told whose body does not come."""
        said = f"the body did not arrive within {self.limits.timeout:g} s"
        return RequestError(408, said, {"connection": "close"})

    async def _received(self, receive: Receive) -> bytes:
        message = await receive()
        body = message.get("body", b"")
        if not message.get("more_body", False):
            if message["type"] == "http.disconnect":
                raise gone_error()
            return bytes(body)
        parts, size = [body], len(body)
        while message.get("more_body", False):
            message = await receive()
            if message["type"] == "http.disconnect":
                raise gone_error()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.limits.max_body:
                raise self._too_large(f"more than {size}")
        return b"".join(parts)

    def _too_large(self, shown: str) -> RequestError:
        return RequestError(
            413,
            f"the body may have {self.limits.max_body} bytes. Received: {shown:.30}; send fewer "
            "items, or start the server with a larger max_body",
            {"connection": "close"},
        )

    async def _parse(self, body: bytes, headers: Mapping[str, str]) -> Columns:
        if self.parses_at_once(len(body)):
            return parse_body(self.model, body, headers)
        work = partial(parse_body, self.model, body, headers)
        return await asyncio.get_running_loop().run_in_executor(self._parsers, work)

    def parses_at_once(self, length: int) -> bool:
        """Tell whether a body is parsed on the event loop: handing it on would take longer."""
        return length <= _LARGE and not self._slow_items

    # -- the queue ---------------------------------------------------------------------------------

    def submit(
        self,
        columns: Sequence[Array],
        deadline: float,
        loop: asyncio.AbstractEventLoop,
        done: Callable[[], None],
    ) -> Pending:
        """Put the items of a request in the queue; `done` is called on the loop, once."""
        rows = len(columns[0])
        if rows > self.limits.max_queue:
            raise RequestError(
                413, f"a request may have {self.limits.max_queue} items. Received: {rows}"
            )
        pending = Pending(loop, self._jobs(columns, deadline), done)
        try:
            self._batcher.submit(pending.jobs)
        except QueueFull as full:
            raise _busy(full) from None
        except QueueClosed:
            raise ending_error() from None
        return pending

    def outputs_of(self, pending: Pending) -> list[Array]:
        """Return what a request that has ended gave; raise what its client is to be told."""
        if pending.late:
            raise RequestError(504, f"the answer was not computed within {self.limits.timeout:g} s")
        failed = pending.error()
        if failed is not None:
            raise _as_request_error(failed) from failed
        return pending.results()

    async def _computed(self, columns: Sequence[Array], deadline: float) -> list[Array]:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        pending = self.submit(columns, deadline, loop, partial(_resolve, ended))
        late = loop.call_later(deadline - time.monotonic(), pending.expire)
        try:
            await ended
        finally:
            late.cancel()
            if not pending.ended:
                pending.abandon()
        return self.outputs_of(pending)

    def _jobs(self, columns: Sequence[Array], deadline: float) -> list[ServeJob]:
        """Return the items of a request as jobs, each no larger than a batch."""
        rows = len(columns[0])
        if rows <= self._most:
            return [ServeJob(columns, deadline)]
        starts = range(0, rows, self._most)
        return [ServeJob([c[i : i + self._most] for c in columns], deadline) for i in starts]

    # -- what is told ------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """Return what a client needs to know of the model."""
        limits = self.limits
        return {
            "name": self.model.program.name,
            "weft": version("weft"),
            "inputs": [_input_text(value) for value in self.model.inputs],
            "outputs": [{"name": n, "dtype": d, "shape": s} for n, d, s in self._runner.outputs],
            **self.model.about,
            "accepts": body_kinds(self.model),
            "returns": list(ANSWER_KINDS),
            "batching": {
                "max_batch": self._most,
                "max_wait_ms": 1000 * limits.max_wait,
                "sizes": self._runner.sizes,
            },
            "limits": {
                "max_body": limits.max_body,
                "max_queue": limits.max_queue,
                "timeout": limits.timeout,
            },
        }

    def metrics_text(self) -> str:
        """Return the page of metrics."""
        return self.metrics.text(
            (
                ("queue_items", "items that wait", self._batcher.waiting),
                ("in_flight", "requests that are being answered", self.metrics.in_flight),
                ("ready", "whether programs are made and requests are taken", self.ready),
            )
        )


def _input_text(value: Value) -> dict[str, Any]:
    shape = [size if isinstance(size, int) else None for size in value.shape[1:]]
    return {"name": value.name, "dtype": value.dtype.name, "shape": shape}


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


# -- what went wrong -------------------------------------------------------------------------------


def failure_answer(error: Exception) -> Answer:
    """Return the answer to a request that failed."""
    return error_answer(error if isinstance(error, RequestError) else _internal(error))


def _as_request_error(error: BaseException) -> RequestError:
    if isinstance(error, Expired):
        return RequestError(504, "the request waited too long for its turn")
    if isinstance(error, WeftError):
        return RequestError(422, f"the model cannot take this: {error}")
    return _internal(error)


def _internal(error: BaseException) -> RequestError:
    """Return what a client is told of our own mistakes; the log has the rest."""
    mark = uuid4().hex[:8]
    _log.error("request %s failed", mark, exc_info=error)
    return RequestError(500, f"something went wrong on the server; its log says more of {mark}")


def _busy(full: QueueFull) -> RequestError:
    seconds = str(min(60, max(1, math.ceil(full.retry_after))))
    return RequestError(503, f"the server is busy: {full}", {"retry-after": seconds})


def ending_error() -> RequestError:
    """Return what is told to those who come when the server ends."""
    headers = {"retry-after": "1", "connection": "close"}
    return RequestError(503, "the server is ending and takes no new requests", headers)


def gone_error() -> RequestError:
    """Return what is noted of a client that has gone."""
    return RequestError(499, "the client has gone")
