"""The function `wf.jit`."""

from __future__ import annotations

import functools
from typing import Any

from ..core.errors import ArgumentTypeError
from ..graph.donation import donated_arguments
from .donating import DonatingJitted
from .jitted import Jitted


def jit(
    function: Any = None,
    /,
    *,
    strict: bool = False,
    background: bool = False,
    donate: Any = None,
) -> Any:
    """Return a function that does what the given one does, by compiled programs.

    The function stays ordinary eager code: it may call `backward` and `optimizer.step`, write to
    tensors and attributes, and branch on values. What cannot be recorded runs eagerly, and a
    warning says why, once; with `strict=True` that is an error instead.

    With `background=True` programs are compiled in a thread, and calls run eagerly until they are
    there. Nobody waits for the compiler, but which steps are computed by which code depends on
    time then: the last bits of two runs may differ.

    `donate` names arguments, by position or name, that each call is given for good: results may
    take their memory. A tensor that was donated has no elements any more, and says so to whoever
    uses it; a NumPy array is written over.

    >>> import weft as wf
    >>> w = wf.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = wf.optim.SGD([w], lr=0.5)
    >>> @wf.jit
    ... def step(x):
    ...     optimizer.zero_grad()
    ...     loss = ((w - x) ** 2).sum()
    ...     loss.backward()
    ...     optimizer.step()
    ...     return loss
    >>> [step(wf.tensor([0.0, 0.0])).item() for _ in range(2)]
    [5.0, 0.0]
    """
    if function is None:
        return functools.partial(jit, strict=strict, background=background, donate=donate)
    if not callable(function):
        raise ArgumentTypeError(
            f"jit: expected a function or a module. Received: {type(function).__name__} "
            f"{function!r:.60}"
        )
    if donate is None:
        return Jitted(function, strict=strict, background=background)
    donated_arguments("jit", function, donate, 2**31)  # names must be those of parameters
    return DonatingJitted(function, donate, strict=strict, background=background)
