"""Connectionist temporal classification (Graves et al. 2006, "Connectionist temporal ...", ICML).

A labelling is extended by blanks between, before and after its labels; alpha[s] is the log-sum over
all alignments of the frames so far that end in state s of the extended labelling (section 4.1). One
step of the recursion handles all states of the whole batch; gradients follow from its operators.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtype as dt
from ...core.dim import is_known, known_size, may_equal, size_min, surely_less
from ...core.errors import ArgumentError, IndexOutOfRange, ShapeError
from ...core.op import F, composite
from ...core.shape import as_int
from ...core.tensor import Tensor, constant
from .._halves import rounded_once
from .._operands import concrete, in_dtype
from ._arguments import check_floats, check_integers, check_reduction, operands

# In place of log(0). Infinities would make NaN of every gradient they meet (inf - inf); this is
# beyond any log-probability and far enough from the float32 range to be added up.
IMPOSSIBLE = -1e30
BARELY_POSSIBLE = -1e29


@composite()
@rounded_once
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    *,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return minus the log-probability of label sequences, summed over all their alignments.

    log_probs       (T, N, C), or (T, C) for one sequence: log-probabilities of each frame
    targets         labels, (N, S) padded with anything, or all sequences one after another
    input_lengths   frames of each sequence, at most T
    target_lengths  labels of each sequence, at most S

    The reduction "mean" divides each loss by its target length first. A target that fits no
    alignment has loss inf (0 with zero_infinity) and gradient 0.
    """
    fn = "ctc_loss"
    check_reduction(fn, reduction)
    log_probs, targets, frames, labels = operands(
        fn,
        log_probs=log_probs,
        targets=targets,
        input_lengths=input_lengths,
        target_lengths=target_lengths,
    )
    log_probs, targets, frames, labels, single = _batched(fn, log_probs, targets, frames, labels)
    blank = _checked_blank(fn, blank, log_probs.shape[2])
    _check_lengths(fn, log_probs, frames, labels)
    targets = _padded(fn, targets, labels, log_probs.shape, blank)
    loss = _losses(log_probs, targets, frames, labels, blank)
    loss = in_dtype(
        F.where(loss > -BARELY_POSSIBLE, 0.0 if zero_infinity else np.inf, loss), log_probs.dtype
    )
    if reduction == "mean":
        loss = F.mean(loss / F.cast(F.maximum(labels, 1), loss.dtype))
    elif reduction == "sum":
        loss = F.sum(loss)
    elif single:
        loss = loss[0]
    return loss


# -- the recursion ----------------------------------------------------------------------------


def _losses(log_probs: Any, targets: Any, frames: Any, labels: Any, blank: int) -> Any:
    """Return the loss of each sequence, above -BARELY_POSSIBLE where it cannot be aligned."""
    wide = dt.promote(log_probs.dtype, dt.float32)  # float16 cannot hold IMPOSSIBLE
    states = _extended(targets, blank)
    steps = F.maximum(in_dtype(log_probs, wide), IMPOSSIBLE)
    index = F.broadcast_to(states, (log_probs.shape[0], *states.shape))
    scores = F.take_along_axis(steps, index, axis=2)
    skips = _may_skip(states, blank)
    alpha = _start(labels, scores)
    for t in range(1, known_size(log_probs.shape[0], "ctc_loss: the number of frames")):
        moved = _reached(alpha, skips) + scores[t]
        alpha = F.where((frames > t)[:, None], moved, alpha)
    return _final(alpha, labels, frames)


def _extended(targets: Any, blank: int) -> Any:
    """Return labels with blanks between, before and after them, (N, 2 S + 1)."""
    n, s = targets.shape
    blanks = F.full_like(targets, blank)
    pairs = F.reshape(F.stack([blanks, targets], axis=2), (n, 2 * s))
    return F.concat([pairs, _filled((n, 1), blank)], axis=1)


def _may_skip(states: Any, blank: int) -> Any:
    """Tell which states may follow the one before the last: labels unlike the label before.

    Equation 7 of Graves et al. 2006.
    """
    n = states.shape[0]
    differ = F.logical_and(states[:, 2:] != states[:, :-2], states[:, 2:] != blank)
    nothing = _filled((n, size_min(2, states.shape[1])), False)
    return F.concat([nothing, differ], axis=1)


def _start(labels: Any, scores: Any) -> Any:
    """Return alpha of the first frame: it shows the first blank or the first label."""
    place = F.iota(scores.shape[2])
    open_to = F.logical_and(place < 2, (labels > 0)[:, None])
    open_to = F.logical_or(open_to, place == 0)
    return F.where(open_to, scores[0], IMPOSSIBLE)


def _reached(alpha: Any, skips: Any) -> Any:
    """Return the log-sum over stay, step and skip, equation 6 of Graves et al. 2006."""
    step, skip = _shifted(alpha, 1), F.where(skips, _shifted(alpha, 2), IMPOSSIBLE)
    return F.logaddexp(F.logaddexp(alpha, step), skip)


def _shifted(alpha: Any, by: int) -> Any:
    """Return alpha moved on by some states, with nothing possible in the first ones."""
    n, states = alpha.shape
    by = size_min(by, states)
    return F.concat([_filled((n, by), IMPOSSIBLE, alpha.dtype), alpha[:, : states - by]], axis=1)


def _filled(shape: tuple[Any, ...], value: Any, dtype: Any = None) -> Any:
    """Return an array of one value; of unknown sizes, a value of the graph."""
    array = np.array(value, dtype)
    return np.full(shape, array) if is_known(shape) else F.broadcast_to(constant(array), shape)


def _final(alpha: Any, labels: Any, frames: Any) -> Any:
    """Return minus the log-sum over the last label and the last blank of each sequence."""
    end = (2 * labels)[:, None]
    blank = F.take_along_axis(alpha, end, axis=1)
    label = F.take_along_axis(alpha, F.maximum(end - 1, 0), axis=1)
    label = F.where(end > 0, label, IMPOSSIBLE)
    loss = -F.logaddexp(blank, label)[:, 0]
    # Without frames there is one alignment, the empty one, of the empty labelling alone.
    return F.where(frames > 0, loss, F.where(labels > 0, -IMPOSSIBLE, 0.0))


# -- arguments --------------------------------------------------------------------------------


def _batched(
    fn: str, log_probs: Any, targets: Any, frames: Any, labels: Any
) -> tuple[Any, Any, Any, Any, bool]:
    """Return the operands with a batch dimension, and whether it was added."""
    check_floats(fn, "log_probs", log_probs)
    check_integers(fn, "targets", targets, "class indices")
    check_integers(fn, "input_lengths", frames, "numbers of frames")
    check_integers(fn, "target_lengths", labels, "numbers of labels")
    if log_probs.ndim not in (2, 3):
        raise ShapeError(
            f"{fn}: log_probs must have shape (T, N, C) or (T, C). Received: {log_probs.shape}"
        )
    single = log_probs.ndim == 2
    if single:
        log_probs = log_probs[:, None]
        frames, labels = F.reshape(frames, (1,)), F.reshape(labels, (1,))
    frames, labels, targets = (in_dtype(x, dt.int64) for x in (frames, labels, targets))
    return log_probs, targets, frames, labels, single


def _padded(fn: str, targets: Any, labels: Any, shape: tuple[int, ...], blank: int) -> Any:
    """Return targets as (N, S), with blanks beyond the length of each."""
    if targets.ndim not in (1, 2):
        raise ShapeError(
            f"{fn}: targets must have shape (N, S), or be one-dimensional. "
            f"Received: {targets.shape}"
        )
    if targets.ndim == 2 and targets.shape[0] != shape[1]:
        raise ShapeError(
            f"{fn}: targets of shape {targets.shape} do not fit {shape[1]} sequences of log_probs"
        )
    if targets.ndim == 1:
        targets = _split(fn, targets, labels)
    used = F.iota(targets.shape[1]) < labels[:, None]
    _check_label_values(fn, targets, used, labels, shape[2], blank)
    return F.where(used, targets, blank)


def _split(fn: str, targets: Any, labels: Any) -> Any:
    """Return sequences that stand one after another as the rows of a matrix."""
    lengths = concrete(labels)  # the width of the result depends on them
    if lengths is None:
        return _only_row(fn, targets, labels)
    total, longest = int(lengths.sum()), int(lengths.max(initial=0))
    if total != targets.shape[0]:
        raise ShapeError(
            f"{fn}: target_lengths add up to {total}, but there are {targets.shape[0]} targets"
        )
    starts = np.cumsum(lengths) - lengths
    index = np.minimum(starts[:, None] + np.arange(longest), max(total - 1, 0))
    return F.take(targets, index, axis=0) if total else F.reshape(targets, index.shape)


def _only_row(fn: str, targets: Any, labels: Any) -> Any:
    """Return targets as a matrix in a graph, where the lengths are not known: they must be one."""
    if labels.shape != (1,):
        raise ArgumentError(
            f"{fn}: in a graph, where target_lengths are not known, targets must be padded to "
            f"(N, S). Received: shape {targets.shape}"
        )
    return F.reshape(targets, (1, targets.shape[0]))


def _check_lengths(fn: str, log_probs: Any, frames: Any, labels: Any) -> None:
    limits = (("input_lengths", frames, log_probs.shape[0]), ("target_lengths", labels, None))
    for name, lengths, limit in limits:
        if not may_equal(tuple(lengths.shape), (log_probs.shape[1],)):
            raise ShapeError(
                f"{fn}: {name} must have one entry for each of {log_probs.shape[1]} sequences. "
                f"Received: shape {lengths.shape}"
            )
        value = concrete(lengths)
        if value is None or value.size == 0:
            continue
        if value.min() < 0 or (limit is not None and surely_less(limit, int(value.max()))):
            allowed = "not negative" if limit is None else f"from 0 to T = {limit}"
            raise ArgumentError(f"{fn}: {name} must be {allowed}. Received: {value}")


def _check_label_values(
    fn: str, targets: Any, used: Any, labels: Any, classes: int, blank: int
) -> None:
    rows, mask, lengths = concrete(targets), concrete(used), concrete(labels)
    if rows is None or mask is None or lengths is None:
        return
    if lengths.max(initial=0) > rows.shape[1]:
        raise ArgumentError(
            f"{fn}: target_lengths must not exceed S = {rows.shape[1]}, the width of targets. "
            f"Received: {lengths}"
        )
    wrong = mask & ((rows < 0) | (rows >= classes) | (rows == blank))
    if wrong.any():
        raise IndexOutOfRange(
            f"{fn}: targets must be one of {classes} classes and not the blank, {blank}. "
            f"Received: {rows[wrong][0]}"
        )


def _checked_blank(fn: str, blank: Any, classes: int) -> int:
    index = as_int(blank, f"{fn}: blank")
    if index < 0 or surely_less(classes - 1, index):
        raise IndexOutOfRange(
            f"{fn}: blank must be one of {classes} classes, 0 ... {classes - 1}. Received: {index}"
        )
    return index
