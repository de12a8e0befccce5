"""Name scopes of modules: in a graph, the nodes of a layer are grouped under its name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..core.tensor import Tensor
from ..graph.scope import current_scope, name_scope
from ..graph.tracer import Tracer

_caller: ContextVar[Any] = ContextVar("weft_calling_module", default=None)


@contextmanager
def module_scope(tracer: Tracer, module: Any) -> Iterator[None]:
    """Build nodes in the scope of a module, named as its caller names it."""
    with name_scope(_name(module)):
        for name, tensor in module.__dict__.items():
            if isinstance(tensor, Tensor):
                tracer.name_tensor(tensor, "/".join((*current_scope(), name)))
        token = _caller.set(module)
        try:
            yield
        finally:
            _caller.reset(token)


def _name(module: Any) -> str:
    caller = _caller.get()
    if caller is not None:
        for name, child in caller.named_modules():
            if child is module and name:
                return str(name).replace(".", "/")
    return type(module).__name__.lower()
