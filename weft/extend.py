"""The door for extensions: declare operators, composites and derivative rules of your own.

    from weft.extend import F, Sample, elementwise, op

    @op(elementwise, promote="float")
    def cube(x: Tensor) -> Tensor:
        \"\"\"Return x**3.\"\"\"

`attach` makes operators declared after `import weft` available as Tensor methods. CONTRIBUTING.md
explains the rules.
"""

from __future__ import annotations

from .core.methods import attach_operators as attach
from .core.op import (
    F,
    Op,
    composite,
    elementwise,
    general,
    load_all,
    movement,
    op,
    random,
    reduction,
    registry,
)
from .core.samples import ErrorSample, Sample, Sampler
from .core.shape import TensorType
from .core.tensor import Tensor

__all__ = [
    "ErrorSample",
    "F",
    "Op",
    "Sample",
    "Sampler",
    "Tensor",
    "TensorType",
    "attach",
    "composite",
    "elementwise",
    "general",
    "load_all",
    "movement",
    "op",
    "random",
    "reduction",
    "registry",
]
