"""Losses. Where Chainer divides by other counts than PyTorch does, it is said here."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.op import F
from ...core.tensor import Tensor
from ..utils import WalkerAlias
from ..utils.type_check import expect
from ..variable import as_tensor, wrapped
from ._common import function


def _reduced(loss: Tensor, reduce: str, allowed: tuple[str, ...] = ("mean", "no")) -> Tensor:
    if reduce not in allowed:
        raise ValueError(f"only {allowed} are valid for 'reduce', but {reduce!r} is given")
    if reduce == "no":
        return loss
    return F.sum(loss) if reduce == "sum" else F.mean(loss)


@function
def softmax_cross_entropy(
    x: Tensor,
    t: Tensor,
    normalize: bool = True,
    cache_score: bool = True,
    class_weight: Any = None,
    ignore_label: int = -1,
    reduce: str = "mean",
    enable_double_backprop: bool = False,
    soft_target_loss: str = "cross-entropy",
) -> Tensor:
    """Return the cross entropy of softmax(x) and labels, or distributions, t.

    The mean is over labels that are not `ignore_label`, or over the batch without `normalize`.
    Class weights do not change what is divided by.
    """
    if t.dtype.kind == "f":
        expect(
            "softmax_cross_entropy",
            t.shape == x.shape,
            "labels of integers (t.dtype.kind == i), or distributions (t.shape == x.shape)",
            f"{t.dtype} of shape {t.shape} beside x of shape {x.shape}",
        )
        return _soft_targets(x, t, reduce, soft_target_loss)
    expect(
        "softmax_cross_entropy",
        x.ndim == t.ndim + 1,
        "x.ndim == t.ndim + 1",
        f"{x.ndim} != {t.ndim} + 1",
    )
    expect(
        "softmax_cross_entropy",
        t.shape == (x.shape[0], *x.shape[2:]),
        "t.shape == (x.shape[0],) + x.shape[2:]",
        f"{t.shape} != {(x.shape[0], *x.shape[2:])}",
    )
    losses = F.cross_entropy(x, t, ignore_index=ignore_label, reduction="none")
    if class_weight is not None:
        weights = F.take(class_weight, F.where(F.equal(t, ignore_label), F.zeros_like(t), t), 0)
        losses = losses * F.cast(weights, losses.dtype)
    if reduce == "no":
        return losses
    count: Any = _count(t, ignore_label, losses.dtype) if normalize else max(x.shape[0], 1)
    return F.sum(losses) / count


def _count(t: Tensor, ignore_label: int, dtype: Any) -> Tensor:
    """Return how many labels count, at least one."""
    return F.maximum(F.sum(F.cast(F.not_equal(t, ignore_label), dtype)), 1.0)


def _soft_targets(x: Tensor, t: Tensor, reduce: str, kind: str) -> Tensor:
    losses = -F.sum(t * F.log_softmax(x, 1), 1)
    if kind == "kl-divergence":
        losses = losses + F.sum(F.xlogy(t, t), 1)
    return _reduced(losses, reduce)


@function
def sigmoid_cross_entropy(
    x: Tensor, t: Tensor, normalize: bool = True, reduce: str = "mean"
) -> Tensor:
    """Return the cross entropy of sigmoid(x) and labels 0 and 1; labels -1 do not count."""
    expect(
        "sigmoid_cross_entropy", x.shape == t.shape, "x.shape == t.shape", f"{x.shape} != {t.shape}"
    )
    known = F.cast(F.not_equal(t, -1), x.dtype)
    losses = known * (F.softplus(x, 1.0, 1e9) - x * F.cast(t, x.dtype))
    if reduce == "no":
        return losses
    count: Any = F.maximum(F.sum(known), 1.0) if normalize else max(x.shape[0], 1)
    return F.sum(losses) / count


@function
def mean_squared_error(x0: Tensor, x1: Tensor) -> Tensor:
    """Return the mean of squared differences."""
    expect(
        "mean_squared_error",
        x0.shape == x1.shape,
        "x0.shape == x1.shape",
        f"{x0.shape} != {x1.shape}",
    )
    return F.mean(F.square(x0 - x1))


@function
def mean_absolute_error(x0: Tensor, x1: Tensor) -> Tensor:
    """Return the mean of absolute differences."""
    expect(
        "mean_absolute_error",
        x0.shape == x1.shape,
        "x0.shape == x1.shape",
        f"{x0.shape} != {x1.shape}",
    )
    return F.mean(F.abs(x0 - x1))


@function
def squared_error(x0: Tensor, x1: Tensor) -> Tensor:
    """Return squared differences."""
    return F.square(x0 - x1)


@function
def absolute_error(x0: Tensor, x1: Tensor) -> Tensor:
    """Return absolute differences."""
    return F.abs(x0 - x1)


@function
def huber_loss(x: Tensor, t: Tensor, delta: float, reduce: str = "sum_along_second_axis") -> Tensor:
    """Return squares of small differences and sizes of large ones, summed over the second axis."""
    gap = F.abs(x - t)
    losses = F.where(gap <= delta, F.square(gap) * 0.5, delta * (gap - 0.5 * delta))
    if reduce not in ("sum_along_second_axis", "no"):
        raise ValueError(f"'reduce' must be 'sum_along_second_axis' or 'no', not {reduce!r}")
    return losses if reduce == "no" else F.sum(losses, 1)


@function
def hinge(x: Tensor, t: Tensor, norm: str = "L1", reduce: str = "mean") -> Tensor:
    """Return the hinge loss of one class against the others, summed over classes."""
    if norm not in ("L1", "L2"):
        raise NotImplementedError("norm should be either 'L1' or 'L2'")
    sign = 1 - 2 * F.one_hot(t, x.shape[1])
    losses = F.relu(1 + F.cast(sign, x.dtype) * x)
    losses = F.square(losses) if norm == "L2" else losses
    return losses if reduce == "no" else F.sum(losses) / x.shape[0]


@function
def contrastive(
    x0: Tensor, x1: Tensor, y: Tensor, margin: float = 1, reduce: str = "mean"
) -> Tensor:
    """Return the contrastive loss of pairs: y says whether the two belong together."""
    squares = F.sum(F.square(x0 - x1), 1)
    away = F.square(F.relu(margin - F.sqrt(squares)))
    same = F.cast(y, x0.dtype)
    return _reduced((same * squares + (1 - same) * away) * 0.5, reduce)


@function
def triplet(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 0.2, reduce: str = "mean"
) -> Tensor:
    """Return how much farther a positive is than a negative, plus a margin, where above zero."""
    near, far = F.sum(F.square(anchor - positive), 1), F.sum(F.square(anchor - negative), 1)
    return _reduced(F.relu(near - far + margin), reduce)


@function
def bernoulli_nll(x: Tensor, y: Tensor, reduce: str = "sum") -> Tensor:
    """Return the negative log-likelihood of x under Bernoulli distributions of logits y."""
    return _reduced(F.softplus(y, 1.0, 1e9) - x * y, reduce, ("sum", "mean", "no"))


@function
def gaussian_kl_divergence(mean: Tensor, ln_var: Tensor, reduce: str = "sum") -> Tensor:
    """Return the divergence of Gaussians from the standard one."""
    losses = (F.square(mean) + F.exp(ln_var) - ln_var - 1) * 0.5
    return _reduced(losses, reduce, ("sum", "mean", "no"))


@function
def gaussian_nll(x: Tensor, mean: Tensor, ln_var: Tensor, reduce: str = "sum") -> Tensor:
    """Return the negative log-likelihood of x under Gaussians."""
    gap = F.square(x - mean) * F.exp(-ln_var) * 0.5
    return _reduced(gap + (ln_var + np.log(2 * np.pi)) * 0.5, reduce, ("sum", "mean", "no"))


@function
def cross_covariance(y: Tensor, z: Tensor, reduce: str = "half_squared_sum") -> Tensor:
    """Return the cross covariance of two sets of units, or half the sum of its squares."""
    found = F.matmul((y - F.mean(y, 0)).T, z - F.mean(z, 0)) / y.shape[0]
    return found if reduce == "no" else F.sum(F.square(found)) * 0.5


@function
def decov(h: Tensor, reduce: str = "half_squared_sum") -> Tensor:
    """Return covariances of units without their variances, or half the sum of their squares."""
    centred = h - F.mean(h, 0)
    found = F.matmul(centred.T, centred) / h.shape[0]
    found = found * F.cast(1 - np.eye(h.shape[1]), h.dtype)
    return found if reduce == "no" else F.sum(F.square(found)) * 0.5


@function
def connectionist_temporal_classification(
    x: Any,
    t: Tensor,
    blank_symbol: int,
    input_length: Any = None,
    label_length: Any = None,
    reduce: str = "mean",
) -> Tensor:
    """Return the CTC loss of scores, a variable for each time step; the mean is over the batch."""
    scores = F.log_softmax(F.stack(list(x)), 2)
    steps, batch = scores.shape[:2]
    inputs = np.full(batch, steps) if input_length is None else _numbers(input_length)
    labels = np.full(batch, t.shape[1]) if label_length is None else _numbers(label_length)
    losses = F.ctc_loss(
        scores,
        F.cast(t, np.int64),
        as_tensor(inputs.astype(np.int64)),
        as_tensor(labels.astype(np.int64)),
        blank=blank_symbol,
        reduction="none",
    )
    return _reduced(losses, reduce)


def _numbers(value: Any) -> Any:
    return value.numpy() if isinstance(value, Tensor) else np.asarray(value)


@function
def negative_sampling(
    x: Tensor, t: Tensor, W: Tensor, sampler: Any, sample_size: int, reduce: str = "sum"
) -> Tensor:
    """Return the loss of telling the words t from words that are drawn; -1 does not count."""
    drawn = F.cast(_sampled(sampler, (t.shape[0], sample_size)), np.int64)
    known = F.cast(F.not_equal(t, -1), x.dtype)
    right = F.where(F.equal(t, -1), F.zeros_like(t), t)
    rows = F.embedding(W, F.concat([F.expand_dims(F.cast(right, np.int64), 1), drawn], 1))
    scores = F.einsum("nsd,nd->ns", rows, x)
    signs = np.ones(1 + sample_size, x.dtype)
    signs[0] = -1
    losses = F.sum(F.softplus(scores * signs, 1.0, 1e9), 1) * known
    return _reduced(losses, reduce, ("sum", "no"))


def _sampled(sampler: Any, shape: tuple[Any, ...]) -> Tensor:
    """Return what a sampler draws; Chainer's own draws in the graph of a step."""
    is_own = getattr(sampler, "__func__", None) is WalkerAlias.sample
    return as_tensor((sampler.__self__.draw if is_own else sampler)(shape))


@function
def crf1d(cost: Tensor, xs: Any, ys: Any, reduce: str = "mean") -> Tensor:
    """Return the negative log-likelihood of labels under a linear-chain CRF.

    xs and ys are lists over time; later entries may have fewer rows, of sequences that go on.
    """
    alpha, score = xs[0], _chosen(xs[0], ys[0])
    ended_alpha, ended_score, last = [], [], ys[0]
    for x, y in zip(xs[1:], ys[1:], strict=True):
        rows = x.shape[0]
        if rows < alpha.shape[0]:
            ended_alpha.append(alpha[rows:])
            ended_score.append(score[rows:])
            alpha, score, last = alpha[:rows], score[:rows], last[:rows]
        alpha = F.logsumexp(F.expand_dims(alpha, 2) + cost, 1) + x
        score = score + _chosen(x, y) + F.reshape(cost[last, y], (rows,))
        last = y
    alphas = F.concat([alpha, *reversed(ended_alpha)], 0)
    scores = F.concat([score, *reversed(ended_score)], 0)
    return _reduced(F.logsumexp(alphas, 1) - scores, reduce)


def _chosen(x: Tensor, y: Tensor) -> Tensor:
    return F.reshape(F.take_along_axis(x, F.expand_dims(F.cast(y, np.int64), 1), 1), (x.shape[0],))


def argmax_crf1d(cost: Any, xs: Any) -> tuple[Any, list[Any]]:
    """Return the best scores of a linear-chain CRF, and the labels that have them, by time."""
    weights = as_tensor(cost).detach().numpy()
    steps = [as_tensor(x).detach().numpy() for x in xs]
    best, backs = steps[0], []
    kept: list[Any] = []  # scores of sequences that have ended, the longest last
    for x in steps[1:]:
        rows = x.shape[0]
        kept.append(best[rows:])
        paths = best[:rows, :, None] + weights
        backs.append(paths.argmax(1))
        best = paths.max(1) + x
    labels = [best.argmax(1)]
    for back, ended in zip(reversed(backs), reversed(kept), strict=True):
        before = np.take_along_axis(back, labels[0][: back.shape[0], None], 1)[:, 0]
        labels.insert(0, np.concatenate([before, ended.argmax(1)]))
    path = [label.astype(np.int32) for label in labels]
    return wrapped(_path_score(as_tensor(cost), [as_tensor(x) for x in xs], path)), path


def _path_score(cost: Tensor, xs: list[Tensor], path: list[Any]) -> Tensor:
    """Return the scores of given labels: those of steps and of transitions between them."""
    score, ended = _chosen(xs[0], as_tensor(path[0])), []
    for x, before, label in zip(xs[1:], path, path[1:], strict=False):
        rows = x.shape[0]
        ended.append(score[rows:])
        step = _chosen(x, as_tensor(label)) + cost[as_tensor(before[:rows]), as_tensor(label)]
        score = score[:rows] + step
    return F.concat([score, *reversed(ended)], 0)
