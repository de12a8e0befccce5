"""Run one program in every mode, and collect what it shows."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

import weft as wf

Run = Callable[[Callable[..., Any], tuple[Any, ...]], Any]


def shown_by(run: Callable[[], Any]) -> list[str]:
    """Return the lines that something prints."""
    text = io.StringIO()
    with redirect_stdout(text):
        run()
    return text.getvalue().splitlines()


@contextmanager
def config(**settings: bool) -> Iterator[None]:
    """Change settings for a while."""
    before = {name: getattr(wf.config, name) for name in settings}
    for name, value in settings.items():
        setattr(wf.config, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(wf.config, name, value)


def eagerly(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return function(*args)


def in_session(
    function: Callable[..., Any], args: tuple[Any, ...], **options: Any
) -> tuple[wf.Session, Any, dict[Any, Any]]:
    """Return a session on a function's graph, what to fetch and what to feed."""
    with wf.Graph() as graph:
        symbols = [wf.placeholder(x.shape, x.dtype) for x in args]
        fetches = function(*symbols)
    graph.verify()
    feeds = dict(zip(symbols, args, strict=True))
    return wf.Session(graph, **options), fetches, feeds


def interpreted(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    session, fetches, feeds = in_session(function, args, compiled=False)
    return session.run(fetches, feeds)


def compiled(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    session, fetches, feeds = in_session(function, args)
    assert session.executable(fetches, feeds) is not None
    return session.run(fetches, feeds)


def on_reference(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    session, fetches, feeds = in_session(function, args, device="reference")
    return session.run(fetches, feeds)


def ahead(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return wf.compile(function, *args)(*args)


def jitted(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return wf.jit(function)(*args)


def jitted_again(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    made = wf.jit(function)
    shown_by(lambda: made(*args))
    result = made(*args)
    assert made.stats()["eager_calls"] == 0
    return result


MODES: dict[str, Run] = {
    "interpreted": interpreted,
    "compiled": compiled,
    "reference": on_reference,
    "ahead": ahead,
    "jit": jitted,
    "jit again": jitted_again,
}
