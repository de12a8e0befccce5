"""The pages of a server, as an ASGI application: predictions, health, metrics, the model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from ..core.imports import require
from ..train.captured import Compile
from .answers import Answer, error_answer, json_answer
from .errors import RequestError
from .heads import PREDICT
from .limits import ServeLimits, chosen_limits
from .model import served_model
from .service import Service

_NEEDS = "serving a model"


def app(
    model: Any,
    *,
    inputs: Any = None,
    outputs: Sequence[Any] | None = None,
    classes: Sequence[str] | None = None,
    compile: Compile = "auto",
    limits: ServeLimits | None = None,
) -> Any:
    """Return an ASGI application that answers requests with what a model computes.

    model     a module (it is put in evaluation mode), a function of tensors, a wf.Graph, or the
              path of a saved graph
    inputs    of a module: (shape of an item, dtype), an example of an item, or a dictionary of
              those by name; None in a shape is a size that may differ from request to request
    outputs   of a graph: what to compute, by symbol or name; what nothing else uses by default
    classes   names that the page of the model tells
    compile   as in `model.compile`
    limits    sizes of batches and queues, times: see ServeLimits

    Run it with any ASGI server, mount it in an application of your own, or use `run`. Its
    `state.service` has `close()`, which a mounted application calls when it ends.
    """
    starlette = require("starlette.applications", "serve", _NEEDS)
    chosen = served_model(model, inputs=inputs, outputs=outputs, classes=classes, compile=compile)
    service = Service(chosen, chosen_limits(limits))

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        yield
        service.close(service.limits.grace)

    made = starlette.Starlette(
        routes=_routes(service), lifespan=lifespan, exception_handlers=_handlers()
    )
    made.state.service = service
    return made


def _routes(service: Service) -> list[Any]:
    route = require("starlette.routing", "serve", _NEEDS).Route
    pages = {
        "/": lambda: json_answer(200, service.describe()),
        "/v1/model": lambda: json_answer(200, service.describe()),
        "/health": lambda: _health(service, service.ready),
        "/health/live": lambda: _health(service, True),
        "/health/ready": lambda: _health(service, service.ready),
        "/metrics": lambda: _metrics(service),
    }
    return [
        route(PREDICT, _Predict(service), methods=["POST"]),
        *(route(path, _page(make), methods=["GET"]) for path, make in pages.items()),
    ]


class _Predict:
    """The page for predictions, without the objects that others are given for comfort."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = {name.decode("latin-1"): v.decode("latin-1") for name, v in scope["headers"]}
        query = scope["query_string"].decode("latin-1")
        await _send(send, await self._service.answer(headers, query, receive))


def _page(make: Any) -> Any:
    response = require("starlette.responses", "serve", _NEEDS).Response

    async def page(_: Any) -> Any:
        answer: Answer = make()
        found = response(answer.body, answer.status)
        found.raw_headers = answer.headers
        return found

    return page


def _health(service: Service, well: bool) -> Answer:
    status = "ending" if service.ending else "ready" if service.ready else "starting"
    content = {"status": status, "live": True, "ready": service.ready}
    return json_answer(200 if well else 503, content)


def _metrics(service: Service) -> Answer:
    body = service.metrics_text().encode()
    kind = b"text/plain; version=0.0.4; charset=utf-8"
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    return Answer(200, headers, body)


def _handlers() -> dict[Any, Any]:
    """Return what answers where there is no page, or not for that method."""
    exceptions = require("starlette.exceptions", "serve", _NEEDS)
    response = require("starlette.responses", "serve", _NEEDS).Response

    async def refuse(request: Any, error: Any) -> Any:
        known = f"POST {PREDICT}, GET /, /v1/model, /health, /metrics"
        said = f"there is no {request.method} {request.url.path:.80}; there are: {known}"
        answer = error_answer(RequestError(error.status_code, said, error.headers))
        found = response(answer.body, answer.status)
        found.raw_headers = answer.headers
        return found

    return {exceptions.HTTPException: refuse}


async def _send(send: Any, answer: Answer) -> None:
    start = {"type": "http.response.start", "status": answer.status, "headers": answer.headers}
    with suppress(RuntimeError, OSError):  # what servers raise when the client has gone
        await send(start)
        await send({"type": "http.response.body", "body": answer.body})
