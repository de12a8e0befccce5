"""Cross entropies, what is among the largest, and losses by sampled classes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.op import F
from ...ops.creation import tensor as make_tensor
from ...ops.random import draw
from ..indexing import embedding_lookup
from ..math_ops import cast
from ..random_ops import RandomOperation
from ..recording import Tensor, convert_to_tensor, finished, is_tensor, known_int, pair, record


def _named(what: str, sentinel: Any, labels: Any, logits: Any) -> None:
    if sentinel is not None:
        raise ValueError(f"Only call `{what}` with named arguments (labels=..., logits=..., ...)")
    if labels is None or logits is None:
        raise ValueError("Both labels and logits must be provided.")


def softmax_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: Any = None,
    logits: Any = None,
    dim: int = -1,
    name: str | None = None,
    axis: Any = None,
) -> Tensor:
    """Return the cross entropy of each example between probabilities and logits."""
    _named("softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    place = dim if axis is None else axis
    x = convert_to_tensor(logits)
    p = convert_to_tensor(labels, None if is_tensor(labels) else x.dtype)
    p = cast(p, x.dtype) if p.dtype != x.dtype else p

    def compute(x: Any, p: Any) -> Any:
        if (
            x.ndim == p.ndim
            and x.shape != p.shape
            and all(isinstance(s, int) for s in (*x.shape, *p.shape))
        ):
            raise ValueError(
                f"logits and labels must be broadcastable: logits_size={list(x.shape)} "
                f"labels_size={list(p.shape)}"
            )
        return -F.sum(p * F.log_softmax(x, place), axis=place)

    made: Tensor = record(
        "SoftmaxCrossEntropyWithLogits",
        compute,
        [x, p],
        name=name or "softmax_cross_entropy_with_logits",
    )
    return made


softmax_cross_entropy_with_logits_v2 = softmax_cross_entropy_with_logits


_NO_LABEL = -(2**63)  # TensorFlow leaves no label out: one below 0 is an error


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Return the cross entropy of each example between a class and logits."""
    _named("sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    x, i = convert_to_tensor(logits), convert_to_tensor(labels)
    sizes = x.shape.ndims, i.shape.ndims
    if None not in sizes and sizes[0] != sizes[1] + 1:  # type: ignore[operator]
        raise ValueError(
            f"Rank mismatch: Rank of labels (received {sizes[1]}) should equal rank of logits "
            f"minus 1 (received {sizes[0]})."
        )

    def compute(x: Any, i: Any) -> Any:
        rows, labels = F.reshape(x, (-1, x.shape[-1])), F.reshape(F.cast(i, "int64"), (-1,))
        found = F.cross_entropy(rows, labels, ignore_index=_NO_LABEL, reduction="none")
        return F.reshape(found, i.shape)

    made: Tensor = record(
        "SparseSoftmaxCrossEntropyWithLogits",
        compute,
        [x, i],
        name=name or "SparseSoftmaxCrossEntropyWithLogits",
    )
    return made


def sigmoid_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Return the cross entropy of each element between a probability and a logit."""
    _named("sigmoid_cross_entropy_with_logits", _sentinel, labels, logits)
    x = convert_to_tensor(logits)
    z = convert_to_tensor(labels, None if is_tensor(labels) else x.dtype)
    if not x.shape.is_compatible_with(z.shape):
        raise ValueError(f"logits and labels must have the same shape ({x.shape} vs {z.shape})")
    made: Tensor = record(
        "SigmoidCrossEntropyWithLogits",
        _logistic,
        pair("logistic_loss", x, z),
        name=name or "logistic_loss",
    )
    return made


def _logistic(x: Any, z: Any) -> Any:
    return F.relu(x) - x * z + F.log1p(F.exp(-F.abs(x)))


def weighted_cross_entropy_with_logits(
    labels: Any = None,
    logits: Any = None,
    pos_weight: Any = None,
    name: str | None = None,
    targets: Any = None,
) -> Tensor:
    """Return the cross entropy with a weight for positive examples."""
    x = convert_to_tensor(logits)
    z = convert_to_tensor(
        labels if targets is None else targets, None if is_tensor(labels) else x.dtype
    )

    def compute(x: Any, z: Any, w: Any) -> Any:
        weight = 1 + (w - 1) * z
        return (1 - z) * x + weight * (F.log1p(F.exp(-F.abs(x))) + F.relu(-x))

    made: Tensor = record(
        "WeightedCrossEntropy",
        compute,
        [x, z, convert_to_tensor(pos_weight, x.dtype)],
        name=name or "logistic_loss",
    )
    return made


def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """Return exp(log_input) - log_input * targets."""
    made: Tensor = record(
        "LogPoissonLoss",
        lambda c, z: F.exp(c) - c * z,
        pair("log_poisson_loss", log_input, targets),
        name=name,
    )
    return made


def top_k(
    input: Any, k: Any = 1, sorted: bool = True, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the largest elements along the last axis, and where they are."""
    count = known_int(k, "k")

    def compute(x: Any) -> Any:
        values, places = F.topk(x, count)
        return values, F.cast(places, np.int32)

    values, places = record("TopKV2", compute, [input], outputs=2, name=name)
    return values, places


def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Tensor:
    """Return whether the class of each example is among the k most likely."""
    count = known_int(k, "k")

    def compute(x: Any, i: Any) -> Any:
        own = F.take_along_axis(x, F.cast(F.expand_dims(i, -1), "int64"), -1)
        return F.sum(F.cast(x > own, np.int32), axis=-1) < count

    made: Tensor = record(
        "InTopK", compute, [predictions, targets], name=name, dtype="bool", differentiable=False
    )
    return made


# -- by sampled classes ----------------------------------------------------------------------------


def _log_uniform(count: int, classes: int, true: Any, dtype: Any, generator: Any) -> Any:
    """Return classes drawn by P(k) = log((k + 2) / (k + 1)) / log(classes + 1), and how often."""
    u = draw.rand((count,), dtype="float64", generator=generator)
    drawn = F.cast(F.clip(F.floor(F.exp(u * math.log(classes + 1))) - 1, 0, classes - 1), "int64")
    return drawn, _expected(true, classes, count, dtype), _expected(drawn, classes, count, dtype)


def _expected(ids: Any, classes: int, count: int, dtype: Any) -> Any:
    k = F.cast(ids, dtype)
    return F.log((k + 2) / (k + 1)) / math.log(classes + 1) * count


def log_uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: Any = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return classes drawn with replacement, frequent ones (small numbers) more often."""

    def draws(true: Any, *, generator: Any) -> Any:
        return _log_uniform(num_sampled, range_max, true, np.float32, generator)

    operation = RandomOperation(
        "LogUniformCandidateSampler", draws, [true_classes], seed, name=name, differentiable=False
    )
    ids, expected_true, expected_sampled = finished(operation, outputs=3)
    return ids, expected_true, expected_sampled


def _sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    remove_hits: bool,
) -> tuple[Tensor, Tensor]:
    if num_true != 1:
        raise ValueError("nce_loss and sampled_softmax_loss: num_true must be 1")
    true = cast(labels, "int64")
    ids, expected_true, expected = sampled_values or log_uniform_candidate_sampler(
        true, num_true, num_sampled, True, num_classes
    )
    tables = [embedding_lookup(t, i) for t in (weights, biases) for i in (true, ids)]

    def compute(
        x: Any, t: Any, s: Any, et: Any, es: Any, wt: Any, ws: Any, bt: Any, bs: Any
    ) -> Any:
        depth = x.shape[-1]
        own = F.sum(x * F.reshape(wt, (-1, depth)), axis=1, keepdims=True) + F.reshape(bt, (-1, 1))
        others = F.matmul(x, F.matrix_transpose(ws)) + bs
        own, others = own - F.log(F.reshape(et, (-1, 1))), others - F.log(es)
        if remove_hits:
            hit = F.reshape(t, (-1, 1)) == F.reshape(s, (1, -1))
            others = others + F.cast(hit, x.dtype) * -1e37
        return F.concat([own, others], 1)

    x = convert_to_tensor(inputs)
    logits = record("SampledLogits", compute, [x, true, ids, expected_true, expected, *tables])
    targets = record("SampledLabels", _first_is_true, [logits], differentiable=False)
    return logits, targets


def _first_is_true(logits: Any) -> Any:
    first = make_tensor(np.eye(1, logits.shape[1], dtype=logits.dtype))
    return F.broadcast_to(first, logits.shape)


def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str = "nce_loss",
) -> Tensor:
    """Return the noise-contrastive loss of each example."""
    logits, targets = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
    )
    made: Tensor = record(
        "NceLoss", lambda x, z: F.sum(_logistic(x, z), axis=1), [logits, targets], name=name
    )
    return made


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str = "sampled_softmax_loss",
    seed: Any = None,
) -> Tensor:
    """Return the softmax loss of each example over some classes that are drawn."""
    logits, targets = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
    )
    return softmax_cross_entropy_with_logits(labels=targets, logits=logits, name=name)
