"""A softmax over very many classes, fast where few of them are frequent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.dtype import is_integer
from ..core.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from ..core.tensor import Tensor, wrap
from .arguments import as_flag, as_number, as_size
from .calls import F
from .containers import ModuleList, Sequential
from .linear import Linear
from .module import Module


class AdaptiveOutput(NamedTuple):
    """The log probability of each target, and the mean loss."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Compute log probabilities of classes, ordered by frequency, in clusters (Grave et al. 2017).

    cutoffs     where clusters end: [10, 100] makes a head of 10 classes and clusters 10-99 and the
                rest, each a matrix product of its own that only its samples pay for
    div_value   cluster i works with in_features / div_value**(i + 1) features
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = as_size(self, "in_features", in_features)
        self.n_classes = as_size(self, "n_classes", n_classes)
        ends = _checked_cutoffs(cutoffs, self.n_classes)
        self.cutoffs = [*ends, self.n_classes]
        self.div_value = as_number(self, "div_value", div_value)
        self.head_bias = as_flag(self, "head_bias", head_bias)
        self.shortlist_size = ends[0]
        self.n_clusters = len(ends)
        self.head_size = self.shortlist_size + self.n_clusters
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(self.in_features, self.head_size, bias=self.head_bias, **place)
        self.tail = ModuleList(self._cluster(i, place) for i in range(self.n_clusters))

    def _cluster(self, i: int, place: dict[str, Any]) -> Sequential:
        width = int(self.in_features // self.div_value ** (i + 1))
        size = self.cutoffs[i + 1] - self.cutoffs[i]
        return Sequential(
            Linear(self.in_features, width, bias=False, **place),
            Linear(width, size, bias=False, **place),
        )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.reset_parameters()

    def forward(self, x: Tensor, target: Tensor) -> AdaptiveOutput:
        """Return the log probabilities of the targets and their mean, negated; x is (N, features).

        Which rows a cluster computes follows from the values of target.
        """
        single = target.ndim == 0
        if single:
            x, target = F.reshape(x, (1, -1)), F.reshape(target, (1,))
        classes = self._classes(x, target)
        place = np.digitize(classes, self.cutoffs[:-1])  # 0: in the head, i: in cluster i
        in_head = np.where(place == 0, classes, self.shortlist_size + place - 1)
        scores = F.log_softmax(self.head(x), 1)
        output = F.gather(scores, 1, wrap(in_head[:, None]))[:, 0]
        for i in range(self.n_clusters):
            rows = np.flatnonzero(place == i + 1)
            if rows.size:
                part = self._log_probs(i, x[rows], classes[rows] - self.cutoffs[i])
                output = F.index_add(output, 0, wrap(rows), part)
        loss = -F.mean(output)
        return AdaptiveOutput(F.reshape(output, ()) if single else output, loss)

    def _log_probs(self, cluster: int, x: Tensor, classes: Any) -> Tensor:
        scores = F.log_softmax(self.tail[cluster](x), 1)
        return F.gather(scores, 1, wrap(classes[:, None]))[:, 0]

    def _classes(self, x: Any, target: Any) -> Any:
        """Return the targets as an array, after checking them against x."""
        if x.ndim != 2 or tuple(target.shape) != tuple(x.shape[:1]):
            raise ShapeError(
                "AdaptiveLogSoftmaxWithLoss: the input must have the shape (N, in_features) and "
                f"target (N,). Received: {tuple(x.shape)} and {tuple(target.shape)}"
            )
        if not is_integer(target.dtype):
            raise DTypeError(
                "AdaptiveLogSoftmaxWithLoss: target must hold class indices. "
                f"Received: {target.dtype}"
            )
        classes = np.asarray(target).astype(np.int64)
        if classes.size and not 0 <= classes.min() <= classes.max() < self.n_classes:
            raise IndexOutOfRange(
                f"AdaptiveLogSoftmaxWithLoss: targets must lie in 0 ... {self.n_classes - 1}. "
                f"Received: {classes.min()} ... {classes.max()}"
            )
        return classes

    def log_prob(self, x: Tensor) -> Tensor:
        """Return the log probabilities of all classes: (N, n_classes)."""
        scores = F.log_softmax(self.head(x), 1)
        parts = [scores[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            own = scores[:, self.shortlist_size + i]
            parts.append(F.log_softmax(cluster(x), 1) + own[:, None])
        return F.concat(parts, axis=1)

    def predict(self, x: Tensor) -> Tensor:
        """Return the most probable class of each row."""
        return F.argmax(self.log_prob(x), axis=1)


def _checked_cutoffs(cutoffs: Any, n_classes: int) -> list[int]:
    ends = list(cutoffs)
    ascending = all(a < b for a, b in zip([0, *ends], [*ends, n_classes], strict=True))
    if not ends or not ascending or any(int(end) != end for end in ends):
        raise ArgumentError(
            "AdaptiveLogSoftmaxWithLoss: cutoffs must be ascending integers between 1 and "
            f"n_classes - 1 = {n_classes - 1}. Received: {cutoffs!r}"
        )
    return [int(end) for end in ends]
