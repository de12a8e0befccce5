"""Composites on large tensors: compiled code for the whole function, and for its gradient.

A composite is written in operators and runs them one by one. Where it is declared as `fused`, calls
on large tensors come here: the function is then one node of the tape, whose code was derived from
its own. It has one result or a tuple of them, and no side effects.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.dispatch import wrap_outputs
from ..core.errors import user_site
from ..core.imports import deferred_imports
from ..core.large import LARGE, Forms, door
from ..core.modes import current_interpreter, is_grad_enabled
from ..core.tape import make_node
from ..core.tensor import Tensor, wrap, wrap_with_node
from .lookups import looked_up
from .uses import Code, Uses, operations

SLOT = ...  # stands where a tensor was given
PLAIN = (type(None), bool, int, float, str, np.dtype)
FLAT = frozenset({type(None), bool, int, float, str, type(SLOT)})


class CallShape(NamedTuple):
    """A call of a composite without its tensors: what decides which code to run.

    args, kwargs   the arguments, with SLOT for each tensor
    types          shape and dtype of each tensor
    tracked        whether the gradient of each tensor is wanted
    looked_up      shape and dtype of the distinct rows and of the index that made the first tensor,
                   if that is known
    """

    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]
    types: tuple[tuple[Any, Any], ...]
    tracked: tuple[bool, ...]
    looked_up: tuple[tuple[Any, Any], ...] = ()

    def call(self, fn: Callable[..., Any], tensors: Sequence[Any]) -> Any:
        """Call a function with tensors in the places of those given."""
        rest: Iterator[Any] = iter(tensors)
        args = [next(rest) if x is SLOT else x for x in self.args]
        kwargs = {name: next(rest) if x is SLOT else x for name, x in self.kwargs}
        return fn(*args, **kwargs)


_uses: defaultdict[str, Uses] = defaultdict(dict)  # by the names of composites


def run_composite(forms: Forms, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a composite, or None where its operators are to run one by one."""
    if current_interpreter() is not None:
        return None
    given = (*args, *kwargs.values()) if kwargs else args
    tensors = [x for x in given if isinstance(x, Tensor)]
    others = [SLOT if isinstance(x, Tensor) else x for x in given]
    if any(x.symbolic for x in tensors) or not _are_plain(others):
        return None
    recording = is_grad_enabled()
    types = tuple([(x._value.shape, x._value.dtype) for x in tensors])
    tracked = tuple([recording and x._node is not None for x in tensors])
    rows = looked_up(tensors[0]) if forms.multiplies_rows else None
    key = types, tracked, repr(others), tuple(kwargs), () if rows is None else rows.types
    # 1, 1.0 and True are equal, as are 0.0 and -0.0: other arguments count by their text.
    use = operations.use(_uses[forms.name], key)
    run = use.run
    if run is None:
        shape = _shape_of(args, kwargs, types, tracked)._replace(looked_up=key[-1])
        run = use.again(lambda: _compiled(forms, shape), exact=False)
    return None if run is None else _record(run, tensors, rows or ())


def _compiled(forms: Forms, shape: CallShape) -> Code | None:
    with deferred_imports:
        from .composite_kernel import compile_composite  # noqa: PLC0415  (the compiler is slow)
    code: Code | None = compile_composite(forms, shape)
    return code


def _shape_of(args: tuple[Any, ...], kwargs: dict[str, Any], types: Any, tracked: Any) -> CallShape:
    """Return the shape of a call, which must not hold its tensors."""
    return CallShape(
        tuple(SLOT if isinstance(x, Tensor) else x for x in args),
        tuple((name, SLOT if isinstance(x, Tensor) else x) for name, x in kwargs.items()),
        types,
        tracked,
    )


def _are_plain(values: Sequence[Any]) -> bool:
    """Tell whether the texts of values tell all that there is to know of them."""
    for value in values:
        kind = type(value)
        if kind in FLAT:
            continue
        if not (_are_plain(value) if kind is tuple else isinstance(value, PLAIN)):
            return False
    return True


def _record(kernel: Any, tensors: Sequence[Tensor], more: Sequence[Any]) -> Any:
    """Run a kernel, and let it be the `op` of a node of the tape if a gradient is wanted."""
    found = kernel(*[x._value for x in tensors], *more)
    if found is None:
        return None
    values, saved = found
    if not door.open and any(value.size >= LARGE for value in values):
        door.unlock()
    node = None
    if kernel.pull_back is not None:
        pairs = zip(tensors, kernel.tracked, strict=True)
        parents = tuple([x._node if wanted else None for x, wanted in pairs])
        outputs = None if kernel.results is None else values
        node = make_node(kernel, parents, saved, outputs=outputs, site=user_site())
    if kernel.results is None:
        return wrap(values[0]) if node is None else wrap_with_node(values[0], node)
    return wrap_outputs(values, node)  # type: ignore[arg-type]  # with outputs: a FanNode
