"""torch.compile: Weft's jit, of functions and of modules."""

from __future__ import annotations

import functools
from typing import Any

from ..nn import Module as CoreModule
from .adoption import adopt
from .nn.module import Module
from .tensor import wrap


class CompiledFunction:
    """A function that runs by compiled programs."""

    def __init__(self, function: Any, **options: Any) -> None:
        from ..capture import jit  # noqa: PLC0415  (only for those who ask)

        functools.update_wrapper(self, function)
        self._jitted = jit(function, **options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function; views are written back that it has written into."""
        if not any(hasattr(x, "_window") for x in (*args, *kwargs.values())):
            return adopt(self._jitted(*args, **kwargs))
        return self._with_views(args, kwargs)

    def _with_views(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        stands: list[tuple[Any, Any, Any]] = []

        def plain(x: Any) -> Any:
            if not hasattr(x, "_window") or x.symbolic:
                return x
            made = wrap(x._value)
            made._node = x._node
            stands.append((x, made, made._value))
            return made

        result = self._jitted(*map(plain, args), **{n: plain(x) for n, x in kwargs.items()})
        for view, made, before in stands:
            if made._value is not before:
                view._rebind(made)
        return adopt(result)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def explain(self) -> Any:
        """Return what was compiled, and what runs eagerly, and why."""
        return self._jitted.explain()


class OptimizedModule(Module):
    """A module whose forward runs by compiled programs."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self._orig_mod = module
        self.__dict__["_compiled"] = CompiledFunction(module)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module."""
        return self.__dict__["_compiled"](*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        inner = self.__dict__.get("_orig_mod")
        if inner is None:
            raise AttributeError(name)
        return getattr(inner, name)


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: Any = None,
    backend: Any = None,
    mode: Any = None,
    options: Any = None,
    disable: bool = False,
) -> Any:
    """Return a function, or a module, that runs by compiled programs: `wf.jit`.

    >>> from weft import torch
    >>> double = torch.compile(lambda x: x * 2)
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, disable=disable)
    if disable:
        return model
    if isinstance(model, CoreModule):
        return OptimizedModule(model)
    return CompiledFunction(model, strict=fullgraph)
