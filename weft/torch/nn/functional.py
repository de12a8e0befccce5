"""torch.nn.functional: functions of networks, with PyTorch's order of arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtype as dt
from ...core import tensor as core
from ...core.errors import WeftError
from ...core.op import F
from ...core.tape import next_order
from ..absent import absent
from ..adoption import adopt
from ..deferred import weft_function
from ..functions.table import functions_named
from ..legacy import by_name
from ..names import names
from ..phrasing import phrase
from ..types import type_name
from ..view_functions import wrapped_dim
from .functional_adapted import ADAPTED, AROUND
from .functional_composed import COMPOSED
from .tables import TABLES

NAMESPACE = "nn.functional"

_SAME = names("""
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool2d adaptive_max_pool3d affine_grid avg_pool1d avg_pool2d avg_pool3d batch_norm
    bilinear channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
    cosine_similarity ctc_loss fold fractional_max_pool2d fractional_max_pool3d gaussian_nll_loss
    gelu glu grid_sample group_norm hardshrink instance_norm
    layer_norm linear local_response_norm logsigmoid lp_pool1d lp_pool2d lp_pool3d max_pool1d
    max_pool2d max_pool3d max_unpool1d max_unpool2d max_unpool3d normalize
    pad pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu rms_norm
    scaled_dot_product_attention sigmoid softplus softshrink softsign tanh tanhshrink
    triplet_margin_with_distance_loss unfold
""")
# Functions that may write into their operand.
_IN_PLACE = names("""
    alpha_dropout celu dropout dropout1d dropout2d dropout3d elu feature_alpha_dropout hardsigmoid
    hardswish hardtanh leaky_relu mish relu relu6 rrelu selu silu threshold
""")
# Losses, with PyTorch's order of arguments.
_LOSSES = {
    "binary_cross_entropy": "input target weight size_average reduce reduction",
    "binary_cross_entropy_with_logits": (
        "input target weight size_average reduce reduction pos_weight"
    ),
    "cosine_embedding_loss": "input1 input2 target margin size_average reduce reduction",
    "cross_entropy": (
        "input target weight size_average ignore_index reduce reduction label_smoothing"
    ),
    "hinge_embedding_loss": "input target margin size_average reduce reduction",
    "huber_loss": "input target reduction delta weight",
    "kl_div": "input target size_average reduce reduction log_target",
    "l1_loss": "input target size_average reduce reduction weight",
    "margin_ranking_loss": "input1 input2 target margin size_average reduce reduction",
    "mse_loss": "input target size_average reduce reduction weight",
    "multi_margin_loss": "input target p margin weight size_average reduce reduction",
    "multilabel_margin_loss": "input target size_average reduce reduction",
    "multilabel_soft_margin_loss": "input target weight size_average reduce reduction",
    "nll_loss": "input target weight size_average ignore_index reduce reduction",
    "poisson_nll_loss": "input target log_input full size_average eps reduce reduction",
    "smooth_l1_loss": "input target size_average reduce reduction beta",
    "soft_margin_loss": "input target size_average reduce reduction",
    "triplet_margin_loss": (
        "anchor positive negative margin p eps swap size_average reduce reduction"
    ),
}


def _weft(name: str) -> Any:
    found = weft_function(name, NAMESPACE)
    assert found is not None, name
    return found


def _loss(name: str, order: tuple[str, ...]) -> Any:
    compute: Any = _weft(name)
    operands = tuple(n for n in order if n in ("input", "target", "input1", "input2", "anchor"))
    operands += tuple(n for n in order if n in ("positive", "negative"))

    def loss(*args: Any, **kwargs: Any) -> Any:
        given = by_name(order, args, kwargs)
        first = [given.pop(n) for n in order if n in given and n in operands]
        weight = given.pop("weight", None) if name in WEIGHTED else None
        if weight is not None:
            return _weighted(compute(*first, **{**given, "reduction": "none"}), weight, given)
        return adopt(compute(*first, **given))

    loss.__name__ = name
    loss.__doc__ = compute.__doc__
    return loss


WEIGHTED = ("huber_loss", "l1_loss", "mse_loss")  # whose weight is of elements, not of classes


def _weighted(losses: Any, weight: Any, options: dict[str, Any]) -> Any:
    """Return losses of elements with weights, reduced as asked for."""
    total = losses * weight
    reduction = options.get("reduction", "mean")
    if reduction == "none":
        return adopt(total)
    summed = F.sum(total)
    return adopt(
        summed if reduction == "sum" else summed / F.sum(F.broadcast_to(weight, losses.shape))
    )


def _writing(name: str) -> Any:
    compute: Any = _weft(name)

    def activate(input: Any, *args: Any, inplace: bool = False, **kwargs: Any) -> Any:
        if args and isinstance(args[-1], bool) and len(args) > _POSITIONAL.get(name, 9):
            *rest, inplace = args
            args = tuple(rest)
        begun = next_order()
        try:
            result = adopt(compute(input, *args, **kwargs))
        except WeftError as error:
            raise phrase(error, name, {"args": (input,), **kwargs}) from None
        return input._overwritten(result, begun) if inplace else result

    activate.__name__ = name
    activate.__doc__ = compute.__doc__
    return activate


# How many arguments stand between the operand and `inplace`, where it may come by place.
_POSITIONAL = {"relu": 0, "relu6": 0, "silu": 0, "mish": 0, "selu": 0, "hardsigmoid": 0}
_POSITIONAL |= {"hardswish": 0, "elu": 1, "celu": 1, "leaky_relu": 1, "hardtanh": 2, "threshold": 2}
_POSITIONAL |= {"dropout": 2, "dropout1d": 2, "dropout2d": 2, "dropout3d": 2, "alpha_dropout": 2}


def _softmax(name: str) -> Any:
    compute: Any = _weft(name)

    def softmax(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
        axis = _implied(input.ndim) if dim is None else wrapped_dim(dim, input.ndim)
        x = input if dtype is None else F.cast(input, dt.as_dtype(dtype))
        if not dt.is_float(x.dtype):
            raise _not_of_floats(name, x, axis)
        if not x.ndim:
            return adopt(F.reshape(compute(F.reshape(x, (1,)), 0), ()))
        return adopt(compute(x, axis))

    softmax.__name__ = name
    softmax.__doc__ = compute.__doc__
    return softmax


def _not_of_floats(name: str, x: Any, axis: int) -> Exception:
    """Return what PyTorch raises of softmax of whole numbers: it names its kernel."""
    kernel = "log_softmax" if name == "log_softmax" else "softmax"
    last = "_lastdim" if axis in (-1, x.ndim - 1) or not x.ndim else ""
    return NotImplementedError(
        f"\"{kernel}{last}_kernel_impl\" not implemented for '{type_name(x.dtype)}'"
    )


def _implied(ndim: int) -> int:
    """Return the dimension that PyTorch takes where none is said."""
    return 0 if ndim in (0, 1, 3) else 1


def prelu(input: Any, weight: Any) -> Any:
    """Return positive elements, and others times a weight: one, or one for each channel."""
    flat = F.reshape(weight, (-1,))
    if input.ndim < 2 or flat.numel() == 1:
        return adopt(
            F.where(F.greater(input, 0), input, input * F.reshape(flat, (1,) * input.ndim))
        )
    return adopt(_weft("prelu")(input, flat))


def gaussian_nll_loss(
    input: Any,
    target: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:
    """Return the negative logarithm of normal densities."""
    variance = var if isinstance(var, core.Tensor) else F.full_like(input, float(var))
    if variance.ndim == input.ndim - 1 and tuple(variance.shape) == tuple(input.shape[:-1]):
        variance = F.unsqueeze(variance, -1)
    sizes = np.broadcast_shapes(tuple(input.shape), tuple(target.shape))
    x, y = (F.broadcast_to(v, sizes) for v in (input, target))
    compute = _weft("gaussian_nll_loss")
    return adopt(compute(x, y, variance, full=full, eps=eps, reduction=reduction))


def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """Return vectors that are 1 at an index and 0 elsewhere."""
    count = int(tensor._read().max()) + 1 if num_classes == -1 else num_classes
    return adopt(F.cast(_weft("one_hot")(tensor, count), dt.int64))


def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
    recompute_scale_factor: Any = None,
    antialias: bool = False,
) -> Any:
    """Return images at another size."""
    options = {"recompute_scale_factor": recompute_scale_factor, "antialias": antialias}
    return adopt(_weft("interpolate")(input, size, scale_factor, mode, align_corners, **options))


def upsample(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
) -> Any:
    """Return images at another size."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Return images at another size, by their nearest pixels."""
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Return images at another size, interpolated between pixels, corners to corners."""
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def gumbel_softmax(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """Return samples of a relaxed categorical distribution."""
    return adopt(_weft("gumbel_softmax")(logits, tau, hard, dim))


def _indexed(name: str) -> Any:
    pool: Any = _weft(name)

    def with_indices(*args: Any, **kwargs: Any) -> Any:
        return adopt(pool(*args, **{**kwargs, "return_indices": True}))

    with_indices.__name__ = f"{name}_with_indices"
    return with_indices


def _adopted_in_place(name: str) -> Any:
    def write(input: Any, *args: Any, **kwargs: Any) -> Any:
        return FUNCTIONS[name](input, *args, **{**kwargs, "inplace": True})

    write.__name__ = f"{name}_"
    return write


_POOLS = [f"{kind}_pool{n}d" for kind in ("max", "adaptive_max") for n in (1, 2, 3)]
FUNCTIONS: dict[str, Any] = {
    **functions_named(_SAME, NAMESPACE),
    **{n: _writing(n) for n in _IN_PLACE if weft_function(n, NAMESPACE) is not None},
    **{n: _loss(n, tuple(order.split())) for n, order in _LOSSES.items()},
    **{n: _softmax(n) for n in ("softmax", "log_softmax", "softmin")},
    **{f"{n}_with_indices": _indexed(n) for n in _POOLS},
    **ADAPTED,
    **COMPOSED,
    **TABLES,
    "prelu": prelu,
    "gaussian_nll_loss": gaussian_nll_loss,
    "one_hot": one_hot,
    "interpolate": interpolate,
    "upsample": upsample,
    "upsample_nearest": upsample_nearest,
    "upsample_bilinear": upsample_bilinear,
    "gumbel_softmax": gumbel_softmax,
}
FUNCTIONS |= {name: around(FUNCTIONS[name]) for name, around in AROUND.items()}
FUNCTIONS |= {
    f"{n}_": _adopted_in_place(n)
    for n in ("celu", "elu", "hardtanh", "leaky_relu", "relu", "rrelu", "selu", "threshold")
    if n in FUNCTIONS
}
globals().update(FUNCTIONS)
__getattr__ = absent(globals(), {})
