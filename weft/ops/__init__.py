"""The operators. Importing this package declares those that most programs use.

Each operator stands in one file with all that is known of it; composites are functions written in
operators. The packages named in LATER are imported when a name is asked for that is not known yet,
so that `import weft` stays fast. Imports core only.
"""

from functools import partial
from importlib import import_module

from ..core.methods import attach_later, attach_methods
from ..core.op import declare_later
from . import creation, elementwise, index, movement, ranges, reduce, sizes
from .linalg import einsum, matmul, products, tensors

__all__ = [
    "creation",
    "einsum",
    "elementwise",
    "index",
    "matmul",
    "movement",
    "products",
    "ranges",
    "reduce",
    "sizes",
    "tensors",
]

LATER = (
    ("nn", "random"),
    ("conv", "pool", "resize"),
    tuple(
        f"linalg.{name}"
        for name in ("cholesky", "determinant", "eigh", "expm", "pinv", "qr", "solve", "svd")
    ),
)


# The Tensor methods among them.
LATER_METHODS = (
    "cholesky",
    "det",
    "eigh",
    "eigvalsh",
    "expm",
    "inv",
    "inverse",
    "log_softmax",
    "logdet",
    "matrix_exp",
    "matrix_rank",
    "pinv",
    "qr",
    "slogdet",
    "softmax",
    "solve",
)


def _declare(names: tuple[str, ...]) -> None:
    for name in names:
        import_module(f"{__name__}.{name}")
    attach_methods()


for _names in LATER:
    declare_later(partial(_declare, _names))
attach_later(LATER_METHODS)
