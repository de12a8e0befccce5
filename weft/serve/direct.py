"""Requests for predictions on the shortest way: from a connection to the queue and back.

A plain request (see heads.py) with a small body needs no task, no stream and no application: its
bytes become columns, the columns a job, and when the job is done its answer is written. All else,
and what is wrong with a head, goes the way of every other page, through uvicorn and starlette.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from .alarm import Alarm
from .answers import Answer, AnswerForm, answer_form, error_answer
from .bodies import Columns, body_reader
from .errors import RequestError
from .heads import PlainHead, Remembered
from .pending import Pending
from .service import Service, ending_error, failure_answer, gone_error

_END = b"\r\n\r\n"
_MOST_HELD = 64 * 2**10  # bytes of requests that come before the answer to the one before
_CLOSE = (b"connection", b"close")


class Plan(NamedTuple):
    """What to do with requests of one head: how to read the body, and how to answer."""

    length: int
    keep_alive: bool
    read: Callable[[bytes], Columns]
    form: AnswerForm


def plans(service: Service) -> Remembered[Plan]:
    """Return plans by heads; None for what goes the long way."""
    return Remembered(partial(_plan, service))


def _plan(service: Service, head: PlainHead) -> Plan | None:
    if head.length > service.limits.max_body or not service.parses_at_once(head.length):
        return None
    try:
        form = answer_form(head.fields, head.query)
    except RequestError:
        return None
    read = body_reader(service.model, head.fields, head.length)
    return Plan(head.length, head.keep_alive, read, form)


class Exchange:
    """A request on its way through the queue.

    reply   is given the answer, on the event loop, unless the client goes before
    """

    __slots__ = ("_alone", "_form", "_loop", "_pending", "_reply", "_service", "_started")

    def __init__(
        self,
        service: Service,
        plan: Plan,
        loop: asyncio.AbstractEventLoop,
        reply: Callable[[Answer], None],
    ) -> None:
        self._service, self._form, self._loop = service, plan.form, loop
        self._reply: Callable[[Answer], None] | None = reply
        self._alone = False
        self._pending: Pending | None = None
        self._started = service.begin()

    def ask(self, plan: Plan, body: bytes) -> None:
        """Put the items of a body in the queue, or tell what is wrong with it."""
        service = self._service
        try:
            if service.ending:
                raise ending_error()
            columns = plan.read(body)
            self._alone = columns.alone
            deadline = self._started + service.limits.timeout
            self._pending = service.submit(columns.arrays, deadline, self._loop, self._computed)
        except Exception as error:
            self._answer(failure_answer(error))

    def expire(self) -> None:
        """Stop waiting: the time is over."""
        if self._pending is not None:
            self._pending.expire()

    def cancel(self, msg: str | None = None) -> None:
        """Give up, as uvicorn asks of tasks when the time for those in flight is over."""
        self._loop.call_soon(self._answer, error_answer(ending_error()))

    def gone(self) -> None:
        """Note that nobody waits for the answer any more."""
        if self._pending is not None:
            self._pending.abandon()
        self._reply = None
        self._service.end(gone_error().status, self._started)

    def _computed(self) -> None:
        service, pending = self._service, self._pending
        if self._reply is None:
            return
        try:
            assert pending is not None
            outputs = service.outputs_of(pending)
            found = self._form.answer(service.model, outputs, self._alone)
        except Exception as error:
            found = failure_answer(error)
        self._answer(found)

    def _answer(self, answer: Answer) -> None:
        reply, self._reply = self._reply, None
        if reply is not None:
            self._service.end(answer.status, self._started)
            reply(answer)


class DirectRequests:
    """What is put before uvicorn's protocol, which may be missing, so it is no base of this."""

    service: Service
    plans: Remembered[Plan]
    status_lines: dict[int, bytes]
    cycle: Any
    flow: Any
    loop: Any
    pipeline: Any
    server_state: Any
    tasks: set[Any]
    timeout_keep_alive: float
    timeout_keep_alive_handler: Callable[[], None]
    transport: Any
    _alarm: Alarm
    _exchange: Exchange | None = None
    _plan: Plan | None = None  # of a request whose body is not there yet
    _body: list[bytes]
    _missing = 0  # bytes of it
    _closes = False  # whether the answer to come is the last
    _held = b""  # what came before its turn
    _ended = False  # whether the client says no more
    _within = False  # whether the full parser is inside a message

    # -- a connection ------------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        """Expect requests."""
        self._alarm = Alarm(self.loop)
        super().connection_made(transport)  # type: ignore[misc]  # of uvicorn's

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of what was asked."""
        self._alarm.stop()
        self._plan, self._held = None, b""
        if self._exchange is not None:
            self._exchange.gone()
            self._done()
        super().connection_lost(exc)  # type: ignore[misc]  # of uvicorn's

    def data_received(self, data: bytes) -> None:
        """Take a request, a part of one, or what must wait for its turn."""
        if self.transport.is_closing():
            return
        if self._exchange is not None or self._held or self.flow.write_paused:
            self._hold(data)
        elif self._plan is not None:
            self._take_body(self._plan, data)
        elif not self._take(data):
            self._alarm.clear()
            super().data_received(data)  # type: ignore[misc]  # of uvicorn's

    def eof_received(self) -> bool:
        """Answer a client that says no more; close when nothing is left to be answered."""
        self._ended = True
        if self._exchange is not None or self._held:
            return True
        if self._plan is not None:
            came = self._plan.length - self._missing
            self._fail(400, f"the body ended after {came} of {self._plan.length} bytes")
        waits: bool = super().eof_received()  # type: ignore[misc]  # of uvicorn's
        return waits

    def shutdown(self) -> None:
        """Close when what was asked is answered."""
        if self._exchange is not None or self._held or self._plan is not None:
            self._closes = True
        else:
            super().shutdown()  # type: ignore[misc]  # of uvicorn's

    def resume_writing(self) -> None:
        """Go on: the client has read some answers."""
        super().resume_writing()  # type: ignore[misc]  # of uvicorn's
        if self._held and self._exchange is None:
            self.loop.call_soon(self._go_on)

    def on_message_begin(self) -> None:
        """Note that the full parser is inside a message."""
        self._within = True
        super().on_message_begin()  # type: ignore[misc]  # of uvicorn's

    def on_message_complete(self) -> None:
        """Note that the full parser stands between messages."""
        self._within = False
        super().on_message_complete()  # type: ignore[misc]  # of uvicorn's

    # -- a request ---------------------------------------------------------------------------------

    def _take(self, data: bytes) -> bool:
        """Take a request whose head is here and plain; tell whether it was one."""
        if self._within or not data.startswith(b"POST ") or not self._idle():
            return False
        end = data.find(_END)
        plan = None if end < 0 else self.plans[data[:end]]
        if plan is None:
            return False
        self._got_head()
        self._unset_keepalive_if_required()
        start = end + len(_END)
        if len(data) - start == plan.length:
            self._ask(plan, data[start:])
            return True
        self._plan, self._body, self._missing = plan, [], plan.length
        self._alarm.set(self.service.limits.timeout, self._late_body)
        self._take_body(plan, data[start:])
        return True

    def _take_body(self, plan: Plan, data: bytes) -> None:
        """Take a part of a body; what is behind it is another request."""
        self._body.append(data[: self._missing])
        behind = data[self._missing :]
        self._missing -= len(self._body[-1])
        if self._missing:
            return
        self._plan = None
        self._held = behind
        self._ask(plan, b"".join(self._body))

    def _idle(self) -> bool:
        return (self.cycle is None or self.cycle.response_complete) and not self.pipeline

    def _ask(self, plan: Plan, body: bytes) -> None:
        self._closes = self._closes or not plan.keep_alive
        self._exchange = exchange = Exchange(self.service, plan, self.loop, self._write)
        self._alarm.set(self.service.limits.timeout, exchange.expire)
        self.tasks.add(exchange)  # which the server's end waits for
        exchange.ask(plan, body)

    def _late_body(self) -> None:
        error = self.service.late_body()
        self._fail(error.status, error.message)

    def _fail(self, status: int, message: str) -> None:
        """Answer a request of which too little came, and close."""
        self._plan = None
        self.service.end(status, self.service.begin())
        self._refuse(status, message)

    # -- its answer --------------------------------------------------------------------------------

    def _write(self, answer: Answer) -> None:
        """Write the answer, and go on with what came behind the request."""
        self._done()
        transport = self.transport
        if transport.is_closing():
            return
        closes = self._closes or (answer.status != 200 and _CLOSE in answer.headers)
        transport.write(self._rendered(answer, closes))
        if closes or (self._ended and not self._held):
            transport.close()
        elif self._held:
            self.loop.call_soon(self._go_on)  # not at once: there may be thousands
        else:
            self._alarm.set(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def _done(self) -> None:
        self.tasks.discard(self._exchange)
        self._exchange = None
        self._alarm.clear()
        self.server_state.total_requests += 1

    def _rendered(self, answer: Answer, closes: bool) -> bytes:
        parts = [self.status_lines[answer.status]]
        for name, value in (*self.server_state.default_headers, *answer.headers):
            parts += (name, b": ", value, b"\r\n")
        if closes and _CLOSE not in answer.headers:
            parts.append(b"connection: close\r\n")
        parts += (b"\r\n", answer.body)
        return b"".join(parts)

    # -- what comes before its turn ----------------------------------------------------------------

    def _hold(self, data: bytes) -> None:
        self._held += data
        if len(self._held) > _MOST_HELD:
            self.flow.pause_reading()

    def _go_on(self) -> None:
        """Take what came before its turn, unless the client does not read its answers."""
        if self._exchange is not None or self.flow.write_paused or self.transport.is_closing():
            return
        data, self._held = self._held, b""
        self.flow.resume_reading()
        if data:
            self.data_received(data)
        if self._ended and not self.eof_received() and not self.transport.is_closing():
            self.transport.close()

    # of the classes behind this one
    _got_head: Callable[[], None]
    _refuse: Callable[[int, str], None]
    _unset_keepalive_if_required: Callable[[], None]
