"""Modules called with other tensors in the place of their own."""

from __future__ import annotations

from typing import Any

from .... import nn as core_nn
from ...adoption import adopt


def functional_call(
    module: Any,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Return what a module gives with other parameters and buffers."""
    given = () if args is None else args if isinstance(args, tuple) else (args,)
    return adopt(core_nn.functional_call(module, parameters_and_buffers, *given, **(kwargs or {})))
