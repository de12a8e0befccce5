"""Modules called with other tensors in the place of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .... import nn as core_nn
from ...adoption import adopt

__all__ = ["functional_call"]


def functional_call(
    module: Any,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Return what a module gives with other parameters and buffers.

    strict   all of the module's must be given, and no others; else those it has not are left out
    """
    tensors = _by_name(parameters_and_buffers)
    own = module._state_slots(transient=True)
    if strict:
        _check_names(module, own, tensors)
    taken = {name: tensor for name, tensor in tensors.items() if name in own}
    given = () if args is None else args if isinstance(args, tuple) else (args,)
    return adopt(core_nn.functional_call(module, taken, *given, **(kwargs or {})))


def _by_name(tensors: Any) -> dict[str, Any]:
    """Return tensors by name, from one mapping or from several."""
    several = tensors if isinstance(tensors, (list, tuple)) else (tensors,)
    return {name: tensor for mapping in several for name, tensor in mapping.items()}


def _check_names(module: Any, own: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise if names are missing or unknown; a tensor that modules share is named once."""
    held = {name: id(owner.__dict__[place]) for name, (owner, place) in own.items()}
    replaced = {held[name] for name in given if name in held}
    found = {
        "Unexpected": [name for name in given if name not in own],
        "Missing": [name for name, which in held.items() if which not in replaced],
    }
    lines = [f"{kind} key(s): {', '.join(map(repr, n))}." for kind, n in found.items() if n]
    if lines:
        said = "\n\t".join(lines)
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t{said}")
