"""Large matrix products and convolutions: the same door, for operands that may lie transposed.

NumPy's BLAS has threads of its own. After a product they look for more work for a while, each on a
processor that the next operation's threads need: after a product of two 1000 x 1000 matrices on two
processors, `exp` of the result took half as long again, and an addition twice as long. Products
with the same threads as everything else do not disturb it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from ..core.config import config
from ..core.imports import deferred_imports
from ..core.large import LARGE
from ..core.op import Op
from .uses import Code, Uses, operations

LARGE_PRODUCT = 1 << 27  # multiplications, which take BLAS some milliseconds


def make_product_chooser(op: Op, kernel: Any) -> Callable[..., Any]:
    """Return a function that takes the operands of a product to the better kernel."""
    uses: Uses = {}
    name, count = op.name, len(op.inputs)

    def choose(x: Any, y: Any, *rest: Any) -> Any:
        try:  # of small operands the result may open the door, which must not show
            large = max(x.size, y.size) >= LARGE and _is_large(op, (x, y, *rest))
        except (
            AttributeError,
            IndexError,
            ValueError,
        ):  # no arrays, or they do not fit: it says so
            large = False
        if not large or not config.eager_kernels:
            return kernel(x, y, *rest)
        result = _run_large(name, uses, (x, y, *rest[: count - 2]), rest[count - 2 :])
        return kernel(x, y, *rest) if result is None else result

    return choose


def _is_large(op: Op, args: tuple[Any, ...]) -> bool:
    count, rule = len(op.inputs), cast("Callable[..., int]", op.multiplications_rule)
    shapes = [None if x is None else x.shape for x in args[:count]]
    return rule(*shapes, *args[count:]) >= LARGE_PRODUCT


def _run_large(name: str, uses: Uses, operands: Sequence[Any], attrs: tuple[Any, ...]) -> Any:
    """Return the product by machine code, or None where there is none for these operands."""
    stored = [None if x is None else _stored(x) for x in operands]
    if any(x is not None and lies is None for x, lies in zip(operands, stored, strict=True)):
        return None
    types = tuple((x.shape, x.dtype, turned) for x, turned in filter(None, stored))
    use = operations.use(uses, (types, attrs))
    code = use.run or use.again(lambda: _compiled(name, types, attrs), exact=False)
    return None if code is None else code(*(x for x, _ in filter(None, stored)))


def _compiled(
    name: str, types: Sequence[tuple[Any, Any, bool]], attrs: tuple[Any, ...]
) -> Code | None:
    with deferred_imports:
        from .compilation import compile_product  # noqa: PLC0415  (the compiler, slow to import)
    return compile_product(name, types, attrs)


def _stored(x: Any) -> tuple[Any, bool] | None:
    """Return an array in C order, and whether it is the transpose of what was given."""
    if x.flags.c_contiguous:
        return x, False
    turned = x.swapaxes(-1, -2) if x.ndim > 1 else x
    return (turned, True) if turned.flags.c_contiguous else None
