"""Large matrix products and convolutions: the same door, for operands that may lie transposed.

NumPy's BLAS has threads of its own. After a product they look for more work for a while, each on a
processor that the next operation's threads need: after a product of two 1000 x 1000 matrices on two
processors, `exp` of the result took half as long again, and an addition twice as long. Products
with the same threads as everything else do not disturb it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .config import config
from .large import LARGE, Code, Uses, door
from .late import late_function
from .shape import size_of

LARGE_PRODUCT = 1 << 27  # multiplications, which take BLAS some milliseconds


def _of_matmul(x: Any, y: Any) -> int:
    columns = y.shape[-1] if y.ndim > 1 else 1
    rows = x.shape[-2] if x.ndim > 1 else 1
    count: int = max(x.size * columns, y.size * rows)
    return count


def _of_linear(x: Any, weight: Any, bias: Any) -> int:
    count: int = x.size * weight.shape[0]
    return count


def _of_conv(x: Any, weight: Any, stride: Sequence[int], *_: Any) -> int:
    windows = size_of(n // step for n, step in zip(x.shape[2:], stride, strict=True))
    count: int = x.shape[0] * windows * weight.size
    return count


def _of_conv_input_grad(y: Any, weight: Any, *_: Any) -> int:
    count: int = y.shape[0] * size_of(y.shape[2:]) * weight.size
    return count


def _of_conv_weight_grad(x: Any, y: Any, kernel_size: Sequence[int], *settings: Any) -> int:
    count: int = y.size * (x.shape[1] // settings[-1]) * size_of(kernel_size)
    return count


class Kind(NamedTuple):
    """A kind of product: how many arrays it takes, and about how many multiplications."""

    arrays: int
    multiplications: Callable[..., int]


PRODUCTS = {
    "matmul": Kind(2, _of_matmul),
    "linear": Kind(3, _of_linear),
    "conv": Kind(2, _of_conv),
    "conv_input_grad": Kind(2, _of_conv_input_grad),
    "conv_weight_grad": Kind(2, _of_conv_weight_grad),
}


def make_product_chooser(name: str, kernel: Any) -> Callable[..., Any]:
    """Return a function that takes the operands of a product to the better kernel."""
    uses: Uses = {}
    count, multiplications = PRODUCTS[name]

    def choose(x: Any, y: Any, *rest: Any) -> Any:
        try:  # of small operands the result may open the door, which must not show
            large = max(x.size, y.size) >= LARGE and multiplications(x, y, *rest) >= LARGE_PRODUCT
        except (AttributeError, IndexError):  # no arrays, or no matrices: the kernel says so
            large = False
        if not large or not config.eager_kernels:
            return kernel(x, y, *rest)
        result = _run_large(name, uses, (x, y, *rest[: count - 2]), rest[count - 2 :])
        return kernel(x, y, *rest) if result is None else result

    return choose


def _run_large(name: str, uses: Uses, operands: Sequence[Any], attrs: tuple[Any, ...]) -> Any:
    """Return the product by machine code, or None where there is none for these operands."""
    stored = [None if x is None else _stored(x) for x in operands]
    if any(x is not None and lies is None for x, lies in zip(operands, stored, strict=True)):
        return None
    types = tuple((x.shape, x.dtype, turned) for x, turned in filter(None, stored))
    use = door.use(uses, (types, attrs))
    code: Code | None = use.run or use.again(
        lambda: late_function("eager", "compile_product")(name, types, attrs), exact=False
    )
    return None if code is None else code(*(x for x, _ in filter(None, stored)))


def _stored(x: Any) -> tuple[Any, bool] | None:
    """Return an array in C order, and whether it is the transpose of what was given."""
    if x.flags.c_contiguous:
        return x, False
    turned = x.swapaxes(-1, -2) if x.ndim > 1 else x
    return (turned, True) if turned.flags.c_contiguous else None
