"""Window functions, under PyTorch's names and signatures (torch.signal.windows).

M              how many elements
sym            True: the window is symmetric, for filters; False: it is a period, for spectra
dtype, requires_grad, device   as for all functions that make tensors
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ...core.dtype import as_dtype, default_float, is_float
from ...core.errors import ArgumentError, DTypeError
from ...core.op import F
from ...core.shape import as_int
from ...core.tensor import Tensor
from ..creation import asarray

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Tensor:
    """Return the sum of a[0] - a[1] cos(t) + a[2] cos(2 t) - ..., t from 0 to 2 pi.

    >>> general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    weights = [float(weight) for weight in a]
    if not weights:
        raise ArgumentError("general_cosine: a must hold at least one number")
    phase, finish = _places("general_cosine", M, sym, options, 2 * math.pi)
    total = weights[0] + F.zeros_like(phase)
    for k, weight in enumerate(weights[1:], start=1):
        total = total + (-1) ** k * weight * F.cos(phase * k)
    return finish(total)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """Return alpha - (1 - alpha) cos(t)."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return Hamming's window: 0.54 - 0.46 cos(t)."""
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return von Hann's window: (1 - cos(t)) / 2.

    >>> hann(4, sym=False)
    tensor([0. , 0.5, 1. , 0.5])
    """
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return Blackman's window of three cosines."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return Nuttall's minimum 4-term window."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return Bartlett's window, a triangle that ends in zeros."""
    place, finish = _places("bartlett", M, sym, options, 2.0)
    return finish(1 - F.abs(place - 1))


def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return half a period of a sine, at the middles of M parts."""
    count = _count("cosine", M)
    parts = count if sym else count + 1
    place, finish = _counted("cosine", count, options)
    return finish(F.sin((place + 0.5) * (math.pi / max(parts, 1))))


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any
) -> Tensor:
    """Return exp(-|n - center| / tau); the centre is in the middle unless it is given."""
    if not tau > 0:
        raise ArgumentError(f"exponential: tau must be positive. Received: {tau}")
    if sym and center is not None:
        raise ArgumentError("exponential: a symmetric window has its centre in the middle")
    count = _count("exponential", M)
    middle = (count - 1 if sym else count) / 2 if center is None else float(center)
    place, finish = _counted("exponential", count, options)
    return finish(F.exp(-F.abs(place - middle) / tau))


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """Return exp(-(n - middle)**2 / (2 std**2))."""
    if not std > 0:
        raise ArgumentError(f"gaussian: std must be positive. Received: {std}")
    count = _count("gaussian", M)
    middle = (count - 1 if sym else count) / 2
    place, finish = _counted("gaussian", count, options)
    return finish(F.exp(-(((place - middle) / (std * math.sqrt(2))) ** 2)))


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:
    """Return Kaiser's window: i0(beta sqrt(1 - t**2)) / i0(beta), t from -1 to 1."""
    if beta < 0:
        raise ArgumentError(f"kaiser: beta must not be negative. Received: {beta}")
    place, finish = _places("kaiser", M, sym, options, 2.0)
    inside = F.maximum(1 - (place - 1) ** 2, 0)
    falling = F.i0e(beta * F.sqrt(inside)) / F.i0e(F.full_like(place, beta))
    return finish(falling * F.exp(beta * (F.sqrt(inside) - 1)))


# -- parts ----------------------------------------------------------------------------------------


def _count(name: str, M: Any) -> int:
    count = as_int(M, f"{name}: M")
    if count < 0:
        raise ArgumentError(f"{name}: M must not be negative. Received: {count}")
    return count


def _counted(name: str, count: int, options: dict[str, Any]) -> tuple[Any, Any]:
    """Return 0, 1, ... in float64, and what makes a window of numbers computed from it."""
    dtype = options.pop("dtype", None)
    dtype = default_float() if dtype is None else as_dtype(dtype)
    if not is_float(dtype):
        raise DTypeError(f"{name}: dtype must be floating-point. Received: {dtype}")
    requires_grad, device = options.pop("requires_grad", False), options.pop("device", None)
    if options:
        raise TypeError(f"{name}: unexpected keywords {', '.join(options)}")

    def finish(values: Any) -> Tensor:
        if count == 1:
            values = F.ones_like(values)
        made = asarray(F.cast(values, dtype), device=device)
        return made.requires_grad_() if requires_grad else made

    return F.cast(F.iota(count), "float64"), finish


def _places(name: str, M: Any, sym: bool, options: dict[str, Any], end: float) -> tuple[Any, Any]:
    """Return places from 0 to an end, which a period leaves out."""
    count = _count(name, M)
    place, finish = _counted(name, count, options)
    parts = count - 1 if sym else count
    return place * (end / max(parts, 1)), finish
