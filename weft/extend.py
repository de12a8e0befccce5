"""The door for extensions: declare operators, composites and derivative rules of your own.

    from weft.extend import F, Sample, elementwise, op

    @op(elementwise, promote="float")
    def cube(x: Tensor) -> Tensor:
        \"\"\"Return x**3.\"\"\"

`attach` makes operators declared after `import weft` available as Tensor methods. CONTRIBUTING.md
explains the rules. `register` gives names to layers, losses, optimizers, schedules, metrics,
transforms and datasets of your own, for `fit`, estimators and TOML configurations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    "register",
    "registry",
]


def register(kind: str, name: str, make: Callable[..., Any]) -> None:
    """Name a class or function of your own for `fit`, estimators and TOML configurations.

    Its parameters are its options.

    kind   "layers", "architectures", "losses", "optimizers", "schedules", "metrics",
           "transforms", "batch_transforms" or "datasets"
    """
    from .train.names import register as register_name  # noqa: PLC0415  (loads all layers)

    register_name(kind, name, make)
