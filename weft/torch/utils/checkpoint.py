"""torch.utils.checkpoint: recompute in backward instead of keeping."""

from __future__ import annotations

from typing import Any

from ...autodiff.checkpointing import checkpoint as core_checkpoint
from ..adoption import adopt


def checkpoint(
    function: Any,
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Return what a function gives; what it computed between is computed again in backward."""

    def call(*inner: Any, **named: Any) -> Any:
        return function(*adopt(inner), **adopt(named))

    for name in ("context_fn", "determinism_check", "debug", "early_stop"):
        kwargs.pop(name, None)
    return adopt(core_checkpoint(call)(*args, **kwargs))


def checkpoint_sequential(functions: Any, segments: int, input: Any, **options: Any) -> Any:
    """Return what a row of modules gives, in so many parts that are computed again in backward."""
    modules = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = max(1, len(modules) // segments)
    for first in range(0, len(modules), size):
        part = modules[first : first + size]
        input = checkpoint(_chained(part), input, **options)
    return input


def _chained(modules: list[Any]) -> Any:
    def run(x: Any) -> Any:
        for module in modules:
            x = module(x)
        return x

    return run
