"""Functions of `torch` itself that are no operators: questions, settings, and names of networks."""

from __future__ import annotations

from typing import Any

from ..core.device import CPU, current_device
from .devices import device, usable_device
from .names import names
from .nn import functional, tables

# Functions of networks that are names of torch itself too.
_NETWORK = names("""
    adaptive_avg_pool1d adaptive_max_pool1d alpha_dropout avg_pool1d batch_norm bilinear
    celu celu_ channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d
    conv_transpose3d cosine_embedding_loss cosine_similarity ctc_loss embedding embedding_bag
    feature_alpha_dropout group_norm hinge_embedding_loss instance_norm kl_div layer_norm
    margin_ranking_loss max_pool1d max_pool2d max_pool3d pairwise_distance pdist pixel_shuffle
    pixel_unshuffle poisson_nll_loss prelu relu relu_ rms_norm rrelu rrelu_ selu selu_ threshold
    threshold_ triplet_margin_loss binary_cross_entropy_with_logits hardshrink
""")
_precision = ["highest"]
_default: list[Any] = []  # the device that was set, as a context that was entered


def get_default_device() -> Any:
    """Return where tensors are made."""
    return device(current_device())


def set_default_device(device: Any) -> None:
    """Say where this thread makes tensors; None is the CPU."""
    where = usable_device("cpu" if device is None else device)
    if _default:
        _default.pop().__exit__()
    if where != CPU:
        _default.append(where.__enter__())


def set_float32_matmul_precision(precision: str) -> None:
    """Say how exact products are to be: they are as exact as float32 is."""
    _precision[0] = precision


def get_float32_matmul_precision() -> str:
    """Return how exact products are to be."""
    return _precision[0]


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Do nothing: the same program gives the same bits."""


def are_deterministic_algorithms_enabled() -> bool:
    """Tell whether the same program gives the same bits: it does."""
    return True


def is_autocast_enabled(device_type: Any = None) -> bool:
    """Tell whether operations choose their precision: they do not."""
    return False


def set_num_interop_threads(count: int) -> None:
    """Do nothing: there is one pool of threads."""


def set_flush_denormal(mode: bool) -> bool:
    """Tell whether tiny numbers are set to zero: they are not."""
    return False


def typename(obj: Any) -> str:
    """Return the name of an object's type."""
    return str(obj.type()) if hasattr(obj, "_node") else type(obj).__qualname__


def is_storage(obj: Any) -> bool:
    """Tell whether an object is a storage: there are none."""
    return False


def softmax(input: Any, dim: Any, *, dtype: Any = None) -> Any:
    """Return exponentials along a dimension, divided by their sum."""
    return functional.FUNCTIONS["softmax"](input, dim, dtype=dtype)


def log_softmax(input: Any, dim: Any, *, dtype: Any = None) -> Any:
    """Return the logarithm of softmax."""
    return functional.FUNCTIONS["log_softmax"](input, dim, dtype=dtype)


FUNCTIONS: dict[str, Any] = {
    **{name: functional.FUNCTIONS[name] for name in _NETWORK if name in functional.FUNCTIONS},
    "get_default_device": get_default_device,
    "set_default_device": set_default_device,
    "set_float32_matmul_precision": set_float32_matmul_precision,
    "get_float32_matmul_precision": get_float32_matmul_precision,
    "use_deterministic_algorithms": use_deterministic_algorithms,
    "are_deterministic_algorithms_enabled": are_deterministic_algorithms_enabled,
    "is_autocast_enabled": is_autocast_enabled,
    "set_num_interop_threads": set_num_interop_threads,
    "set_flush_denormal": set_flush_denormal,
    "typename": typename,
    "is_storage": is_storage,
    "embedding_renorm_": tables.embedding_renorm_,
    "softmax": softmax,
    "log_softmax": log_softmax,
}
