"""What PyTorch says of the arguments of torch.nn.functional."""

from __future__ import annotations

from typing import Any

from ...core.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    IndexOutOfRange,
    ShapeError,
)
from ..sentences import unequal_sizes
from .refused import Refused, Rule, joined, kind_of, sizes

REDUCTIONS = ("mean", "sum", "none")


def _each(value: Any, count: int) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


# -- windows --------------------------------------------------------------------------------------


def convolution(refused: Refused) -> Exception | None:
    """Say it of a convolution: what PyTorch checks first comes first."""
    x, weight, name = refused["x"], refused["weight"], refused.function
    spatial = weight.ndim - 2
    groups = refused["groups"] or 1
    stride = _each(1 if refused["stride"] is None else refused["stride"], spatial)
    padding = _each(refused["padding"] or 0, spatial)
    if x.ndim not in (spatial + 1, spatial + 2):
        return RuntimeError(
            f"Expected {spatial + 1}D (unbatched) or {spatial + 2}D (batched) input to {name}, "
            f"but got input of size: {sizes(x)}"
        )
    if any(isinstance(p, int) and p < 0 for p in padding):
        return RuntimeError("negative padding is not supported")
    if any(s <= 0 for s in stride):
        return RuntimeError("non-positive stride is not supported")
    return _channels(refused, x, weight, groups) or _kernel(x, weight, padding, refused)


def _channels(refused: Refused, x: Any, weight: Any, groups: int) -> Exception | None:
    transposed = "transpose" in refused.function
    channels = x.shape[-(weight.ndim - 1)]
    expected = weight.shape[0] if transposed else weight.shape[1] * groups
    if channels != expected:
        how = "transposed=1" if transposed else f"groups={groups}"
        return RuntimeError(
            f"Given {how}, weight of size {sizes(weight)}, expected input{sizes(x)} to have "
            f"{expected} channels, but got {channels} channels instead"
        )
    bias, outputs = refused["bias"], weight.shape[1] * groups if transposed else weight.shape[0]
    if bias is not None and tuple(bias.shape) != (outputs,):
        how = "Given transposed=1, weight" if transposed else "Given weight"
        return RuntimeError(
            f"{how} of size {sizes(weight)}, expected bias to be 1-dimensional with {outputs} "
            f"elements, but got bias of size {sizes(bias)} instead"
        )
    return None


def _kernel(x: Any, weight: Any, padding: tuple[Any, ...], refused: Refused) -> Exception | None:
    spatial = weight.ndim - 2
    if not all(isinstance(p, int) for p in padding):
        return None
    dilation = _each(refused["dilation"] or 1, spatial)
    padded = [n + 2 * p for n, p in zip(x.shape[-spatial:], padding, strict=True)]
    kernel = [d * (n - 1) + 1 for n, d in zip(weight.shape[2:], dilation, strict=True)]
    if all(k <= n for k, n in zip(kernel, padded, strict=True)):
        return None
    shown, wanted = (" x ".join(map(str, s)) for s in (padded, kernel))
    return RuntimeError(
        f"Calculated padded input size per channel: ({shown}). Kernel size: ({wanted}). Kernel "
        "size can't be greater than actual input size"
    )


def pooling(refused: Refused) -> Exception | None:
    """Say it of windows over which elements are gathered."""
    x, name = refused["x"], refused.function
    spatial = int(name[-2])
    if x.ndim not in (spatial + 1, spatial + 2):
        return _pooled_dimensions(x, name, spatial)
    kernel = _each(refused["kernel_size"], spatial)
    padding = _each(refused["padding"] or 0, spatial)
    dilation = _each(refused["dilation"] or 1, spatial)
    if refused.is_a(ArgumentError) and any(2 * p > k for p, k in zip(padding, kernel, strict=True)):
        if "max" in name:
            return RuntimeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={max(padding)}, kernel_size={kernel[-1]} and dilation={dilation[-1]}"
            )
        return RuntimeError(
            f"pad should be at most half of effective kernel size, but got pad={max(padding)}, "
            f"kernel_size={kernel[-1]} and dilation=1"
        )
    if not refused.is_a(ShapeError):
        return None
    stride = _each(refused["stride"] or kernel, spatial)
    axes = zip(x.shape[-spatial:], kernel, padding, dilation, stride, strict=True)
    counts = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, p, d, s in axes]
    channels = x.shape[-spatial - 1]
    return RuntimeError(
        f"Given input size: ({joined((channels, *x.shape[-spatial:]))}). Calculated output size: "
        f"({joined((channels, *counts))}). Output size is too small"
    )


def _pooled_dimensions(x: Any, name: str, spatial: int) -> Exception:
    if name.startswith("adaptive"):
        return RuntimeError(
            f"{name}(): Expected {spatial + 1}D or {spatial + 2}D tensor, but got {sizes(x)}"
        )
    return RuntimeError(
        f"non-empty {spatial + 1}D or {spatial + 2}D (batch mode) tensor expected for input"
    )


# -- losses ---------------------------------------------------------------------------------------


def _reduction(refused: Refused) -> Exception | None:
    """Say it of how losses are reduced."""
    reduction = refused["reduction"]
    if refused.is_a(ArgumentError) and reduction is not None and reduction not in REDUCTIONS:
        return ValueError(f"{reduction} is not a valid value for reduction")
    return None


def of_classes(refused: Refused) -> Exception | None:
    """Say it of classes, their targets and weights."""
    x, target, weight = refused["input"], refused["target"], refused["weight"]
    found = _reduction(refused)
    if found is not None:
        return found
    if refused.is_a(IndexOutOfRange):
        return IndexError(f"Target {refused.facts['index']} is out of bounds.")
    if target.ndim and x.ndim > 1 and x.shape[0] != target.shape[0]:
        return ValueError(
            f"Expected input batch_size ({x.shape[0]}) to match target batch_size "
            f"({target.shape[0]})."
        )
    if x.ndim == 2 and target.ndim > 1:
        return RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.dtype.kind == "f":
        return RuntimeError(f"expected target dtype to be Long or Byte, but got {kind_of(target)}")
    classes = x.shape[1] if x.ndim > 1 else x.shape[0]
    if weight is not None and tuple(weight.shape) != (classes,):
        return RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but "
            f"got weight tensor of shape: {sizes(weight)}"
        )
    return None


def pick_class(refused: Refused) -> Exception | None:
    """Say it of a target, wherever it is read."""
    if refused.is_a(IndexOutOfRange) and "index" in refused.facts:
        return IndexError(f"Target {refused.facts['index']} is out of bounds.")
    return None


def of_pairs(refused: Refused) -> Exception | None:
    """Say it of an input and a target of two shapes."""
    found = _reduction(refused)
    if found is not None or not refused.is_a(ShapeError):
        return found
    return unequal_sizes((refused["input"].shape, refused["target"].shape))


def binary_cross_entropy(refused: Refused) -> Exception | None:
    """Say it of probabilities."""
    x, target = refused["input"], refused["target"]
    found = _reduction(refused)
    if found is not None:
        return found
    if refused.is_a(ShapeError):
        return ValueError(
            f"Using a target size (torch.Size({sizes(target)})) that is different to the input "
            f"size (torch.Size({sizes(x)})) is deprecated. Please ensure they have the same size."
        )
    return RuntimeError("all elements of input should be between 0 and 1")


def of_logits(refused: Refused) -> Exception | None:
    """Say it of logits."""
    found = _reduction(refused)
    if found is not None or not refused.is_a(ShapeError):
        return found
    x, target = refused["input"], refused["target"]
    return ValueError(
        f"Target size (torch.Size({sizes(target)})) must be the same as input size "
        f"(torch.Size({sizes(x)}))"
    )


# -- normalization --------------------------------------------------------------------------------


def layer_norm(refused: Refused) -> Exception | None:
    """Say it of the dimensions that are normalized."""
    x, shape = refused["x"], refused["normalized_shape"]
    wanted = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    if sizes(x)[-len(wanted) :] != wanted:
        ending = ", ".join(map(str, wanted))
        return RuntimeError(
            f"Given normalized_shape={wanted}, expected input with shape [*, {ending}], but got "
            f"input of size{sizes(x)}"
        )
    for name in ("weight", "bias"):
        vector = refused[name]
        if vector is not None and sizes(vector) != wanted:
            return RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{sizes(vector)} and normalized_shape = {wanted}"
            )
    return None


def batch_norm(refused: Refused) -> Exception | None:
    """Say it of statistics of channels."""
    x = refused["x"]
    for name in ("running_mean", "running_var", "weight", "bias"):
        vector = refused[name]
        if vector is not None and tuple(vector.shape) != (x.shape[1],):
            return RuntimeError(f"{name} should contain {x.shape[1]} elements not {vector.numel()}")
    return ValueError(
        "Expected more than 1 value per channel when training, got input size "
        f"torch.Size({sizes(x)})"
    )


def group_norm(refused: Refused) -> Exception | None:
    """Say it of groups of channels."""
    x, groups = refused["x"], refused["num_groups"]
    if x.ndim >= 2 and x.shape[1] % groups:
        return RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {sizes(x)} and num_groups={groups}"
        )
    return None


# -- others ---------------------------------------------------------------------------------------


def pad(refused: Refused) -> Exception | None:
    """Say it of how much is added."""
    x, mode = refused["x"], refused["mode"]
    widths = refused["pad_width"] if refused["pad"] is None else refused["pad"]
    if mode not in (None, "constant", "edge", "replicate", "reflect", "circular", "symmetric"):
        return NotImplementedError(f"Unrecognised padding mode {mode}")
    if len(widths) % 2:
        return RuntimeError("Padding length must be divisible by 2")
    if len(widths) > 2 * x.ndim:
        return RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(widths)} and input of dimension {x.ndim}"
        )
    return None


def interpolate(refused: Refused) -> Exception | None:
    """Say it of the size that is wanted."""
    size, factor, mode, x = (refused[n] for n in ("size", "scale_factor", "mode", "x"))
    if size is None and factor is None:
        return ValueError("either size or scale_factor should be defined")
    if size is not None and factor is not None:
        return ValueError("only one of size or scale_factor should be defined")
    if refused.is_a(ArgumentError, ShapeError):
        return NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {x.ndim}D) for the "
            "modes: nearest | linear | bilinear | bicubic | trilinear | lanczos | area | "
            f"nearest-exact (got {mode})"
        )
    return None


def glu(refused: Refused) -> Exception | None:
    """Say it of what cannot be halved."""
    if refused.is_a(AxisError):
        return None
    x = refused["x"]
    dim = refused["dim"] if refused["dim"] is not None else refused["axis"]
    axis = range(x.ndim)[-1 if dim is None else dim]
    return RuntimeError(
        f"Halving dimension must be even, but dimension {axis} is size {x.shape[axis]}"
    )


def pixel_shuffle(refused: Refused) -> Exception | None:
    """Say it of channels that become pixels."""
    x, factor = refused["x"], refused["upscale_factor"]
    if x.ndim < 3:
        return RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with "
            f"{x.ndim} dimension(s)"
        )
    return RuntimeError(
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
        f"upscale_factor, but input.size(-3)={x.shape[-3]} is not divisible by {factor * factor}"
    )


def attention(refused: Refused) -> Exception | None:
    """Say it of queries, keys and values."""
    query, key = refused["query"], refused["key"]
    if query.shape[-1] == key.shape[-1]:
        return None
    batch = query.numel() // max(query.shape[-1] * query.shape[-2], 1)
    other = key.numel() // max(key.shape[-1] * key.shape[-2], 1)
    return RuntimeError(
        "Expected size for first two dimensions of batch2 tensor to be: "
        f"[{batch}, {query.shape[-1]}] but got: [{other}, {key.shape[-1]}]."
    )


def dropout(refused: Refused) -> Exception | None:
    """Say it of a probability."""
    if not refused.is_a(ArgumentError):
        return None
    return ValueError(f"dropout probability has to be between 0 and 1, but got {refused['p']}")


def activation(refused: Refused) -> Exception | None:
    """Say it of an operand that is no tensor."""
    if not refused.is_a(ArgumentTypeError):
        return None
    return TypeError(
        f"{refused.function}(): argument 'input' (position 1) must be Tensor, not "
        f"{type(refused['x']).__name__}"
    )


RULES: dict[str, Rule] = {
    **{f"conv{n}d": convolution for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": convolution for n in (1, 2, 3)},
    **{f"{kind}_pool{n}d": pooling for kind in ("max", "avg", "lp") for n in (1, 2, 3)},
    **{f"adaptive_{kind}_pool{n}d": pooling for kind in ("max", "avg") for n in (1, 2, 3)},
    "cross_entropy": of_classes,
    "nll_loss": of_classes,
    "pick_class": pick_class,
    **dict.fromkeys(
        ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "soft_margin_loss"),
        of_pairs,
    ),
    "binary_cross_entropy": binary_cross_entropy,
    "binary_cross_entropy_with_logits": of_logits,
    "layer_norm": layer_norm,
    "batch_norm": batch_norm,
    "group_norm": group_norm,
    "pad": pad,
    "pad_torch": pad,
    "interpolate": interpolate,
    "glu": glu,
    "pixel_shuffle": pixel_shuffle,
    "scaled_dot_product_attention": attention,
    **dict.fromkeys(("dropout", "alpha_dropout", "dropout1d", "dropout2d", "dropout3d"), dropout),
}
