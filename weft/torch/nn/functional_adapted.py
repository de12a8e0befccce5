"""Functions of networks that PyTorch calls with shapes or values which Weft's do not take."""

from __future__ import annotations

from typing import Any

from ...core import dtype as dt
from ...core.op import F
from ..adoption import adopt
from ..deferred import weft_function
from ..functions.without_dims import with_one_dim

NAMESPACE = "nn.functional"


def _weft(name: str) -> Any:
    found = weft_function(name, NAMESPACE)
    assert found is not None, name
    return found


def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """Return vectors along a dimension over their norm."""
    found = adopt(_weft("normalize")(input, p, dim, eps))
    return found if out is None else out.copy_(found)


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """Return the cosine of the angle between vectors along a dimension."""
    return adopt(_weft("cosine_similarity")(x1, x2, dim, eps))


def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Return each channel over the batch's deviation, or over that which was kept."""
    if input.ndim == 1 and not input.numel():
        return adopt(F.positive(input))  # of nothing: nothing
    statistics = (running_mean, running_var, weight, bias)
    return adopt(_weft("batch_norm")(input, *statistics, training, momentum, eps))


def checked_pad(pad: Any) -> Any:
    """Return padding that refuses what PyTorch refuses: copies wider than what is copied."""

    def padded(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
        if mode == "reflect":
            _check_reflection(input, pad)
        if mode == "circular" and any(n > size for n, size in _padded_sizes(input, pad)):
            raise RuntimeError("Padding value causes wrapping around more than once.")
        return compute(input, pad, mode, value)

    compute = pad
    padded.__name__ = compute.__name__
    padded.__doc__ = compute.__doc__
    return padded


def _padded_sizes(input: Any, pad: Any) -> list[tuple[int, int]]:
    """Return by how much each side is padded, with the size of its dimension, last ones first."""
    return [(n, input.shape[-1 - place // 2]) for place, n in enumerate(pad)]


def _check_reflection(input: Any, pad: Any) -> None:
    for place in range(len(pad) // 2):
        axis = input.ndim - 1 - place
        sides = tuple(pad[2 * place : 2 * place + 2])
        if axis >= 0 and max(sides) >= input.shape[axis]:
            raise RuntimeError(
                f"Argument #{4 + 2 * place}: Padding size should be less than the corresponding "
                f"input dimension, but got: padding {sides} at dimension {axis} of input "
                f"{list(input.shape)}"
            )


def hardshrink(input: Any, lambd: float = 0.5) -> Any:
    """Return elements farther from zero than a bound, and zeros for others."""
    return adopt(F.positive(input) if lambd < 0 else _weft("hardshrink")(input, lambd))


def multilabel_margin(compute: Any) -> Any:
    """Return the loss, which takes one score without dimensions as one of a vector."""

    def loss(input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        x, y = (F.reshape(v, (1,)) if not v.ndim else v for v in (input, target))
        return compute(x, y, *args, **kwargs)

    return loss


def multi_margin(compute: Any) -> Any:
    """Return the loss, which takes vectors of scores with the target as one number, or as one."""

    def loss(input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        x = input if input.ndim else F.reshape(input, (1,))
        y = target if x.ndim > 1 else F.reshape(target, ())
        return compute(x, y, *args, **kwargs)

    return loss


def average_pool(name: str) -> Any:
    """Return average pooling, for which no stride at all means that of the window."""
    compute = _weft(name)

    def pool(input: Any, kernel_size: Any, stride: Any = None, *args: Any, **kwargs: Any) -> Any:
        step = None if isinstance(stride, (tuple, list)) and not stride else stride
        if dt.is_float(input.dtype):
            return adopt(compute(input, kernel_size, step, *args, **kwargs))
        found = compute(F.cast(input, dt.float64), kernel_size, step, *args, **kwargs)
        return adopt(F.cast(found, input.dtype))  # whole numbers without their fractions

    pool.__name__ = name
    pool.__doc__ = compute.__doc__
    return pool


def fractional_pool(name: str) -> Any:
    """Return fractional pooling, whose numbers may be given."""
    compute = _weft(name)

    def pool(
        input: Any,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> Any:
        given = (kernel_size, output_size, output_ratio, return_indices)
        return adopt(compute(input, *given, random_samples=_random_samples))

    pool.__name__ = name
    pool.__doc__ = compute.__doc__
    return pool


def max_unpool(name: str) -> Any:
    """Return unpooling with PyTorch's gradient where several elements name one place.

    The last of them stands there, and Weft's gradient goes to it alone. PyTorch gives the gradient
    of a place to all that name it: training goes as there.
    """
    compute, spatial = _weft(name), int(name[-2])

    def unpool(
        input: Any,
        indices: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Any:
        found = compute(input, indices, kernel_size, stride, padding, output_size)
        if not input.requires_grad:
            return adopt(found)
        x, places = (v if v.ndim > spatial + 1 else F.unsqueeze(v, 0) for v in (input, indices))
        x = F.where(F.isfinite(x), x, 0)
        zeros = F.pool_scatter(x - F.stop_gradient(x), places, tuple(found.shape[-spatial:]))
        return adopt(F.stop_gradient(found) + F.reshape(zeros, tuple(found.shape)))

    unpool.__name__ = name
    return unpool


ADAPTED: dict[str, Any] = {
    "normalize": with_one_dim(normalize),
    "cosine_similarity": with_one_dim(cosine_similarity),
    "batch_norm": batch_norm,
    "hardshrink": hardshrink,
    **{name: average_pool(name) for name in ("avg_pool1d", "avg_pool2d", "avg_pool3d")},
    **{name: max_unpool(name) for name in ("max_unpool1d", "max_unpool2d", "max_unpool3d")},
    **{name: fractional_pool(name) for name in ("fractional_max_pool2d", "fractional_max_pool3d")},
}
# What goes around functions of the tables.
AROUND: dict[str, Any] = {
    "multilabel_margin_loss": multilabel_margin,
    "multi_margin_loss": multi_margin,
    "pad": checked_pad,
}
