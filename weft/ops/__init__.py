"""The operators. Importing this package declares those that most programs use.

Each operator stands in one file with all that is known of it; composites are functions written in
operators. A file is found by standing in a package. The packages named in LATER are loaded when a
name is asked for that is not known yet, so that `import weft` stays fast. Imports core only.
"""

from functools import partial
from importlib import import_module
from os import listdir

from ..core.methods import attach_later, attach_methods
from ..core.op import declare_later
from . import creation, ranges, sizes
from .linalg import einsum, matmul, products, tensors

__all__ = ["creation", "einsum", "matmul", "products", "ranges", "sizes", "tensors"]

AT_ONCE = ("elementwise", "index", "movement", "reduce")
LATER = (("nn", "random"), ("conv", "pool", "resize"), ("linalg",))
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


def _load(package: str) -> None:
    """Import the modules of a package, except private ones, which others import."""
    folder = import_module(f"{__name__}.{package}").__path__[0]
    names = {name.partition(".")[0] for name in listdir(folder) if name.endswith((".py", ".pyc"))}
    for name in sorted(names):  # pkgutil would take as long to import as a large module
        if not name.startswith("_"):
            import_module(f"{__name__}.{package}.{name}")


def _declare(packages: tuple[str, ...]) -> None:
    for package in packages:
        _load(package)
    attach_methods()


for _package in AT_ONCE:
    _load(_package)
for _packages in LATER:
    declare_later(partial(_declare, _packages))
attach_later(LATER_METHODS)
