"""Name scopes: what nodes built inside them are labelled with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..core.errors import ArgumentError

_scope: ContextVar[tuple[str, ...]] = ContextVar("weft_scope", default=())

GRADIENTS = "gradients"  # the scope of the nodes that reverse mode adds


def current_scope() -> tuple[str, ...]:
    """Return the names of the scopes around, outermost first."""
    return _scope.get()


@contextmanager
def name_scope(name: Any) -> Iterator[str]:
    """Group the nodes built inside under a name; scopes nest: `name_scope("block1")`.

    >>> import weft as wf
    >>> with wf.Graph() as graph:
    ...     x = wf.placeholder((2,), wf.float32, name="x")
    ...     with wf.name_scope("block1"):
    ...         y = x * 2.0
    >>> y.name
    'block1/mul'
    """
    if not isinstance(name, str) or not name or any(not part for part in name.split("/")):
        raise ArgumentError(
            f"name_scope: the name must be a non-empty string without empty parts. "
            f"Received: {name!r:.60}"
        )
    token = _scope.set((*_scope.get(), *name.split("/")))
    try:
        yield "/".join(_scope.get())
    finally:
        _scope.reset(token)


@contextmanager
def outermost_scope(scope: tuple[str, ...]) -> Iterator[None]:
    """Build nodes in a given scope, wherever we are: for passes."""
    token = _scope.set(scope)
    try:
        yield
    finally:
        _scope.reset(token)
