"""Name scopes of modules: in a graph, the nodes of a layer are grouped under its name."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from ..core.tensor import Tensor
from ..core.watching import unseen
from ..graph.scope import current_scope, name_scope
from ..graph.tracer import Tracer

_caller: ContextVar[Any] = ContextVar("weft_calling_module", default=None)


class module_scope:  # noqa: N801  (a context, named like a function)
    """Build nodes in the scope of a module, named as its caller names it.

    A class, and a walk of its own over modules: what is watched by wf.jit makes no objects here.
    """

    __slots__ = ("_module", "_scope", "_token", "_tracer")

    def __init__(self, tracer: Tracer, module: Any) -> None:
        self._tracer, self._module = tracer, module

    def __enter__(self) -> None:
        with unseen():
            self._scope = name_scope(_name(self._module))
            self._scope.__enter__()
            for name, tensor in self._module.__dict__.items():
                if isinstance(tensor, Tensor):
                    self._tracer.name_tensor(tensor, "/".join((*current_scope(), name)))
            self._token = _caller.set(self._module)

    def __exit__(self, *exc: Any) -> None:
        _caller.reset(self._token)
        self._scope.__exit__(*exc)


def _name(module: Any) -> str:
    for name, child in _modules_in(_caller.get()):
        if child is module:
            return name
    return type(module).__name__.lower()


def _modules_in(caller: Any) -> Iterator[tuple[str, Any]]:
    """Yield all modules below one, each once, as `named_modules` does."""
    if caller is None:
        return
    seen, pending = {id(caller)}, [*reversed(_children(caller))]
    while pending:
        name, module = pending.pop()
        if id(module) not in seen:
            seen.add(id(module))
            yield name, module
            inner = [(f"{name}/{n}", m) for n, m in _children(module)]
            pending += reversed(inner)


def _children(module: Any) -> list[tuple[str, Any]]:
    """Return the direct submodules; without a generator, which wf.jit would follow step by step."""
    parts = [(name, module.__dict__[name]) for name in module._kinds]
    return [(name, part) for name, part in parts if hasattr(part, "_kinds")]
