"""References of bilinear forms, random slopes, triplets and fractional pooling: loops."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from weft.core.samples import ErrorSample, Sample, Sampler


def _bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    parts = [((input1 @ w) * input2).sum(-1) for w in weight]
    return np.stack(parts, -1) + (0 if bias is None else bias)


def _rrelu(x: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Any:
    return np.where(x < 0, x * (lower + upper) / 2, x)


def _triplet(anchor: Any, positive: Any, negative: Any, **options: Any) -> Any:
    def distance(a: Any, b: Any) -> Any:
        return np.sqrt(((a - b + 1e-6) ** 2).sum(-1))

    near, far = distance(anchor, positive), distance(anchor, negative)
    if options.get("swap"):
        far = np.minimum(far, distance(positive, negative))
    loss = np.maximum(options.get("margin", 1.0) + near - far, 0)
    return {"mean": np.mean, "sum": np.sum}[options.get("reduction", "mean")](loss)


def _fractional(
    x: Any,
    kernel_size: int,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    random_samples: Any = None,
) -> Any:
    size = x.shape[2:]
    wanted = output_size or tuple(int(n * output_ratio) for n in size)
    order = (1, 0) if len(size) == 2 else (0, 1, 2)
    values = np.zeros((*x.shape[:2], *wanted), x.dtype)
    places = np.zeros(values.shape, np.int64)
    for n, c, *out in np.ndindex(values.shape):
        begin = [
            _begin(random_samples[n, c, order[axis]], i, size[axis], wanted[axis], kernel_size)
            for axis, i in enumerate(out)
        ]
        window = [
            tuple(b + o for b, o in zip(begin, offset, strict=True))
            for offset in product(range(kernel_size), repeat=len(size))
        ]
        best = max(window, key=lambda place: x[(n, c, *place)])
        values[(n, c, *out)] = x[(n, c, *best)]
        places[(n, c, *out)] = np.ravel_multi_index(best, size)
    return (values, places) if return_indices else values


def _begin(u: float, i: int, size: int, count: int, kernel: int) -> int:
    if i == count - 1:
        return size - kernel
    alpha = (size - kernel) / (count - 1)
    return int((i + u) * alpha) - int(u * alpha)


REFERENCES: dict[str, Callable[..., Any]] = {
    "bilinear": _bilinear,
    "rrelu": _rrelu,
    "triplet_margin_with_distance_loss": _triplet,
    "fractional_max_pool2d": _fractional,
    "fractional_max_pool3d": _fractional,
}


def _pool2d_samples(s: Sampler) -> Any:
    u = np.array([[[0.3, 0.7]]])
    x = s.distinct(1, 1, 5, 4)
    yield Sample(x, 2, output_size=(3, 2), random_samples=u)
    yield Sample(x, 2, output_ratio=0.6, return_indices=True, random_samples=u, grad=0)


COMPOSITE_SAMPLES: dict[str, Callable[[Sampler], Any]] = {
    "bilinear": lambda s: [
        Sample(s.real(2, 3), s.real(2, 2), s.real(4, 3, 2), s.real(4)),
        Sample(s.real(3), s.real(2), s.real(1, 3, 2)),
    ],
    "rrelu": lambda s: [Sample(s.away(2, 3)), Sample(s.away(3), 0.1, 0.5)],
    "triplet_margin_with_distance_loss": lambda s: [
        Sample(s.real(4, 3), s.real(4, 3), s.real(4, 3)),
        Sample(s.real(4, 3), s.real(4, 3), s.real(4, 3), swap=True, margin=2.0, reduction="sum"),
    ],
    "fractional_max_pool2d": _pool2d_samples,
    "fractional_max_pool3d": lambda s: [
        Sample(
            s.distinct(1, 1, 3, 4, 3),
            2,
            output_size=(2, 2, 2),
            random_samples=np.array([[[0.3, 0.7, 0.1]]]),
        )
    ],
}
COMPOSITE_ERROR_SAMPLES: dict[str, Callable[[Sampler], Any]] = {
    "bilinear": lambda s: [
        ErrorSample(
            s.real(2, 3), s.real(2, 2), s.real(4, 2, 2), error=ValueError, match=r"\(4, 2, 2\)"
        )
    ],
    "rrelu": lambda s: [ErrorSample(s.real(3), 0.5, 0.1, error=ValueError, match="0.5 and 0.1")],
    "fractional_max_pool2d": lambda s: [
        ErrorSample(s.real(1, 1, 4, 4), 2, error=ValueError, match="output_size or output_ratio"),
        ErrorSample(s.real(1, 1, 4, 4), 3, 4, error=ValueError, match=r"do not make \(4, 4\)"),
        ErrorSample(
            s.real(1, 1, 4, 4), 2, output_ratio=2.0, error=ValueError, match=r"\(0, 1\).*2.0"
        ),
    ],
}
