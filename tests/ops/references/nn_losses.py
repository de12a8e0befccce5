"""References for losses: per-sample loops and formulas written out in NumPy and SciPy."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy import special, stats

from weft.core.samples import ErrorSample, Sample


def reduced(loss, reduction):
    """Reduce a loss."""
    if reduction == "mean":
        return np.sum(loss) / np.size(loss)
    return np.sum(loss) if reduction == "sum" else np.asarray(loss)


def elementwise(formula):
    """Return the reference of a loss that is a formula of each element."""

    def loss(*args, reduction="mean", **options):
        return reduced(formula(*args, **options), reduction)

    return loss


def every_reduction(*args, **options):
    """Yield a sample for each reduction."""
    for reduction in ("mean", "sum", "none"):
        yield Sample(*args, reduction=reduction, **options)


def pair_errors(s):
    """Yield bad arguments of losses of two tensors of one shape."""
    yield ErrorSample(s.real(3, 1), s.real(3), error=ValueError, match=r"\(3, 1\) and \(3,\)")
    yield ErrorSample(s.real(3), s.real(2), error=ValueError, match=r"\(3,\) and \(2,\)")
    yield ErrorSample(s.real(3), s.real(3), reduction="avg", error=ValueError, match="'avg'")
    yield ErrorSample(s.real(3), "x", error=TypeError, match="Received: str")


# -- real targets ---------------------------------------------------------------------------------


def huber(x, y, delta=1.0):
    d = np.abs(x - y)
    return np.where(d <= delta, 0.5 * d**2, delta * (d - 0.5 * delta))


def smooth_l1(x, y, beta=1.0):
    d = np.abs(x - y)
    return huber(x, y, beta) / beta if beta else d


def poisson(x, y, log_input=True, full=False, eps=1e-8):
    loss = np.exp(x) - y * x if log_input else x - y * np.log(x + eps)
    n = np.maximum(y, 1.0)
    stirling = n * np.log(n) - n + 0.5 * np.log(2 * np.pi * n)
    return loss + np.where(y > 1, stirling, 0.0) if full else loss


def gaussian(x, y, var, full=False, eps=1e-6):
    var = np.asarray(var)
    var = var[..., None] if var.ndim == x.ndim - 1 and var.ndim else var
    scale = np.sqrt(np.maximum(var, eps))
    return -stats.norm.logpdf(y, x, scale) - (0 if full else 0.5 * math.log(2 * math.pi))


def kl_div(input, target, reduction="mean", log_target=False):
    target = np.exp(target) if log_target else target
    loss = special.rel_entr(target, np.exp(input))
    return loss.sum() / len(loss) if reduction == "batchmean" else reduced(loss, reduction)


def pair_samples(s):
    yield from every_reduction(s.distinct(2, 3), s.distinct(3, 2).T)
    yield Sample(s.real(), s.real())
    yield Sample(s.real(0), s.real(0), label="empty")


def huber_samples(s):
    yield from every_reduction(s.distinct(5), s.distinct(5), delta=0.7)
    yield Sample(np.array([0.0, 1.0]), np.array([0.0, 1.0]), label="no difference")
    yield Sample(np.array([2.0]), np.array([1.0]), grad=0, label="at delta")


def smooth_l1_samples(s):
    yield from every_reduction(s.distinct(5), s.distinct(5), beta=0.7)
    yield Sample(s.real(3), s.real(3), beta=0)


def poisson_samples(s):
    counts = np.array([0.0, 1.5, 3.0])
    yield from every_reduction(s.real(3), counts)
    yield Sample(s.positive(3), counts, log_input=False)
    yield Sample(s.real(3), counts, full=True)


def gaussian_samples(s):
    yield from every_reduction(s.real(2, 3), s.real(2, 3), s.positive(2, 3))
    yield Sample(s.real(2, 3), s.real(2, 3), s.positive(2), full=True)
    yield Sample(s.real(2, 3), s.real(2, 3), s.positive(2, 1))
    yield Sample(s.real(3), s.real(3), 2.0)
    yield Sample(s.real(3), s.real(3), np.zeros(3), grad=0, eps=0.5, label="zero variance")


def gaussian_errors(s):
    x, y = s.real(2, 3), s.real(2, 3)
    yield ErrorSample(x, y[0], x, error=ValueError, match=r"\(2, 3\) and \(3,\)")
    yield ErrorSample(x, y, -np.ones((2, 3)), error=ValueError, match="Received: -1.0")
    yield ErrorSample(x, y, np.ones((3, 2)), error=ValueError, match=r"Received: \(3, 2\)")
    yield ErrorSample(x, y, np.ones((2, 3)), eps=0, error=ValueError, match="Received: 0")


def kl_samples(s):
    logs = special.log_softmax(s.real(2, 3), axis=1)
    probs = special.softmax(s.real(2, 3, low=0.0, high=1.0), axis=1)
    for reduction in ("mean", "sum", "none", "batchmean"):
        yield Sample(logs, probs, reduction=reduction)
    yield Sample(logs, np.log(probs), log_target=True)
    yield Sample(logs, np.eye(3)[:2], grad=0, label="zero probabilities")


# -- yes or no ------------------------------------------------------------------------------------


def bce(p, y, weight=None):
    p, y = np.asarray(p, float), np.asarray(y, float)
    yes, no = np.maximum(np.log(p), -100), np.maximum(np.log(1 - p), -100)
    return -(y * yes + (1 - y) * no) * (1 if weight is None else weight)


def bce_with_logits(x, y, weight=None, pos_weight=None):
    positive = 1 if pos_weight is None else pos_weight
    terms = positive * y * np.logaddexp(0, -x) + (1 - y) * np.logaddexp(0, x)
    return terms * (1 if weight is None else weight)


def focal(x, y, alpha=0.25, gamma=2.0, reduction="none"):
    p = special.expit(x)
    of_target = p * y + (1 - p) * (1 - y)
    share = alpha * y + (1 - alpha) * (1 - y) if alpha >= 0 else 1
    return reduced(share * (1 - of_target) ** gamma * bce_with_logits(x, y), reduction)


def multilabel_soft_margin(x, y, weight=None):
    return bce_with_logits(x, y, weight).mean(axis=-1)


def bce_samples(s):
    p, y = s.real(2, 3, low=0.1, high=0.9), s.real(2, 3, low=0.0, high=1.0)
    yield from every_reduction(p, y)
    yield Sample(p, y, s.positive(3))
    yield Sample(p, s.integers(2, 3, high=2), grad=1, label="integer targets")
    yield Sample(np.array([0.0, 1.0]), np.array([1.0, 1.0]), grad=0, label="certain")


def bce_errors(s):
    yield from pair_errors(s)
    bad = np.array([0.5, 1.5])
    yield ErrorSample(bad, bad, error=ValueError, match="from 0.5 to 1.5")
    yield ErrorSample(bad / 2, bad, s.real(2, 2), error=ValueError, match=r"weight.*\(2, 2\)")


def logits_samples(s):
    x, y = s.real(2, 3), s.real(2, 3, low=0.0, high=1.0)
    yield from every_reduction(x, y)
    yield Sample(x, y, s.positive(2, 1), pos_weight=s.positive(3))
    yield Sample(x, s.integers(2, 3, high=2), grad=1, label="integer targets")
    yield Sample(np.array([1e4, -1e4, 0.0]), np.array([0.0, 0.0, 1.0]), label="huge logits")


def focal_samples(s):
    x, y = s.real(5), s.real(5, low=0.1, high=0.9)
    yield from every_reduction(x, y)
    yield Sample(x, np.round(y), alpha=-1, gamma=0.5, grad=1)


def focal_errors(s):
    yield from pair_errors(s)
    yield ErrorSample(s.real(3), s.real(3), alpha=2, error=ValueError, match="Received: 2")


def multilabel_soft_samples(s):
    yield from every_reduction(s.real(2, 3), s.real(2, 3, low=0.0, high=1.0))
    yield Sample(s.real(3), np.array([0.0, 1.0, 1.0]), s.positive(3))


# -- margins --------------------------------------------------------------------------------------


def signs(s, *shape):
    return s.integers(*shape, high=2) * 2 - 1


def multi_margin(x, y, p=1, margin=1.0, weight=None, reduction="mean"):
    rows, targets = np.atleast_2d(x), np.atleast_1d(y)
    losses = []
    for row, target in zip(rows, targets, strict=True):
        terms = [max(0.0, margin - row[target] + v) ** p for v in np.delete(row, target)]
        scale = 1 if weight is None else weight[target]
        losses.append(scale * sum(terms) / len(row))
    return reduced(np.array(losses).reshape(np.shape(y)), reduction)


def multilabel_margin(x, y, reduction="mean"):
    losses = []
    for row, listed in zip(np.atleast_2d(x), np.atleast_2d(y), strict=True):
        targets = list(itertools.takewhile(lambda t: t >= 0, listed))
        others = [i for i in range(len(row)) if i not in targets]
        pairs = itertools.product(targets, others)
        losses.append(sum(max(0.0, 1 - row[j] + row[i]) for j, i in pairs) / len(row))
    return reduced(np.array(losses).reshape(x.shape[:-1]), reduction)


def cosine_embedding(x1, x2, y, margin=0.0):
    cos = np.sum(x1 * x2, -1) / (np.linalg.norm(x1, axis=-1) * np.linalg.norm(x2, axis=-1))
    return np.where(y == 1, 1 - cos, np.maximum(0, cos - margin))


def triplet(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False):
    def distance(a, b):
        return np.linalg.norm(a - b + eps, ord=p, axis=-1)

    far = distance(anchor, negative)
    far = np.minimum(far, distance(positive, negative)) if swap else far
    return np.maximum(0, margin + distance(anchor, positive) - far)


def sign_samples(s):
    yield from every_reduction(s.real(4), signs(s, 4))
    yield Sample(s.real(2, 3), signs(s, 2, 3) * 1.0, grad=0, label="float targets")


def margin_samples(s):
    yield from sign_samples(s)
    yield Sample(s.real(4), signs(s, 4), margin=0.3)


def ranking_samples(s):
    yield from every_reduction(s.real(4), s.real(4), signs(s, 4))
    yield Sample(s.real(4), s.real(4), signs(s, 4), margin=0.5)


def ranking_errors(s):
    x = s.real(3)
    yield ErrorSample(x, s.real(3, 1), x, error=ValueError, match=r"\(3,\) and \(3, 1\)")
    yield ErrorSample(x, x, s.real(3, 1), error=ValueError, match="input1 and target")


def multi_margin_samples(s):
    yield from every_reduction(s.real(3, 4), s.integers(3, high=4))
    yield Sample(s.real(2, 3), s.integers(2, high=3), p=2, margin=0.5, weight=s.positive(3))
    yield Sample(s.real(4), s.integers(high=4), reduction="none")


def multi_margin_errors(s):
    x, y = s.real(2, 3), np.array([0, 1])
    yield ErrorSample(x, y * 1.0, error=TypeError, match="Received: float64")
    yield ErrorSample(x, y + 2, error=IndexError, match="target 3 .* 3 classes")
    yield ErrorSample(x, y, p=3, error=ValueError, match="Received: 3")
    yield ErrorSample(x, y[:1], error=ValueError, match=r"\(2,\).*\(1,\)")
    yield ErrorSample(x, y, weight=s.real(2), error=ValueError, match="3 classes")


def multilabel_margin_samples(s):
    yield from every_reduction(s.real(2, 4), np.array([[3, 0, -1, 1], [1, 1, 2, -1]]))
    yield Sample(s.real(3), np.array([-1, 0, 1]), label="no target")
    yield Sample(s.real(3), np.array([2, 0, 1]), label="all classes")


def multilabel_margin_errors(s):
    x, y = s.real(3), np.array([0, 3, -1])
    yield ErrorSample(x, y, error=IndexError, match="target 3 .* 3 classes")
    yield ErrorSample(x, y - 1.0, error=TypeError, match="Received: float64")
    yield ErrorSample(x, y[:2], error=ValueError, match=r"\(3,\) and \(2,\)")
    yield ErrorSample(s.real(1, 2, 3), y, error=ValueError, match=r"\(1, 2, 3\)")


def cosine_embedding_samples(s):
    yield from every_reduction(s.real(3, 2), s.real(3, 2), np.array([1, -1, -1]))
    yield Sample(s.real(3), s.real(3), np.array(-1), margin=-0.5)


def cosine_embedding_errors(s):
    x = s.real(3, 2)
    yield ErrorSample(x, s.real(3, 4), signs(s, 3), error=ValueError, match=r"\(3, 4\)")
    yield ErrorSample(x, x, signs(s, 3, 1), error=ValueError, match=r"\(3,\) and \(3, 1\)")


def triplet_samples(s):
    triple = s.real(3, 2), s.real(3, 2), s.real(3, 2)
    yield from every_reduction(*triple)
    yield Sample(*triple, margin=3.0, p=1, swap=True)


def triplet_errors(s):
    x = s.real(3, 2)
    yield ErrorSample(x, x, s.real(3, 3), error=ValueError, match=r"anchor and negative.*\(3, 3\)")
    yield ErrorSample(x, s.real(2), x, error=ValueError, match=r"anchor and positive.*\(2,\)")


# -- classes --------------------------------------------------------------------------------------


def positions(x, y):
    """Yield the logits and the target of each position."""
    logits = np.moveaxis(np.atleast_2d(x), 1, -1)
    logits = logits.reshape(-1, logits.shape[-1])
    return zip(logits, np.reshape(y, -1), strict=True)


def class_losses(log_probs, y, weight, ignore_index, smoothing):
    """Return loss and weight of each position, by the definition with smoothed one-hot targets."""
    classes = log_probs.shape[1 if log_probs.ndim > 1 else 0]
    weight = np.ones(classes) if weight is None else weight
    losses, weights = [], []
    for row, target in positions(log_probs, y):
        kept = target != ignore_index
        hot = (1 - smoothing) * (np.arange(classes) == target) + smoothing / classes
        used = hot > 0  # 0 * -inf
        losses.append(-np.sum((hot * weight * row)[used]) if kept else 0.0)
        weights.append(weight[target] if kept else 0.0)
    return np.array(losses).reshape(np.shape(y)), np.array(weights)


def reduce_classes(losses, weights, reduction):
    return losses.sum() / weights.sum() if reduction == "mean" else reduced(losses, reduction)


def nll(input, target, weight=None, ignore_index=-100, reduction="mean"):
    return reduce_classes(*class_losses(input, target, weight, ignore_index, 0.0), reduction)


def cross_entropy(
    input, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0
):
    axis = 1 if input.ndim > 1 else 0
    log_probs = special.log_softmax(input, axis=axis)
    if target.dtype.kind == "f":
        classes = input.shape[axis]
        mixed = (1 - label_smoothing) * target + label_smoothing / classes
        shape = [-1 if i == axis else 1 for i in range(input.ndim)]
        scaled = mixed * (1 if weight is None else weight.reshape(shape))
        return reduced(-np.sum(scaled * log_probs, axis=axis), reduction)
    losses = class_losses(log_probs, target, weight, ignore_index, label_smoothing)
    return reduce_classes(*losses, reduction)


def nll_samples(s):
    yield from every_reduction(s.real(3, 4), s.integers(3, high=4))
    for reduction in ("mean", "sum", "none"):
        ignored = np.array([1, -100, 0])
        yield Sample(s.real(3, 4), ignored, s.positive(4), reduction=reduction)
    yield Sample(s.real(4), s.integers(high=4))
    yield Sample(s.real(2, 3, 2), s.integers(2, 2, high=3, dtype=np.uint8), s.positive(3))
    yield Sample(s.real(2, 3), np.array([2, 0]), ignore_index=2)


def cross_entropy_samples(s):
    yield from nll_samples(s)
    for reduction in ("mean", "sum", "none"):
        target = np.array([1, -100, 0])
        options = {"label_smoothing": 0.2, "reduction": reduction}
        yield Sample(s.real(3, 4), target, **options)
        yield Sample(s.real(3, 4), target, s.positive(4), **options)
        yield Sample(s.real(3, 4), special.softmax(s.real(3, 4), axis=1), **options)
    yield Sample(s.real(4), special.softmax(s.real(4)), s.positive(4))
    yield Sample(s.real(2, 3, 2), special.softmax(s.real(2, 3, 2), axis=1), s.positive(3))
    yield Sample(np.array([[1e4, -1e4], [-1e4, 1e4]]), np.array([0, 0]), label="huge logits")
    yield Sample(s.real(2, 3), np.array([-100, -100]), grad=0, label="all ignored")
    masked = np.array([[0.0, -np.inf, 1.0]])
    yield Sample(masked, np.array([2]), grad=0, label="-inf logit")


def nll_errors(s):
    x, y = s.real(2, 3), np.array([0, 1])
    yield ErrorSample(x, y + 2, error=IndexError, match=r"target 3 at .*3 classes")
    yield ErrorSample(x, y - 1, error=IndexError, match=r"target -1 .*ignore_index=-100")
    yield ErrorSample(x, y[:1], error=ValueError, match=r"\(2,\).*Received: \(1,\)")
    yield ErrorSample(x, y, s.real(2), error=ValueError, match="3 classes")
    yield ErrorSample(x, y, reduction="all", error=ValueError, match="Received: 'all'")
    yield ErrorSample(s.integers(2, 3), y, error=TypeError, match="Received: int64")
    yield ErrorSample(s.real(), y, error=ValueError, match=r"Received: \(\)")
    yield ErrorSample(x, y > 0, error=TypeError, match="Received: bool")


def cross_entropy_errors(s):
    yield from nll_errors(s)
    x = s.real(2, 3)
    yield ErrorSample(x, s.real(2), error=ValueError, match=r"probabilities.*Received: \(2,\)")
    yield ErrorSample(x, s.integers(2, 3), error=ValueError, match="one-hot")
    yield ErrorSample(x, x, label_smoothing=1.1, error=ValueError, match="Received: 1.1")


# -- ctc ------------------------------------------------------------------------------------------


def collapse(path, blank):
    """Return the labels that an alignment stands for: repeats merged, then blanks removed."""
    return [label for label, _ in itertools.groupby(path) if label != blank]


def ctc_single(log_probs, labels, blank):
    """Sum over all alignments, one by one."""
    frames, classes = log_probs.shape
    scores = [
        sum(log_probs[t, c] for t, c in enumerate(path))
        for path in itertools.product(range(classes), repeat=frames)
        if collapse(path, blank) == labels
    ]
    return -special.logsumexp(scores) if scores else np.inf


def ctc(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", **options):
    single = log_probs.ndim == 2
    log_probs = log_probs[:, None] if single else log_probs
    frames, lengths = np.atleast_1d(input_lengths), np.atleast_1d(target_lengths)
    if targets.ndim == 1:
        rows = np.split(targets, np.cumsum(lengths)[:-1])
    else:
        rows = [row[:n] for row, n in zip(targets, lengths, strict=True)]
    losses = [
        ctc_single(log_probs[:t, i], list(row), blank)
        for i, (t, row) in enumerate(zip(frames, rows, strict=True))
    ]
    losses = np.array(losses)
    if options.get("zero_infinity"):
        losses[np.isinf(losses)] = 0.0
    losses = losses / np.maximum(lengths, 1) if reduction == "mean" else losses
    return losses[0] if single and reduction == "none" else reduced(losses, reduction)


def ctc_samples(s):
    log_probs = special.log_softmax(s.real(4, 2, 3), axis=2)
    targets = np.array([[1, 2], [2, 2]])
    full, both = np.array([4, 4]), np.array([2, 2])
    yield from every_reduction(log_probs, targets, full, both)
    yield Sample(log_probs, targets, [4, 3], [1, 2], label="lists, short")
    yield Sample(log_probs, np.array([1, 2, 2]), full, np.array([2, 1]), label="concatenated")
    yield Sample(log_probs, targets - 1, full, both, blank=2, reduction="sum")
    yield Sample(log_probs, targets, full, np.array([0, 1]), label="empty target")
    yield Sample(log_probs[:, 0], np.array([1, 2]), 4, 2, reduction="none", label="one sequence")
    short = np.array([2, 2])
    yield Sample(log_probs, targets, short, both, reduction="none", grad=0, label="impossible")
    yield Sample(log_probs, targets, short, both, zero_infinity=True, label="impossible as 0")
    padded = np.array([[1, -1], [2, 2]])
    yield Sample(log_probs, padded, full, np.array([1, 2]), label="padded with -1")
    certain = np.where(np.arange(3) == np.array([1, 0, 2, 2])[:, None, None], 0.0, -np.inf)
    certain = np.repeat(certain, 2, axis=1)
    yield Sample(certain, np.array([[1, 2], [1, 1]]), full, both, reduction="none", grad=0)


def ctc_errors(s):
    log_probs, targets = s.real(4, 2, 3), np.array([[1, 2], [2, 2]])
    full, both = np.array([4, 4]), np.array([2, 2])
    yield ErrorSample(log_probs, targets + 1, full, both, error=IndexError, match="Received: 3")
    yield ErrorSample(log_probs, targets, full + 1, both, error=ValueError, match=r"\[5 5\]")
    yield ErrorSample(log_probs, targets, full, both + 1, error=ValueError, match=r"\[3 3\]")
    yield ErrorSample(log_probs, targets, full, both, blank=3, error=IndexError, match="blank")
    yield ErrorSample(log_probs, targets, full, both, blank=1, error=IndexError, match="blank, 1")
    yield ErrorSample(log_probs[0, 0], targets, full, both, error=ValueError, match=r"\(3,\)")
    yield ErrorSample(log_probs, targets * 1.0, full, both, error=TypeError, match="float64")
    yield ErrorSample(log_probs, targets, full[:1], both, error=ValueError, match=r"2 sequences")
    yield ErrorSample(log_probs, targets[0], full, both, error=ValueError, match="add up to 4")
    yield ErrorSample(log_probs, targets[:1], full, both, error=ValueError, match=r"\(1, 2\)")


LOSSES = {
    "mse_loss": (elementwise(lambda x, y: (x - y) ** 2), pair_samples, pair_errors),
    "l1_loss": (elementwise(lambda x, y: np.abs(x - y)), pair_samples, pair_errors),
    "huber_loss": (elementwise(huber), huber_samples, pair_errors),
    "smooth_l1_loss": (elementwise(smooth_l1), smooth_l1_samples, pair_errors),
    "poisson_nll_loss": (elementwise(poisson), poisson_samples, pair_errors),
    "gaussian_nll_loss": (elementwise(gaussian), gaussian_samples, gaussian_errors),
    "kl_div": (kl_div, kl_samples, pair_errors),
    "binary_cross_entropy": (elementwise(bce), bce_samples, bce_errors),
    "binary_cross_entropy_with_logits": (
        elementwise(bce_with_logits),
        logits_samples,
        pair_errors,
    ),
    "sigmoid_focal_loss": (focal, focal_samples, focal_errors),
    "soft_margin_loss": (
        elementwise(lambda x, y: np.logaddexp(0, -y * x)),
        sign_samples,
        pair_errors,
    ),
    "multilabel_soft_margin_loss": (
        elementwise(multilabel_soft_margin),
        multilabel_soft_samples,
        pair_errors,
    ),
    "hinge_loss": (
        elementwise(lambda x, y, margin=1.0: np.maximum(0, margin - x * y)),
        margin_samples,
        pair_errors,
    ),
    "hinge_embedding_loss": (
        elementwise(
            lambda x, y, margin=1.0: (
                np.where(y == -1, 0, x) + np.where(y == 1, 0, np.maximum(0, margin - x))
            )
        ),
        margin_samples,
        pair_errors,
    ),
    "margin_ranking_loss": (
        elementwise(lambda a, b, y, margin=0.0: np.maximum(0, margin - y * (a - b))),
        ranking_samples,
        ranking_errors,
    ),
    "multi_margin_loss": (multi_margin, multi_margin_samples, multi_margin_errors),
    "multilabel_margin_loss": (
        multilabel_margin,
        multilabel_margin_samples,
        multilabel_margin_errors,
    ),
    "cosine_embedding_loss": (
        elementwise(cosine_embedding),
        cosine_embedding_samples,
        cosine_embedding_errors,
    ),
    "triplet_margin_loss": (elementwise(triplet), triplet_samples, triplet_errors),
    "nll_loss": (nll, nll_samples, nll_errors),
    "cross_entropy": (cross_entropy, cross_entropy_samples, cross_entropy_errors),
    "ctc_loss": (ctc, ctc_samples, ctc_errors),
}

REFERENCES = {"bernoulli_nll": bce, **{name: row[0] for name, row in LOSSES.items()}}
COMPOSITE_SAMPLES = {name: row[1] for name, row in LOSSES.items()}
COMPOSITE_ERROR_SAMPLES = {name: row[2] for name, row in LOSSES.items()}
