"""Weft: a deep-learning framework in which every program is one dataflow graph.

    import weft as wf

Functions are flat in `wf.` under NumPy's names, linear algebra is in `wf.linalg`, network functions
are in `wf.nn.functional`. This module only wires the layers together and names what is public.
"""

from __future__ import annotations

import warnings as _warnings
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any

from . import autodiff, linalg, masked, ops, special
from .autodiff import detect_anomaly, gradients
from .core import dtype as _dtype
from .core.config import config
from .core.device import device, devices
from .core.dtype import (
    bool_,
    default_float,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    set_default_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .core.errors import WeftError
from .core.facade import lazy_names as _lazy_names
from .core.imports import lazy_attributes as _lazy_attributes
from .core.methods import attach_operators as _attach_operators
from .core.modes import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from .core.namespaces import namespaces as _namespaces
from .core.row_sparse import RowSparse
from .core.tensor import Tensor
from .injections import install as _install_injections
from .ops.creation import (
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    from_numpy,
    full,
    ones,
    tensor,
    zeros,
)
from .ops.ranges import arange, linspace, logspace

if _TYPE_CHECKING:
    from . import (
        caffe,
        data,
        debug,
        distributed,
        distributions,
        io,
        nn,
        optim,
        serve,
        signal,
        summary,
        train,
    )
    from .autodiff.batching import vmap
    from .autodiff.checkpointing import checkpoint
    from .autodiff.custom.jvp import custom_jvp
    from .autodiff.custom.vjp import custom_vjp
    from .autodiff.forward import jvp
    from .autodiff.function import Function
    from .autodiff.gradient import grad, value_and_grad, vjp
    from .autodiff.jacobian import hessian, hvp, jacfwd, jacobian, jacrev
    from .autodiff.linear import linear_transpose, linearize
    from .autodiff.static.forward import forward_gradients
    from .capture import compile, export, jit
    from .core.rng import Generator
    from .core.threads import get_num_threads, set_num_threads
    from .core.tree import tree_map
    from .dynamic import batched, batching, cell
    from .graph import Graph, Session, Symbol, cond, name_scope, placeholder, scan, while_loop
    from .io import load, load_metadata, save
    from .ops.random.draw import (
        bernoulli,
        beta,
        categorical,
        dirichlet,
        exponential,
        gamma,
        get_rng_state,
        manual_seed,
        multinomial,
        normal,
        orthogonal,
        permutation,
        rand,
        rand_like,
        randint,
        randn,
        randn_like,
        randperm,
        set_rng_state,
        truncated_normal,
        uniform,
    )
    from .structures import Ragged, ragged
    from .viz.draw import draw

__version__ = "0.1.0"

__all__ = [
    "Function",
    "Generator",
    "Graph",
    "Ragged",
    "RowSparse",
    "Session",
    "Symbol",
    "Tensor",
    "WeftError",
    "arange",
    "asarray",
    "autodiff",
    "batched",
    "batching",
    "bernoulli",
    "beta",
    "bool_",
    "caffe",
    "categorical",
    "cell",
    "checkpoint",
    "compile",
    "cond",
    "config",
    "custom_jvp",
    "custom_vjp",
    "data",
    "debug",
    "default_float",
    "detect_anomaly",
    "device",
    "devices",
    "dirichlet",
    "distributed",
    "distributions",
    "draw",
    "empty",
    "empty_like",
    "enable_grad",
    "exponential",
    "export",
    "eye",
    "float16",
    "float32",
    "float64",
    "forward_gradients",
    "from_dlpack",
    "from_numpy",
    "full",
    "gamma",
    "get_num_threads",
    "get_rng_state",
    "grad",
    "gradients",
    "hessian",
    "hvp",
    "int8",
    "int16",
    "int32",
    "int64",
    "io",
    "is_grad_enabled",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linalg",
    "linear_transpose",
    "linearize",
    "linspace",
    "load",
    "load_metadata",
    "logspace",
    "manual_seed",
    "masked",
    "multinomial",
    "name_scope",
    "nn",
    "no_grad",
    "normal",
    "ones",
    "ops",
    "optim",
    "orthogonal",
    "permutation",
    "placeholder",
    "ragged",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "randperm",
    "save",
    "scan",
    "serve",
    "set_default_dtype",
    "set_grad_enabled",
    "set_num_threads",
    "set_rng_state",
    "signal",
    "special",
    "summary",
    "tensor",
    "train",
    "tree_map",
    "truncated_normal",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uniform",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
    "zeros",
]

__all__ += list(_namespaces["wf"])

# log(0) is -inf without comment, as in every framework; see docs/design/0001-eager-core.md.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"weft\.")

_attach_operators()
_install_injections()

_operators, _ = _lazy_names(globals(), "wf")

# Imported when first used, so that `import weft` stays fast.
_deferred = _lazy_attributes(
    globals(),
    {
        "weft.autodiff.batching": ("vmap",),
        "weft.autodiff.checkpointing": ("checkpoint",),
        "weft.autodiff.custom.jvp": ("custom_jvp",),
        "weft.autodiff.custom.vjp": ("custom_vjp",),
        "weft.autodiff.forward": ("jvp",),
        "weft.autodiff.function": ("Function",),
        "weft.autodiff.gradient": ("grad", "value_and_grad", "vjp"),
        "weft.autodiff.static.forward": ("forward_gradients",),
        "weft.autodiff.jacobian": ("hessian", "hvp", "jacfwd", "jacobian", "jacrev"),
        "weft.autodiff.linear": ("linear_transpose", "linearize"),
        "weft.dynamic": ("batched", "batching", "cell"),
        "weft.capture": ("compile", "export", "jit"),
        "weft.core.rng": ("Generator",),
        "weft.core.tree": ("tree_map",),
        "weft.core.threads": ("get_num_threads", "set_num_threads"),
        "weft.graph": (
            *("Graph", "Session", "Symbol", "cond", "name_scope", "placeholder", "scan"),
            "while_loop",
        ),
        "weft.io": ("load", "load_metadata", "save"),
        "weft.structures": ("Ragged", "ragged"),
        "weft.viz.draw": ("draw",),
        "weft.ops.random.draw": (
            *("bernoulli", "beta", "categorical", "dirichlet", "exponential", "gamma"),
            *("get_rng_state", "manual_seed", "multinomial", "normal", "orthogonal"),
            *("permutation", "rand", "rand_like", "randint", "randn", "randn_like", "randperm"),
            *("set_rng_state", "truncated_normal", "uniform"),
        ),
    },
    packages=(
        "caffe",
        "data",
        "debug",
        "distributed",
        "distributions",
        "io",
        "nn",
        "optim",
        "serve",
        "signal",
        "summary",
        "train",
    ),
)


def __getattr__(name: str) -> Any:
    """Resolve operators, packages, and the names that would hide builtins in this module."""
    if name == "bfloat16":
        return _dtype.bfloat16()
    if name == "bool":
        return bool_
    return _operators(name) if name in _namespaces["wf"] else _deferred(name)


def __dir__() -> list[str]:
    """List what is public."""
    return sorted(__all__)
