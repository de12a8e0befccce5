"""References for network functions other than losses: formulas written out in NumPy and SciPy."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from weft.core.samples import ErrorSample, Sample

# -- softmax --------------------------------------------------------------------------------------


def softmax(x, axis=-1, dim=None, dtype=None):
    x = x if dtype is None else x.astype(dtype)
    return special.softmax(x, axis=axis if dim is None else dim)


def log_softmax(x, axis=-1, dim=None, dtype=None):
    x = x if dtype is None else x.astype(dtype)
    return special.log_softmax(x, axis=axis if dim is None else dim)


def softmin(x, axis=-1, dim=None, dtype=None):
    return softmax(-x, axis, dim, dtype)


def softmax_samples(s):
    yield Sample(s.real(4))
    yield Sample(s.real(2, 3))
    yield Sample(s.real(2, 3), axis=0)
    yield Sample(s.real(2, 3, 2), dim=1)
    yield Sample(s.strided(3, 2), 1, label="non-contiguous")
    yield Sample(s.real(2, 1), label="one class")
    yield Sample(s.real(0, 3), label="no rows")
    yield Sample(np.array([[1e4, -1e4, 9999.0], [-1e4, -1e4, -1e4]]), grad=1, label="huge logits")
    yield Sample(s.real(2, 3).astype(np.float32), dtype="float64")


def softmax_errors(s):
    yield ErrorSample(s.real(2, 3), axis=2, error=IndexError, match="axis 2")
    yield ErrorSample(s.real(), error=IndexError, match="0-d")
    yield ErrorSample("logits", error=TypeError, match="Received: str")


def gumbel_softmax(logits, tau=1.0, hard=False, axis=-1):
    return np.ones_like(logits)


def gumbel_samples(s):
    """With one class there is nothing to draw; the rest is in test_random.py."""
    yield Sample(s.real(3, 1))
    yield Sample(s.real(1, 3), tau=0.5, hard=True, axis=0)


def gumbel_errors(s):
    yield ErrorSample(s.real(3), tau=0.0, error=ValueError, match="Received: 0")
    yield ErrorSample(s.integers(3), error=TypeError, match="Received: int64")


# -- normalisation --------------------------------------------------------------------------------


def standardize(x, axes, eps):
    mean = x.mean(axis=axes, keepdims=True)
    return (x - mean) / np.sqrt(x.var(axis=axes, keepdims=True) + eps)


def affine(x, weight, bias, axis=None):
    """Scale and shift; along one axis, if that is given."""
    if axis is not None:
        shape = [1] * x.ndim
        shape[axis] = -1
        weight = None if weight is None else weight.reshape(shape)
        bias = None if bias is None else bias.reshape(shape)
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def trailing(x, normalized_shape):
    return tuple(range(-np.size(np.atleast_1d(normalized_shape)), 0))


def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    return affine(standardize(x, trailing(x, normalized_shape), eps), weight, bias)


def layer_norm_samples(s):
    yield Sample(s.real(4, 3), 3)
    yield Sample(s.real(2, 4), (4,), s.real(4), s.real(4))
    yield Sample(s.real(2, 2, 3), (2, 3), s.real(2, 3), eps=0.1)
    yield Sample(s.real(3), 3, bias=s.real(3))
    yield Sample(s.real(0, 3), 3)
    yield Sample(s.real(2, 3) + 100, 3, grad=0, label="large mean")


def layer_norm_errors(s):
    yield ErrorSample(s.real(2, 3), 2, error=ValueError, match=r"normalized_shape=\(2,\).*\(2, 3\)")
    yield ErrorSample(s.real(2, 3), 3, s.real(2), error=ValueError, match=r"weight.*\(2,\)")
    yield ErrorSample(s.real(3), (2, 3), error=ValueError, match=r"\(2, 3\)")


def rms_norm(x, normalized_shape, weight=None, eps=None):
    eps = np.finfo(x.dtype).eps if eps is None else eps
    mean_square = np.mean(x**2, axis=trailing(x, normalized_shape), keepdims=True)
    return affine(x / np.sqrt(mean_square + eps), weight, None)


def rms_norm_samples(s):
    yield Sample(s.real(4, 3), 3, eps=1e-6)
    yield Sample(s.real(2, 2, 3), (2, 3), s.real(2, 3), eps=0.1)
    yield Sample(s.real(4), 4)


def rms_norm_errors(s):
    yield ErrorSample(s.real(2, 3), 4, error=ValueError, match=r"Received: \(2, 3\)")
    yield ErrorSample(s.real(2, 3), 3, eps=-1.0, error=ValueError, match=r"Received: -1.0")


def group_norm(x, num_groups, weight=None, bias=None, eps=1e-5):
    parts = np.split(x, num_groups, axis=1)
    normal = [standardize(p, tuple(range(1, x.ndim)), eps) for p in parts]
    return affine(np.concatenate(normal, axis=1), weight, bias, 1)


def group_norm_samples(s):
    yield Sample(s.real(2, 4, 2), 2)
    yield Sample(s.real(2, 4), 2, s.real(4), s.real(4), eps=0.1)
    yield Sample(s.real(1, 4, 2, 1), 4, weight=s.real(4))
    yield Sample(s.real(2, 2, 3), 1, bias=s.real(2))


def group_norm_errors(s):
    yield ErrorSample(s.real(2, 4), 3, error=ValueError, match="3 groups for 4 channels")
    yield ErrorSample(s.real(4), 2, error=ValueError, match=r"Received: \(4,\)")
    yield ErrorSample(s.real(2, 4), 0, error=ValueError, match="Received: 0")
    yield ErrorSample(s.real(2, 4), 2, s.real(3), error=ValueError, match="4 channels")


def running_norm(x, mean, var, weight, bias, eps):
    shape = (1, -1) + (1,) * (x.ndim - 2)
    normal = (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + eps)
    return affine(normal, weight, bias, 1)


def instance_norm(
    x,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
):
    if not use_input_stats:
        return running_norm(x, running_mean, running_var, weight, bias, eps)
    return affine(standardize(x, tuple(range(2, x.ndim)), eps), weight, bias, 1)


def instance_norm_samples(s):
    yield Sample(s.real(2, 2, 3))
    yield Sample(s.real(1, 2, 2, 2), weight=s.real(2), bias=s.real(2), eps=0.1)
    yield Sample(s.real(2, 2, 2), s.real(2), s.positive(2), use_input_stats=False)


def instance_norm_errors(s):
    yield ErrorSample(s.real(2, 3), error=ValueError, match=r"Received: \(2, 3\)")
    yield ErrorSample(s.real(2, 3, 1), error=ValueError, match="more than one value")


def batch_norm(
    x,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    training=False,
    momentum=0.1,
    eps=1e-5,
):
    if not training:
        return running_norm(x, running_mean, running_var, weight, bias, eps)
    return affine(standardize(x, (0, *range(2, x.ndim)), eps), weight, bias, 1)


def batch_norm_samples(s):
    yield Sample(s.real(4, 2), training=True)
    yield Sample(s.real(2, 2, 3), weight=s.real(2), bias=s.real(2), training=True, eps=0.1)
    yield Sample(s.real(3, 2, 2, 1), training=True, bias=s.real(2))
    yield Sample(s.real(3, 2), s.real(2), s.positive(2))
    yield Sample(s.real(2, 2, 2), s.real(2), s.positive(2), s.real(2), s.real(2))


def batch_norm_errors(s):
    yield ErrorSample(s.real(3, 2), error=ValueError, match="running_mean and running_var")
    yield ErrorSample(s.real(3, 2), s.real(2), error=ValueError, match="both")
    yield ErrorSample(s.real(1, 2), training=True, error=ValueError, match=r"Received: \(1, 2\)")
    yield ErrorSample(s.real(3), training=True, error=ValueError, match=r"Received: \(3,\)")
    bad = s.real(3)
    yield ErrorSample(s.real(3, 2), bad, bad, error=ValueError, match=r"2 channels.*\(3,\)")


def normalize(x, p=2.0, axis=1, eps=1e-12, dim=None):
    axis = axis if dim is None else dim
    norm = np.sum(np.abs(x) ** p, axis=axis, keepdims=True) ** (1 / p)
    return x / np.maximum(norm, eps)


def normalize_samples(s):
    yield Sample(s.away(2, 3))
    yield Sample(s.away(2, 3), p=1.0, axis=0)
    yield Sample(s.away(4), p=3, dim=-1)
    yield Sample(np.zeros((2, 2)), grad=0, label="zeros")


def normalize_errors(s):
    yield ErrorSample(s.real(3), error=IndexError, match="axis 1")
    yield ErrorSample(s.real(2, 3), p="two", error=TypeError, match="Received: 'two'")


def local_response_norm(x, size, alpha=1e-4, beta=0.75, k=1.0):
    out = np.empty_like(x)
    for channel in range(x.shape[1]):
        low, high = max(channel - size // 2, 0), channel + (size - 1) // 2 + 1
        total = np.sum(x[:, low:high] ** 2, axis=1)
        out[:, channel] = x[:, channel] / (k + alpha * total / size) ** beta
    return out


def local_response_samples(s):
    yield Sample(s.real(2, 5), 3, alpha=0.5)
    yield Sample(s.real(1, 4, 2), 2, alpha=0.3, beta=0.5, k=2.0)
    yield Sample(s.real(1, 2, 2, 2), 5)


def local_response_errors(s):
    yield ErrorSample(s.real(4), 2, error=ValueError, match=r"Received: \(4,\)")
    yield ErrorSample(s.real(2, 4), 0, error=ValueError, match="Received: 0")


# -- dropout: what is drawn is tested in test_random.py --------------------------------------------


def unchanged(x, p=0.5, training=True):
    return x


def dropout_samples(shape):
    def rule(s):
        yield Sample(s.real(*shape), training=False)
        yield Sample(s.real(*shape), p=0.0)
        yield Sample(s.real(*shape[1:]), 0.0, True)

    return rule


def dropout_errors(shape):
    def rule(s):
        yield ErrorSample(s.real(*shape), 1.5, error=ValueError, match="Received: 1.5")
        yield ErrorSample(s.real(*shape), "p", error=TypeError, match="Received: 'p'")
        yield ErrorSample(s.integers(*shape), error=TypeError, match="Received: int64")
        if len(shape) > 2 and shape[0] == 2:
            yield ErrorSample(s.real(3), error=ValueError, match=r"Received: \(3,\)")

    return rule


DROPOUT_SHAPES = {
    "dropout": (2, 3),
    "dropout1d": (2, 3, 1),
    "dropout2d": (2, 2, 2, 1),
    "dropout3d": (2, 2, 1, 2, 1),
    "alpha_dropout": (3, 2),
    "feature_alpha_dropout": (1, 2, 2),
}

# -- attention, gates, embeddings, distances -------------------------------------------------------


def attention(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    scale=None,
    enable_gqa=False,
):
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = np.repeat(key, times, axis=-3), np.repeat(value, times, axis=-3)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = np.einsum("...le,...se->...ls", query, key) * scale
    seen = np.tri(*scores.shape[-2:], dtype=bool) if is_causal else True
    if attn_mask is not None and attn_mask.dtype == bool:
        seen = seen & attn_mask
    elif attn_mask is not None:
        scores = scores + attn_mask
    e = np.where(seen, np.exp(scores), 0.0)
    total = e.sum(axis=-1, keepdims=True)
    return np.einsum("...ls,...sv->...lv", e / np.where(total == 0, 1.0, total), value)


def attention_samples(s):
    def qkv(*batch, length=2, keys=3):
        shapes = (length, 2), (keys, 2), (keys, 2)
        return [s.real(*batch, *shape) for shape in shapes]

    yield Sample(*qkv())
    yield Sample(*qkv(2), is_causal=True)
    yield Sample(*qkv(length=4), is_causal=True, scale=0.3)
    yield Sample(*qkv(), np.array([[True, False, True], [False] * 3]), label="a masked row")
    yield Sample(*qkv(1, 2), s.real(2, 3), label="float mask")
    yield Sample(*qkv(), np.array([[0.0, -np.inf, 1.0], [-np.inf] * 3]), grad=0, label="-inf mask")
    yield Sample(*qkv(), s.booleans(3), is_causal=True, label="both masks")
    yield Sample(s.real(4, 2, 2), s.real(2, 1, 2), s.real(2, 1, 2), enable_gqa=True)
    yield Sample(s.real(2, 1, 2, 2), s.real(3, 1, 2), s.real(3, 1, 2), label="broadcast batches")
    yield Sample(*qkv(keys=0), label="no keys")


def attention_errors(s):
    q, k, v = s.real(2, 3), s.real(4, 3), s.real(4, 5)
    yield ErrorSample(q, s.real(4, 2), v, error=ValueError, match=r"\(2, 3\) and \(4, 2\)")
    yield ErrorSample(q, k, s.real(3, 5), error=ValueError, match=r"\(4, 3\) and \(3, 5\)")
    yield ErrorSample(q[0], k, v, error=ValueError, match=r"query.*\(3,\)")
    yield ErrorSample(q, k, v, s.booleans(2, 3), error=ValueError, match=r"\(2, 4\).*\(2, 3\)")
    yield ErrorSample(q, k, v, s.integers(2, 4), error=TypeError, match="Received: int64")
    yield ErrorSample(q, k, v, dropout_p=2, error=ValueError, match="dropout_p.*Received: 2")
    heads = s.real(3, 2, 3), s.real(2, 4, 3), s.real(2, 4, 3)
    yield ErrorSample(*heads, enable_gqa=True, error=ValueError, match="3 query heads and 2")
    yield ErrorSample(*heads, error=ValueError, match=r"\(3,\) and \(2,\)")


def glu(x, axis=-1, dim=None):
    a, b = np.split(x, 2, axis=axis if dim is None else dim)
    return a * special.expit(b)


def glu_samples(s):
    yield Sample(s.real(4))
    yield Sample(s.real(2, 3), axis=0)
    yield Sample(s.real(2, 2, 3), dim=1)
    yield Sample(s.real(3, 0))


def glu_errors(s):
    yield ErrorSample(s.real(2, 3), error=ValueError, match=r"even.*\(2, 3\)")
    yield ErrorSample(s.real(2, 2), axis=2, error=IndexError, match="axis 2")


def embedding_bag(
    input,
    weight,
    offsets=None,
    mode="mean",
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    if input.ndim == 2:
        offsets = np.arange(input.shape[0]) * input.shape[1]
    elif include_last_offset:
        offsets = offsets[:-1]
    factors = np.ones(input.shape) if per_sample_weights is None else per_sample_weights
    bags = np.split(input.ravel(), offsets[1:])
    scales = np.split(factors.ravel(), offsets[1:])
    out = np.zeros((len(bags), weight.shape[1]))
    for i, (bag, scale) in enumerate(zip(bags, scales, strict=True)):
        skipped = padding_idx is not None and bag == padding_idx % len(weight)
        kept = np.broadcast_to(~np.asarray(skipped), bag.shape)
        if kept.any():
            out[i] = getattr(np, mode)(weight[bag[kept]] * scale[kept][:, None], axis=0)
    return out


def bag_samples(s):
    weight, index = s.distinct(5, 2), np.array([0, 2, 2, 4, 1])
    yield Sample(s.integers(2, 3), weight)
    yield Sample(s.integers(2, 3), weight, mode="max")
    yield Sample(index, weight, np.array([0, 2, 2]), mode="mean", label="an empty bag")
    yield Sample(index, weight, np.array([0, 3]), mode="max", padding_idx=2)
    yield Sample(index, weight, np.array([0, 3, 5]), include_last_offset=True, padding_idx=-1)
    yield Sample(index, weight, np.array([0, 1]), mode="sum", per_sample_weights=s.real(5))
    yield Sample(index[:0], weight, np.array([0]), mode="max", label="nothing at all")


def bag_errors(s):
    weight, index = s.real(5, 2), np.array([0, 2])
    yield ErrorSample(index, weight, error=ValueError, match="without offsets")
    yield ErrorSample(index, weight, np.array([1]), error=ValueError, match=r"Received: \[1\]")
    yield ErrorSample(index, weight, np.array([0]), mode="min", error=ValueError, match="'min'")
    yield ErrorSample(index * 1.0, weight, error=TypeError, match="Received: float64")
    one = np.array([0])
    yield ErrorSample(
        index, weight, one, per_sample_weights=s.real(2), error=ValueError, match="mode='sum'"
    )
    yield ErrorSample(index[None], weight, one, error=ValueError, match="offsets")


def cosine_similarity(x1, x2, axis=1, eps=1e-8, dim=None):
    axis = axis if dim is None else dim
    x1, x2 = np.broadcast_arrays(x1, x2)
    norms = [np.maximum(np.sqrt(np.sum(x * x, axis=axis)), eps) for x in (x1, x2)]
    return np.sum(x1 * x2, axis=axis) / (norms[0] * norms[1])


def cosine_samples(s):
    yield Sample(s.real(2, 3), s.real(2, 3))
    yield Sample(s.real(3), s.real(3), axis=0)
    yield Sample(s.real(2, 3), s.real(1, 3), dim=-1)
    yield Sample(s.real(2, 3), s.real(2, 1), label="broadcast vectors")
    yield Sample(np.zeros((1, 3)), s.real(1, 3), grad=0, label="zero vector")


def cosine_errors(s):
    yield ErrorSample(s.real(3), s.real(3), error=IndexError, match="axis 1")
    yield ErrorSample(s.real(2, 3), s.real(2, 4), error=ValueError, match=r"\(2, 3\) and \(2, 4\)")


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdims=False, keepdim=None):
    keepdims = keepdims if keepdim is None else keepdim
    return np.sum(np.abs(x1 - x2 + eps) ** p, axis=-1, keepdims=keepdims) ** (1 / p)


def distance_samples(s):
    yield Sample(s.real(2, 3), s.real(2, 3))
    yield Sample(s.real(2, 3), s.real(3), p=1.0, keepdim=True)
    yield Sample(s.real(3), s.real(3), 3, 0.1, True)


def distance_errors(s):
    yield ErrorSample(s.real(), s.real(3), error=ValueError, match=r"Received: \(\)")
    yield ErrorSample(s.real(3), s.real(3), p=None, error=TypeError, match="Received: None")


# -- operators ------------------------------------------------------------------------------------


def pick_class(x, target, axis=1, ignore_index=-100):
    ignored = target == ignore_index
    index = np.expand_dims(np.where(ignored, 0, target).astype(np.int64), axis)
    picked = np.take_along_axis(x, index, axis).squeeze(axis)
    return np.where(ignored, 0.0, picked)


def place_class(x, target, num_classes, axis=1, ignore_index=-100):
    hot = target[..., None] == np.where(
        np.arange(num_classes) == ignore_index, -1, np.arange(num_classes)
    )
    return np.moveaxis(hot * x[..., None], -1, axis)


REFERENCES = {
    "batch_norm": batch_norm,
    "cosine_similarity": cosine_similarity,
    "embedding_bag": embedding_bag,
    "glu": glu,
    "group_norm": group_norm,
    "gumbel_softmax": gumbel_softmax,
    "instance_norm": instance_norm,
    "layer_norm": layer_norm,
    "local_response_norm": local_response_norm,
    "log_softmax": log_softmax,
    "normalize": normalize,
    "pairwise_distance": pairwise_distance,
    "pick_class": pick_class,
    "place_class": place_class,
    "rms_norm": rms_norm,
    "scaled_dot_product_attention": attention,
    "softmax": softmax,
    "softmin": softmin,
    "stop_gradient": lambda x: x,
    "checkpoint_name": lambda x, name: x,
    **dict.fromkeys(DROPOUT_SHAPES, unchanged),
}

COMPOSITE_SAMPLES = {
    "batch_norm": batch_norm_samples,
    "cosine_similarity": cosine_samples,
    "embedding_bag": bag_samples,
    "glu": glu_samples,
    "group_norm": group_norm_samples,
    "gumbel_softmax": gumbel_samples,
    "instance_norm": instance_norm_samples,
    "layer_norm": layer_norm_samples,
    "local_response_norm": local_response_samples,
    "log_softmax": softmax_samples,
    "normalize": normalize_samples,
    "pairwise_distance": distance_samples,
    "rms_norm": rms_norm_samples,
    "scaled_dot_product_attention": attention_samples,
    "softmax": softmax_samples,
    "softmin": softmax_samples,
    **{name: dropout_samples(shape) for name, shape in DROPOUT_SHAPES.items()},
}

COMPOSITE_ERROR_SAMPLES = {
    "batch_norm": batch_norm_errors,
    "cosine_similarity": cosine_errors,
    "embedding_bag": bag_errors,
    "glu": glu_errors,
    "group_norm": group_norm_errors,
    "gumbel_softmax": gumbel_errors,
    "instance_norm": instance_norm_errors,
    "layer_norm": layer_norm_errors,
    "local_response_norm": local_response_errors,
    "log_softmax": softmax_errors,
    "normalize": normalize_errors,
    "pairwise_distance": distance_errors,
    "rms_norm": rms_norm_errors,
    "scaled_dot_product_attention": attention_errors,
    "softmax": softmax_errors,
    "softmin": softmax_errors,
    **{name: dropout_errors(shape) for name, shape in DROPOUT_SHAPES.items()},
}
