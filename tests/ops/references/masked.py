"""References of masked functions: NumPy's masked arrays, and loops over rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from weft.core.samples import ErrorSample, Sample, Sampler

X = np.array([[1.5, -0.5, 2.0], [0.3, 1.1, -1.2]])
MASK = np.array([[True, False, True], [True, True, False]])


def _reduced(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reduction over one axis or all, of the elements that count alone."""

    def reference(x: Any, *args: Any, mask: Any = None, axis: Any = None, **options: Any) -> Any:
        mask = np.ones(x.shape, bool) if mask is None else np.broadcast_to(mask, x.shape)
        keepdims = options.pop("keepdims", False)
        if axis is None:
            found = np.asarray(fn(x[mask], *args, **options))
            return found.reshape((1,) * x.ndim) if keepdims else found
        rows = np.moveaxis(x, axis, -1), np.moveaxis(mask, axis, -1)
        found = np.array(
            [fn(rows[0][i][rows[1][i]], *args, **options) for i in np.ndindex(rows[0].shape[:-1])]
        ).reshape(rows[0].shape[:-1])
        return np.expand_dims(found, axis) if keepdims else found

    return reference


def _place(choose: Callable[..., Any], worst: float) -> Callable[..., Any]:
    return lambda x, axis=None, mask=None: choose(np.where(mask, x, worst), axis)


def _rows(fn: Callable[..., Any], fill: float) -> Callable[..., Any]:
    return lambda x, axis, mask=None: fn(np.where(mask, x, fill), axis)


def _normalize(x: Any, ord: float, axis: int, eps: float = 1e-12, mask: Any = None) -> Any:
    kept = np.where(mask, x, 0)
    return kept / np.maximum(np.linalg.norm(kept, ord, axis, keepdims=True), eps)


def _logaddexp(x: Any, y: Any, x_mask: Any = None, y_mask: Any = None) -> Any:
    return np.logaddexp(np.where(x_mask, x, -np.inf), np.where(y_mask, y, -np.inf))


def _spread(x: Any, unbiased: bool = True, correction: float | None = None) -> Any:
    return np.var(x, ddof=int(unbiased) if correction is None else correction)


REFERENCES: dict[str, Callable[..., Any]] = {
    "masked_sum": _reduced(np.sum),
    "masked_prod": _reduced(np.prod),
    "masked_amax": _reduced(np.max),
    "masked_amin": _reduced(np.min),
    "masked_argmax": _place(np.argmax, -9.0),
    "masked_argmin": _place(np.argmin, 9.0),
    "masked_mean": _reduced(np.mean),
    "masked_median": _reduced(lambda x: np.sort(x)[(len(x) - 1) // 2]),
    "masked_var": _reduced(_spread),
    "masked_std": _reduced(lambda x, unbiased=True: np.sqrt(_spread(x, unbiased))),
    "masked_norm": _reduced(lambda x, ord=2.0: np.linalg.norm(x, ord)),
    "masked_logsumexp": _reduced(special.logsumexp),
    "masked_softmax": _rows(special.softmax, -np.inf),
    "masked_log_softmax": _rows(special.log_softmax, -np.inf),
    "masked_softmin": lambda x, axis, mask=None: special.softmax(np.where(mask, -x, -np.inf), axis),
    "masked_normalize": _normalize,
    "masked_cumsum": _rows(np.cumsum, 0),
    "masked_cumprod": _rows(np.cumprod, 1),
    "masked_logaddexp": _logaddexp,
}


def _reduction_samples(s: Sampler) -> Any:
    yield Sample(X, mask=MASK)
    yield Sample(X, axis=1, keepdims=True, mask=MASK)
    yield Sample(X, axis=0)


def _axis_samples(s: Sampler) -> Any:
    yield Sample(X, axis=1, mask=MASK)
    yield Sample(X, axis=-1, mask=MASK[1])


def _ordered_samples(s: Sampler) -> Any:
    yield Sample(X, ord=3.0, axis=1, mask=MASK)


COMPOSITE_SAMPLES: dict[str, Callable[[Sampler], Any]] = {
    **{
        f"masked_{name}": _reduction_samples
        for name in ("sum", "prod", "amax", "amin", "mean", "logsumexp")
    },
    **{
        f"masked_{name}": _axis_samples
        for name in ("argmax", "argmin", "median", "cumsum", "cumprod", "softmax", "softmin")
    },
    "masked_log_softmax": lambda s: [Sample(X, axis=1, mask=MASK, grad=0)],
    "masked_var": lambda s: [
        Sample(X, mask=MASK),
        Sample(X, axis=1, unbiased=False, mask=MASK),
        Sample(X, correction=1.5, mask=MASK),
    ],
    "masked_std": lambda s: [Sample(X, mask=MASK)],
    "masked_norm": _ordered_samples,
    "masked_normalize": _ordered_samples,
    "masked_logaddexp": lambda s: [
        Sample(X[0], X[1], x_mask=np.array([True, True, False]), y_mask=np.array([True] * 3))
    ],
}
COMPOSITE_ERROR_SAMPLES: dict[str, Callable[[Sampler], Any]] = {
    "masked_sum": lambda s: [
        ErrorSample(X, mask=X, error=TypeError, match="mask must hold truth values.*float64")
    ],
}
