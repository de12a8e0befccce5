"""The server: uvicorn with an orderly end, and with limits on what comes before a request is one.

The first signal (Ctrl-C, SIGTERM) closes the door: requests in flight are answered, new ones are
refused, and the process ends with status 0. A second one ends it at once.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError, WeftError
from ..core.imports import is_available, require
from .app import app
from .limits import ServeLimits, chosen_limits
from .protocol import protocol_class
from .service import Service

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_KEEP_ALIVE = 15  # seconds that a connection stays open without requests
_NEEDS = "serving a model"


class AddressError(WeftError, OSError):
    """The address cannot be listened on."""


def run(
    model: Any,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    limits: ServeLimits | None = None,
    announce: Callable[[str], None] = print,
    **options: Any,
) -> int:
    """Serve a model until a signal ends it; return 0, or 128 + the signal if that came twice.

    Port 0 is any that is free; `announce` is told the address. The rest is as for `app`.
    """
    with _listening(host, port) as sock:
        server = _server(model, sock, limits, announce, options)
        with _quick_switches():
            server.run(sockets=[sock])
    return int(server.status)


@contextmanager
def background(
    model: Any,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    limits: ServeLimits | None = None,
    **options: Any,
) -> Iterator[str]:
    """Serve a model in a thread while a block runs, which is given the address.

    The block's end is the server's: what is in flight is answered first. All else is as for `run`.
    """
    started = threading.Event()
    with _listening(host, port) as sock:
        server = _server(model, sock, limits, lambda _: started.set(), options)
        thread = threading.Thread(target=server.run, args=([sock],), name="weft-serve-http")
        thread.start()
        try:
            started.wait()
            yield _address(sock)
        finally:
            server.handle_exit(signal.SIGTERM, None)
            thread.join()


@contextmanager
def _listening(host: str, port: Any) -> Iterator[socket.socket]:
    """Take an address, before the work of making programs."""
    require("uvicorn", "serve", _NEEDS)
    sock = _bound(host, port)
    try:
        yield sock
    finally:
        sock.close()


def _bound(host: Any, port: Any) -> socket.socket:
    if not isinstance(host, str):
        raise ArgumentTypeError(
            f"host must be a name or an address, such as '127.0.0.1'. Received: {host!r:.40}"
        )
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= 65535:
        raise ArgumentError(f"port must be a number from 0 to 65535. Received: {port!r:.40}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise AddressError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another port, or 0 "
            "for any that is free"
        ) from error
    return sock


@contextmanager
def _quick_switches() -> Iterator[None]:
    """Let threads take turns sooner.

    The thread that runs batches waits for Python's lock when its program ends; by default a busy
    event loop would keep it for 5 ms.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _server(
    model: Any,
    sock: socket.socket,
    limits: ServeLimits | None,
    announce: Callable[[str], None],
    options: dict[str, Any],
) -> Any:
    uvicorn = require("uvicorn", "serve", _NEEDS)
    chosen = chosen_limits(limits)
    require("httptools", "serve", _NEEDS)
    made = app(model, limits=chosen, **options)
    config = uvicorn.Config(
        made,
        http=protocol_class(made.state.service),
        loop="uvloop" if is_available("uvloop") else "asyncio",
        ws="none",
        lifespan="on",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, round(chosen.grace)),
        backlog=2048,
    )
    server: Any = type("OrderlyServer", (OrderlyEnd, uvicorn.Server), {})(config)
    server.service, server.announce = made.state.service, announce
    return server


class OrderlyEnd:
    """What is put before uvicorn's server, which may be missing, so it is no base of this."""

    service: Service
    announce: Callable[[str], None]
    should_exit: bool
    force_exit: bool
    status = 0

    async def startup(self, sockets: Any = None) -> None:
        """Begin to listen."""
        await super().startup(sockets=sockets)  # type: ignore[misc]  # of uvicorn's
        self.announce(_address(sockets[0]))

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let signals end the server, and not the process once more when it has ended."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {sig: signal.signal(sig, self.handle_exit) for sig in SIGNALS}
        try:
            yield
        finally:
            for sig, handler in before.items():
                signal.signal(sig, handler)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """End in order; at the second time, at once."""
        if self.should_exit:
            self.force_exit = True
            self.status = 128 + sig
        self.should_exit = True
        self.service.ending = True
        self.service.ready = False


def _address(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
