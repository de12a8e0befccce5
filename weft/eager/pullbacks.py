"""Gradients of elementwise operators on large tensors: the derivative and the product in one pass.

A generated backward computes the derivative of an operator of one operand, often in several steps,
and multiplies. From LARGE elements on, code does both, which the rule itself was traced for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.config import config
from ..core.imports import deferred_imports
from ..core.large import LARGE
from ..core.op import Op
from ..core.shape import Shape
from .uses import Code, Uses, operations

Backward = Callable[[Any, Sequence[Any], Any], Any]


def has_own_pullback(op: Op) -> bool:
    """Tell whether the gradient of an operator is more than one product, or none at all."""
    rules = (*op.partials.values(), *op.vjps.values())
    return op.kind == "elementwise" and len(op.inputs) == 1 and any(map(callable, rules))


def make_pullback_chooser(op: Op, backward: Backward) -> Backward:
    """Return a function that takes a node of an operator to the better backward."""
    uses: Uses = {}
    has_attrs = bool(op.attrs)

    def choose(node: Any, saved: Sequence[Any], g: Any) -> Any:
        if g.size < LARGE or not config.eager_kernels:
            return backward(node, saved, g)
        # What comes out of a sum is one number for all elements, and lies as no program reads it.
        spread = g.shape if g.__class__ is np.ndarray and not any(g.strides) else None
        one = g if spread is None else g[(0,) * g.ndim + (...,)]
        arrays = [x for x in (*saved, one) if isinstance(x, np.ndarray)]
        attrs = node.attrs if has_attrs else ()
        # 1, 1.0 and True are equal, as are 0.0 and -0.0: attributes count by their text.
        key = tuple([(x.shape, x.dtype) for x in arrays]), repr(attrs), spread
        use = operations.use(uses, key)
        code = use.run or use.again(_job(op.name, key[0], saved, attrs, spread), exact=False)
        found = None if code is None else code(*arrays)
        return backward(node, saved, g) if found is None else (found,)

    return choose


def _job(
    name: str, types: Any, saved: Sequence[Any], attrs: tuple[Any, ...], spread: Shape | None
) -> Callable[[], Code | None]:
    """Return the job that compiles, which must not hold the arrays: shapes and dtypes at most."""
    others = [None if isinstance(x, np.ndarray) else x for x in saved]
    return lambda: _compiled(name, types, others, attrs, spread)


def _compiled(
    name: str, types: Any, others: Sequence[Any], attrs: tuple[Any, ...], spread: Shape | None
) -> Code | None:
    with deferred_imports:
        from .compilation import compile_pullback  # noqa: PLC0415  (the compiler, slow to import)
    return compile_pullback(name, types, others, attrs, spread)
