"""Chainer's face of Weft: its names and conventions (version 7), over Weft's operators.

    import weft.chainer as chainer

or, for scripts as they are, `weft run script.py`. docs/faces/chainer.md says what runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..faces.absent import absent_names
from . import (
    backend,
    backends,
    chainerx,
    computational_graph,
    configuration,
    cuda,
    dataset,
    datasets,
    distributions,
    functions,
    initializers,
    iterators,
    links,
    optimizer_hooks,
    optimizers,
    serializers,
    training,
    utils,
)
from . import function_node as _function_node
from . import optimizer as _optimizer
from .backend import get_device, using_device
from .configuration import (
    config,
    force_backprop_mode,
    get_dtype,
    global_config,
    is_debug,
    no_backprop_mode,
    set_debug,
    using_config,
)
from .distributions import Distribution, kl_divergence, register_kl
from .function_node import Function, FunctionNode
from .gradients import backward, grad
from .initializers import Initializer
from .link import Chain, ChainList, Link
from .operators import attach_operators as _attach_operators
from .optimizer import GradientMethod, Optimizer
from .reporter import (
    DictSummary,
    Reporter,
    Summary,
    get_current_reporter,
    report,
    report_scope,
)
from .sequential import Sequential
from .variable import Parameter, Variable, as_array, as_variable

__version__ = "7.8.1"  # of the names that this face has

__all__ = [
    "Chain",
    "ChainList",
    "DictSummary",
    "Distribution",
    "Function",
    "FunctionNode",
    "GradientMethod",
    "Initializer",
    "Link",
    "Optimizer",
    "Parameter",
    "Reporter",
    "Sequential",
    "Summary",
    "Variable",
    "as_array",
    "as_variable",
    "backend",
    "backends",
    "backward",
    "chainerx",
    "computational_graph",
    "config",
    "configuration",
    "cuda",
    "dataset",
    "datasets",
    "distributions",
    "force_backprop_mode",
    "functions",
    "get_array_types",
    "get_current_reporter",
    "get_device",
    "get_dtype",
    "global_config",
    "grad",
    "initializers",
    "is_arrays_compatible",
    "is_debug",
    "iterators",
    "kl_divergence",
    "links",
    "no_backprop_mode",
    "optimizer_hooks",
    "optimizers",
    "print_runtime_info",
    "register_kl",
    "report",
    "report_scope",
    "serializers",
    "set_debug",
    "training",
    "using_config",
    "using_device",
    "utils",
]

_attach_operators()

# Hooks once stood beside the optimizers' base class.
for _name in optimizer_hooks.__all__:
    setattr(_optimizer, _name, getattr(optimizer_hooks, _name))
optimizer, function_node = _optimizer, _function_node


def get_array_types() -> tuple[type, ...]:
    """Return the classes of arrays."""
    return (np.ndarray,)


def is_arrays_compatible(arrays: Any) -> bool:
    """Tell whether values are arrays of this face."""
    return all(isinstance(array, np.ndarray) for array in arrays if array is not None)


def print_runtime_info(out: Any = None) -> None:
    """Print versions."""
    print(f"Chainer's face of Weft ({__version__})\nNumPy: {np.__version__}", file=out)


_REASONS = {
    "FunctionHook": "use Weft's profiler: executable.profile()",
    "LinkHook": "use a Chain around the link",
    "static_graph": "leave the decorator out: optimizer.update is compiled by itself",
    "mixed16": "use float32",
}
__getattr__ = absent_names(globals(), _REASONS)
