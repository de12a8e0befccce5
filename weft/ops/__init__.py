"""The operators. Importing this package fills the registry in `weft.core.op`.

Each operator stands in one file with all that is known of it; composites are functions written in
operators. Imports core only.
"""

from . import (
    conv,
    creation,
    elementwise,
    index,
    linalg,
    movement,
    nn,
    pool,
    random,
    reduce,
    resize,
)

__all__ = [
    "conv",
    "creation",
    "elementwise",
    "index",
    "linalg",
    "movement",
    "nn",
    "pool",
    "random",
    "reduce",
    "resize",
]
