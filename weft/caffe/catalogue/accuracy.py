"""Layers that judge and choose, and are not differentiated."""

from __future__ import annotations

import math
from typing import Any

from ...core.op import F
from ...core.tensor import Tensor
from .base import Layer, Shape, label_indices, layer


@layer("Accuracy")
class Accuracy(Layer):
    """How often the label is among the top_k scores; with a second top, for each class."""

    bottoms = (2, 2)
    tops = (1, 2)
    differentiable = ()

    def setup(self, shapes: list[Shape]) -> None:
        """Check labels against scores."""
        scores, labels = shapes
        options = self.param.accuracy_param
        self.along = self.axis(options.axis, len(scores))
        classes = scores[self.along]
        self.check(
            0 < options.top_k <= math.prod(scores) / max(math.prod(labels), 1),
            f"top_k must be less than or equal to the number of classes ({classes}). "
            f"Received: {options.top_k}",
        )
        self.check(
            math.prod(scores) == classes * math.prod(labels),
            "Number of labels must match number of predictions; e.g., if label axis == 1 and "
            "prediction shape is (N, C, H, W), label count (number of labels) must be N*H*W, "
            f"with integer values in {{0, 1, ..., C-1}}. Received: {scores} and {labels}",
        )
        self.classes = classes

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return a scalar, and a vector of classes."""
        return [(), (self.classes,)][: max(len(self.param.top), 1)]

    def forward(self, scores: Tensor, labels: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Return the accuracies."""
        rows = F.reshape(F.moveaxis(F.stop_gradient(scores), self.along, -1), (-1, self.classes))
        wanted = F.reshape(label_indices(labels), (-1,))
        options = self.param.accuracy_param
        kept = wanted != options.ignore_label if options.has("ignore_label") else wanted >= 0
        own = F.take_along_axis(rows, F.where(kept, wanted, 0)[:, None], 1)
        better = F.sum(F.cast(rows >= own, "int64"), 1) - 1  # the label's own score is one of them
        right = F.cast((better < options.top_k) & kept, rows.dtype)
        counted = F.cast(kept, rows.dtype)
        whole = _ratio(F.sum(right), F.sum(counted))
        if len(self.param.top) < 2:
            return whole
        each = F.cast(wanted[:, None] == F.iota(self.classes), rows.dtype)
        hits = F.sum(each * right[:, None], 0)
        return whole, _ratio(hits, F.sum(each * counted[:, None], 0))


def _ratio(part: Any, whole: Any) -> Any:
    """Return part / whole, and 0 where there is nothing."""
    return F.where(whole == 0, 0.0, part / F.where(whole == 0, 1.0, whole))


@layer("ArgMax")
class ArgMax(Layer):
    """Where the largest values are; with out_max_val, what they are."""

    differentiable = ()

    def setup(self, shapes: list[Shape]) -> None:
        """Check top_k."""
        (shape,) = shapes
        options = self.param.argmax_param
        self.along = self.axis(options.axis, len(shape)) if options.has("axis") else None
        size = math.prod(shape[1:]) if self.along is None else shape[self.along]
        self.check(options.top_k >= 1, "top k must not be less than 1.")
        self.check(
            options.top_k <= size, f"top_k must be at most {size}. Received: {options.top_k}"
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the places, values, or both."""
        options = self.param.argmax_param
        if self.along is not None:
            values, places = self._largest(x, self.along)
            return values if options.out_max_val else F.cast(places, x.dtype)
        values, places = self._largest(F.reshape(x, (x.shape[0], -1)), 1)
        parts = [
            F.cast(places, x.dtype)[:, None],
            *([values[:, None]] if options.out_max_val else []),
        ]
        rest = (1,) * (max(x.ndim, 3) - 3)
        return F.reshape(F.concat(parts, 1), (x.shape[0], len(parts), options.top_k, *rest))

    def _largest(self, x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
        """Return the largest values and their places; of equal ones, the last comes first."""
        turned = F.flip(F.stop_gradient(x), axis)
        order = F.argsort(turned, axis, descending=True, stable=True)
        chosen = order[(*(slice(None),) * axis, slice(0, self.param.argmax_param.top_k))]
        return F.take_along_axis(turned, chosen, axis), x.shape[axis] - 1 - chosen
