"""What a checkpoint keeps beside its inputs: functions of an operation that return True for it.

A policy is called as policy(op, *types, **attrs): the operator, the types of the operands and the
attributes by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.errors import ArgumentTypeError
from ..core.op import elementwise, find_op

Policy = Callable[..., bool]


def nothing(op: Any, *types: Any, **attrs: Any) -> bool:
    """Keep nothing: compute everything again."""
    return False


def everything(op: Any, *types: Any, **attrs: Any) -> bool:
    """Keep the results of all operations."""
    return True


def dots(op: Any, *types: Any, **attrs: Any) -> bool:
    """Keep the results of matrix products and convolutions, which cost most."""
    return bool(getattr(op, "multilinear", ())) and op.kind != elementwise


def names(*chosen: str) -> Policy:
    """Return the policy that keeps what `wf.checkpoint_name` gave one of these names.

    >>> import weft as wf
    >>> def block(x):
    ...     return wf.sin(wf.checkpoint_name(wf.cos(x), "hidden"))
    >>> wf.grad(wf.checkpoint(block, policy=wf.autodiff.policies.names("hidden")))(wf.tensor(0.0))
    tensor(-0.)
    """
    for name in chosen:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"names takes strings. Received: {name!r:.60}")

    marker = find_op("checkpoint_name")

    def named(op: Any, *types: Any, **attrs: Any) -> bool:
        return op is marker and attrs["name"] in chosen

    return named


_BY_NAME: dict[str, Policy] = {"nothing": nothing, "dots": dots, "everything": everything}


def as_policy(given: Any) -> Policy:
    """Return a policy given by name or as a function."""
    if given is None:
        return nothing
    if isinstance(given, str) and given in _BY_NAME:
        return _BY_NAME[given]
    if not callable(given):
        raise ArgumentTypeError(
            f"checkpoint: policy must be None, one of {', '.join(map(repr, _BY_NAME))}, or a "
            f"function. Received: {given!r:.60}"
        )
    policy: Policy = given
    return policy
