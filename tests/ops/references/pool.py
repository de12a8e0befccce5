"""References of pooling: every window listed element by element, in plain loops."""

from __future__ import annotations

from itertools import product
from math import ceil, floor, prod

import numpy as np

from weft.core.samples import ErrorSample, Sample

# -- windows --------------------------------------------------------------------------------------


def _each(value, ndim):
    return tuple(np.broadcast_to(value, ndim).tolist())


def _count(n, reach, step, pad, ceil_mode):
    room = n + 2 * pad - reach
    if not ceil_mode:
        return floor(room / step) + 1
    count = ceil(room / step) + 1
    return count - 1 if (count - 1) * step >= n + pad else count


def _axis_windows(n, kernel, stride, padding, dilation, ceil_mode):
    """Return the positions of each window along one axis, also those outside of the input."""
    before, after = padding if np.ndim(padding) else (padding, padding)
    reach = dilation * (kernel - 1) + 1
    if before == after:
        count = _count(n, reach, stride, before, ceil_mode)
    else:
        count = (n + before + after - reach) // stride + 1
    return [[i * stride - before + k * dilation for k in range(kernel)] for i in range(count)]


def _windows(size, kernel, stride, padding, dilation, ceil_mode):
    ndim = len(size)
    kernel = _each(kernel, ndim)
    stride = kernel if stride is None else _each(stride, ndim)
    padding = padding if np.ndim(padding) == 2 else _each(padding, ndim)
    axes = zip(size, kernel, stride, padding, _each(dilation, ndim), strict=True)
    return [_axis_windows(*axis, ceil_mode) for axis in axes]


def _adaptive_windows(size, output_size):
    counts = output_size if np.ndim(output_size) else [output_size] * len(size)
    counts = [n if m is None else m for n, m in zip(size, counts, strict=True)]
    return [
        [list(range(floor(i * n / m), ceil((i + 1) * n / m))) for i in range(m)]
        for n, m in zip(size, counts, strict=True)
    ]


def _inside(boxes, size):
    """Yield each window's output place and its elements within the input, in row-major order."""
    for out in product(*(range(len(b)) for b in boxes)):
        elements = product(*(b[i] for b, i in zip(boxes, out, strict=True)))
        yield out, [e for e in elements if all(0 <= p < n for p, n in zip(e, size, strict=True))]


def _reduce(x, boxes, reduce, dtype=None):
    counts = [len(b) for b in boxes]
    result = np.zeros((*x.shape[:2], *counts), dtype or x.dtype)
    for lead in np.ndindex(x.shape[:2]):
        for out, elements in _inside(boxes, x.shape[2:]):
            result[(*lead, *out)] = reduce(x[lead], out, elements)
    return result


def _batched(fn):
    """Let a reference of a known number of spatial axes also take (C, *spatial)."""

    def for_rank(ndim):
        def reference(x, *args, **kwargs):
            if x.ndim == ndim + 2:
                return fn(x, *args, **kwargs)
            args = [a[None] if isinstance(a, np.ndarray) else a for a in args]
            result = fn(x[None], *args, **kwargs)
            return tuple(r[0] for r in result) if isinstance(result, tuple) else result[0]

        return reference

    return for_rank


# -- maxima ---------------------------------------------------------------------------------------


def _first_maximum(channel, elements):
    values = [channel[e] for e in elements]
    nans = [i for i, v in enumerate(values) if np.isnan(v)]
    return elements[nans[0] if nans else values.index(max(values))]


def _maxima(x, boxes):
    size = x.shape[2:]
    values = _reduce(x, boxes, lambda c, _, e: c[_first_maximum(c, e)])
    index = _reduce(
        x, boxes, lambda c, _, e: np.ravel_multi_index(_first_maximum(c, e), size), np.int64
    )
    return values, index


def max_pool(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    return _maxima(x, _windows(x.shape[2:], kernel_size, stride, padding, dilation, ceil_mode))


def adaptive_max_pool(x, output_size):
    return _maxima(x, _adaptive_windows(x.shape[2:], output_size))


@_batched
def max_pool_nd(x, *args, return_indices=False, **kwargs):
    values, index = max_pool(x, *args, **kwargs)
    return (values, index) if return_indices else values


@_batched
def adaptive_max_pool_nd(x, output_size, return_indices=False):
    values, index = adaptive_max_pool(x, output_size)
    return (values, index) if return_indices else values


@_batched
def max_unpool_nd(x, indices, kernel_size, stride=None, padding=0, output_size=None):
    ndim = x.ndim - 2
    kernel = _each(kernel_size, ndim)
    stride = kernel if stride is None else _each(stride, ndim)
    axes = zip(x.shape[2:], kernel, stride, _each(padding, ndim), strict=True)
    size = tuple((n - 1) * s - 2 * p + k for n, k, s, p in axes)
    size = size if output_size is None else tuple(output_size[-ndim:])
    result = np.zeros((*x.shape[:2], prod(size)), x.dtype)
    for place in np.ndindex(x.shape):
        result[(*place[:2], indices[place])] = x[place]
    return result.reshape(*x.shape[:2], *size)


def pool_gather(x, index):
    flat = x.reshape(*x.shape[:2], prod(x.shape[2:]))
    result = np.zeros(index.shape, x.dtype)
    for place in np.ndindex(index.shape):
        result[place] = flat[(*place[:2], index[place])]
    return result


def pool_scatter(y, index, size):
    result = np.zeros((*y.shape[:2], prod(size)), y.dtype)
    for place in np.ndindex(y.shape):
        result[(*place[:2], index[place])] += y[place]
    return result.reshape(*y.shape[:2], *size)


def pool_last_write(index, size):
    result = np.zeros(index.shape, bool)
    for lead in np.ndindex(index.shape[:2]):
        row = index[lead].ravel().tolist()
        last = [place not in row[i + 1 :] for i, place in enumerate(row)]
        result[lead] = np.array(last, bool).reshape(index.shape[2:])
    return result


# -- sums and averages ----------------------------------------------------------------------------


def _float(x):
    return x if x.dtype.kind == "f" else x.astype(np.float32)


def sum_pool(x, kernel_size, stride=None, padding=0, ceil_mode=False):
    boxes = _windows(x.shape[2:], kernel_size, stride, padding, 1, ceil_mode)
    return _reduce(_float(x), boxes, lambda c, _, e: sum(c[p] for p in e))


def sum_pool_adjoint(y, input_size, kernel_size, stride=None, padding=0):
    boxes = _windows(input_size, kernel_size, stride, padding, 1, False)
    result = np.zeros((*y.shape[:2], *input_size), y.dtype)
    for lead in np.ndindex(y.shape[:2]):
        for out, elements in _inside(boxes, input_size):
            for place in elements:
                result[(*lead, *place)] += y[(*lead, *out)]
    return result


@_batched
def avg_pool_nd(
    x,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    size = x.shape[2:]
    boxes = _windows(size, kernel_size, stride, padding, 1, ceil_mode)
    pads = _each(padding, len(size))

    def average(channel, out, elements):
        total = sum(channel[e] for e in elements)
        if divisor_override is not None:
            return total / divisor_override
        if not count_include_pad:
            return total / len(elements)
        chosen = [b[i] for b, i in zip(boxes, out, strict=True)]
        counts = [sum(p < n + pad for p in b) for b, n, pad in zip(chosen, size, pads, strict=True)]
        return total / prod(counts)

    return _reduce(_float(x), boxes, average)


@_batched
def lp_pool_nd(x, norm_type, kernel_size, stride=None, ceil_mode=False):
    boxes = _windows(x.shape[2:], kernel_size, stride, 0, 1, ceil_mode)
    full = prod(_each(kernel_size, x.ndim - 2))

    def norm(channel, _, elements):
        powers = [channel[e] ** norm_type for e in elements]
        return (sum(powers) * full / len(elements)) ** (1 / norm_type)

    return _reduce(x, boxes, norm)


@_batched
def adaptive_avg_pool_nd(x, output_size):
    boxes = _adaptive_windows(x.shape[2:], output_size)
    return _reduce(_float(x), boxes, lambda c, _, e: sum(c[p] for p in e) / len(e))


def _global(reduce):
    return lambda x: reduce(x.reshape(*x.shape[:2], -1), axis=2).reshape(
        *x.shape[:2], *[1] * (x.ndim - 2)
    )


_BY_RANK = {
    "max_pool": max_pool_nd,
    "adaptive_max_pool": adaptive_max_pool_nd,
    "max_unpool": max_unpool_nd,
    "avg_pool": avg_pool_nd,
    "adaptive_avg_pool": adaptive_avg_pool_nd,
}

REFERENCES = {
    "max_pool": max_pool,
    "adaptive_max_pool": adaptive_max_pool,
    "pool_gather": pool_gather,
    "pool_scatter": pool_scatter,
    "pool_last_write": pool_last_write,
    "sum_pool": sum_pool,
    "sum_pool_adjoint": sum_pool_adjoint,
    "lp_pool1d": lp_pool_nd(1),
    "lp_pool2d": lp_pool_nd(2),
    "global_avg_pool": _global(np.mean),
    "global_max_pool": _global(np.max),
    **{f"{name}{n}d": fn(n) for name, fn in _BY_RANK.items() for n in (1, 2, 3)},
}


# -- samples --------------------------------------------------------------------------------------


def _max_pools(ndim):
    def samples(s):
        size = (5, 4, 2)[:ndim]
        yield Sample(s.distinct(1, 2, *size), 2)
        yield Sample(s.distinct(1, *size), 2, 1, return_indices=True, label="unbatched")
        yield Sample(s.distinct(1, 1, *size), 2, 2, 1, 1, True, label="ceil_mode")
        yield Sample(s.distinct(0, 1, *size), 2, label="empty batch")

    return samples


def _adaptive_pools(ndim, *options):
    def samples(s):
        size = (5, 3, 2)[:ndim]
        yield Sample(s.distinct(1, 2, *size), 2, *options)
        yield Sample(s.distinct(1, *size), 1, label="unbatched")
        yield Sample(s.distinct(1, 1, *size), (None, 2, 1)[:ndim], label="None keeps the size")
        yield Sample(s.integers(1, 1, *size), 2, grad=0, label="integers")

    return samples


def _avg_pools(ndim):
    def samples(s):
        size = (5, 4, 3)[:ndim]
        yield Sample(s.real(1, 2, *size), 2)
        yield Sample(s.real(1, *size), 2, 1, label="unbatched")
        for include in (True, False):
            for ceil_mode in (True, False):
                yield Sample(s.real(1, 1, *size), 3, 2, 1, ceil_mode, include)
        yield Sample(s.real(0, 1, *size), 2, label="empty batch")
        yield Sample(s.integers(1, 1, *size), 2, grad=0, label="integers")
        if ndim > 1:
            yield Sample(s.real(1, 1, *size), 2, padding=1, divisor_override=3)

    return samples


def _lp_pools(ndim):
    def samples(s):
        size = (5, 3)[:ndim]
        yield Sample(s.positive(1, 2, *size), 2, 2)
        yield Sample(s.positive(1, *size), 1.5, 2, 1, label="unbatched")
        yield Sample(s.positive(1, 1, *size), 3, 2, ceil_mode=True)
        yield Sample(np.zeros((1, 1, *size)), 2, 2, grad=0, label="zeros")

    return samples


def _unpools(ndim):
    def samples(s):
        counts = (2, 2, 1)[:ndim]
        places = s.rng.permutation(prod(2 * n for n in counts))[: prod(counts)]
        index = places.reshape(1, 1, *counts)
        yield Sample(s.real(1, 1, *counts), index, 2)
        yield Sample(s.real(1, *counts), index[0], 2, label="unbatched")
        wider = tuple(2 * n + 1 for n in counts)
        yield Sample(s.real(1, 1, *counts), index, 2, output_size=wider)
        whole = (1, 1, *(2 * n for n in counts))
        yield Sample(s.real(1, 1, *counts), index // 2, 3, 2, 1, whole, label="repeated")

    return samples


def _globals(draw):
    def samples(s):
        for shape in ((2, 2, 3), (1, 2, 2, 3), (1, 1, 2, 2, 2)):
            yield Sample(getattr(s, draw)(*shape))

    return samples


COMPOSITE_SAMPLES = {
    "lp_pool1d": _lp_pools(1),
    "lp_pool2d": _lp_pools(2),
    "global_avg_pool": _globals("real"),
    "global_max_pool": _globals("distinct"),
    **{f"max_pool{n}d": _max_pools(n) for n in (1, 2, 3)},
    **{f"adaptive_max_pool{n}d": _adaptive_pools(n, True) for n in (1, 2, 3)},
    **{f"max_unpool{n}d": _unpools(n) for n in (1, 2, 3)},
    **{f"avg_pool{n}d": _avg_pools(n) for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": _adaptive_pools(n) for n in (1, 2, 3)},
}


def _pool_errors(name):
    def errors(s):
        x = s.real(1, 1, 4, 4)
        yield ErrorSample(s.real(4, 4), 2, error=ValueError, match=rf"^{name}: .*shape \(4, 4\)")
        yield ErrorSample(x, 5, error=ValueError, match=rf"^{name}: kernel of extent \(5, 5\)")
        yield ErrorSample(x, 2, 0, error=ValueError, match="stride must be at least 1.*0")
        yield ErrorSample(x, 2, padding=2, error=ValueError, match=r"padding=\(2, 2\)")

    return errors


def _adaptive_errors(s):
    x = s.real(1, 1, 4, 4)
    yield ErrorSample(x, (2, 2, 2), error=ValueError, match=r"output_size .*\(2, 2, 2\)")
    yield ErrorSample(x, -1, error=ValueError, match="size must .*-1")
    yield ErrorSample(x, 1.5, error=TypeError, match="must be an integer.*1.5")


def _unpool_errors(s):
    x, index = s.real(1, 1, 2, 2), s.integers(1, 1, 2, 2)
    yield ErrorSample(x, index + 99, 2, error=IndexError, match="out of range for 16")
    yield ErrorSample(x, index[..., :1], 2, error=ValueError, match=r"\(1, 1, 2, 1\)")
    yield ErrorSample(x, index, 2, output_size=(9, 9), error=ValueError, match=r"\(9, 9\)")
    yield ErrorSample(x, x, 2, error=TypeError, match="integers.*float64")


def _lp_errors(s):
    x = s.real(1, 1, 4, 4)
    yield ErrorSample(x, 0, 2, error=ValueError, match="norm_type must be positive.*0")
    yield ErrorSample(x, "2", 2, error=TypeError, match="norm_type must be a number.*'2'")


def _global_errors(s):
    yield ErrorSample(s.real(2, 3), error=ValueError, match=r"Received: \(2, 3\)")


def _avg_errors(s):
    yield from _pool_errors("avg_pool2d")(s)
    x = s.real(1, 1, 4, 4)
    yield ErrorSample(x, 2, divisor_override=0, error=ValueError, match="must not be 0")
    yield ErrorSample(x, 2, count_include_pad=3, error=TypeError, match="count_include_pad.*3")


COMPOSITE_ERROR_SAMPLES = {
    "max_pool2d": _pool_errors("max_pool2d"),
    "avg_pool2d": _avg_errors,
    "adaptive_max_pool2d": _adaptive_errors,
    "adaptive_avg_pool2d": _adaptive_errors,
    "max_unpool2d": _unpool_errors,
    "lp_pool2d": _lp_errors,
    "global_avg_pool": _global_errors,
    "global_max_pool": _global_errors,
}
