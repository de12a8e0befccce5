"""The operators. Importing this package declares those that most programs use.

Each operator stands in one file with all that is known of it; composites are functions written in
operators. A file is found by standing in a package. The packages named in LATER are loaded when a
name is asked for that is not known yet, so that `import weft` stays fast. Imports core only.
"""

from functools import partial

from ..core.imports import load_modules, uncollected
from ..core.methods import attach_later, attach_methods
from ..core.op import declare_later
from . import creation, ranges, sizes
from .linalg import einsum, matmul, products, tensors

__all__ = ["creation", "einsum", "matmul", "products", "ranges", "sizes", "tensors"]

AT_ONCE = ("elementwise", "index", "movement", "reduce", "segment")
LATER = (
    ("nn", "random"),
    ("conv", "pool", "resize"),
    ("linalg",),
    ("special",),
    ("masked", "signal"),
    ("collective",),
)
# The Tensor methods among them, which must be there before.
LATER_METHODS = (
    "cholesky",
    "det",
    "eigh",
    "eigvalsh",
    "expm",
    "inv",
    "inverse",
    "logdet",
    "matrix_exp",
    "matrix_rank",
    "pinv",
    "qr",
    "slogdet",
    "solve",
)


def _declare(packages: tuple[str, ...]) -> None:
    for package in packages:
        load_modules(f"{__name__}.{package}")
    attach_methods()


with uncollected():  # all that modules make stays: a tenth of the time would go into looking
    for _package in AT_ONCE:
        load_modules(f"{__name__}.{_package}")
for _packages in LATER:
    declare_later(partial(_declare, _packages))
attach_later(LATER_METHODS)
