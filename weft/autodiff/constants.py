"""Results that are plain numbers: constants, unless the function read what it computed them from.

`lambda x: 1.0` has the derivative zero. `math.sin` returns a number too, but one that it made of
the value of its argument: zero would be wrong, and nothing would say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..core.dtype import is_float
from ..core.errors import GradientError
from ..core.op import find
from ..core.reads import Reads
from ..core.tape import Leaf
from ..core.tensor import Constant, Tensor


def check_constants(outputs: Iterable[Any], reads: Reads, what: str) -> None:
    """Raise if a result is a number, and values were read that derivatives follow."""
    if not reads.seen:
        return
    for y in outputs:
        if is_number(y):
            shown = y.tolist() if type(y) is Constant else y
            raise GradientError(
                f"{what} returned a number, {shown!r:.60}, and read values that it is "
                "differentiated by: a number that was read has no gradient. "
                f"{_advice(what)}; if it is a constant, return a tensor, e.g. wf.tensor(0.0)"
            )


def is_number(y: Any) -> bool:
    """Tell whether a result is a floating-point number or array that was no tensor."""
    if isinstance(y, Tensor):  # a number became a Constant, or stands for one in a recording
        return (type(y) is Constant or y.weak) and is_float(y.dtype)
    return isinstance(y, (float, np.ndarray, np.generic)) and is_float(np.asarray(y).dtype)


def _advice(what: str) -> str:
    if find(what) is not None:
        return f"Use wf.{what}"
    return "Compute with Weft's operations (wf.sin, not math.sin), without float(), item(), numpy()"


def reads_on_tape(places: Iterable[Any]) -> Reads:
    """Return who notes that a tensor is read which depends on some nodes of the tape."""
    own = set(places)
    oldest = min((node.order for node in own), default=0)

    def depends(x: Any) -> bool:
        return _leads_to(getattr(x, "_node", None), own, oldest)

    return Reads(depends)


def _leads_to(node: Any, own: set[Any], oldest: int) -> bool:
    """Tell whether one of some nodes, made no earlier than the oldest, is behind a node."""
    stack, seen = [node], {node, None}
    while stack:
        node = stack.pop()
        if node in own:
            return True
        if node is None or node.__class__ is Leaf or node.order < oldest:
            continue
        fresh = [parent for parent in node.parents if parent not in seen]
        seen.update(fresh)
        stack.extend(fresh)
    return False


def reads_of_level(level: Any) -> Reads:
    """Return who notes that a value of one level of transforms is read."""

    def depends(x: Any) -> bool:
        while hasattr(x, "level"):
            if x.level is level and x.extra is not None:
                return True
            x = x.primal
        return False

    return Reads(depends)


Flat = Callable[[list[Any]], Sequence[Any]]


def checked(fn: Flat, values: list[Any], reads: Reads, what: str) -> list[Any]:
    """Call a function of flat lists; raise if a number that it returned comes of what it read."""
    with reads:
        outputs = list(fn(values))
    check_constants(outputs, reads, what)
    return outputs
