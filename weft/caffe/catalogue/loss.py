"""Losses: each a number, whose weight in the sum is 1 unless the layer says."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ...core.op import F
from ...core.tensor import Tensor
from ...ops.creation import tensor
from ..binary import parse_message_file
from ..blobs import blob_array
from ..message import BlobProto
from .base import Layer, Shape, label_indices, layer

SMALLEST = float(np.finfo(np.float32).tiny)  # probabilities count as no less
LOG_THRESHOLD = 1e-20


class _Loss(Layer):
    bottoms = (2, 2)
    is_loss = True
    shares_in_place = False
    differentiable: ClassVar[tuple[int, ...] | None] = (0,)

    def setup(self, shapes: list[Shape]) -> None:
        """Check that both bottoms have as many examples."""
        for shape in shapes[:2]:
            self.check(
                shape[:1] == shapes[0][:1],
                f"The data and label should have the same first dimension: {shapes}",
            )

    def top_shapes(self, shapes: list[Shape]) -> list[Shape] | None:
        """Return a scalar."""
        return [()]

    def check_same_count(self, shapes: list[Shape]) -> None:
        """Refuse bottoms of unequal sizes."""
        self.check(
            math.prod(shapes[0]) == math.prod(shapes[1]),
            f"Inputs must have the same dimension: {shapes[0]} and {shapes[1]}",
        )


class _Classes(_Loss):
    """What losses over classes share: the axis of classes, labels to ignore, what to divide by."""

    tops = (1, 2)

    def begin(self, shapes: list[Shape], axis: int) -> None:
        """Check labels against scores."""
        scores, labels = shapes[:2]
        self.along = self.axis(axis, len(scores))
        self.classes = scores[self.along]
        self.check(
            math.prod(scores) == self.classes * math.prod(labels),
            f"Number of labels must match number of predictions; e.g., if softmax axis == 1 and "
            "prediction shape is (N, C, H, W), label count (number of labels) must be N*H*W, "
            f"with integer values in {{0, 1, ..., C-1}}. Received: {scores} and {labels}",
        )
        options = self.param.loss_param
        self.ignored = options.ignore_label if options.has("ignore_label") else None
        self.mode = options.which("normalization")
        if not options.has("normalization") and options.has("normalize"):
            self.mode = "VALID" if options.normalize else "BATCH_SIZE"

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return a scalar, and the probabilities."""
        return [(), shapes[0]][: max(len(self.param.top), 1)]

    def rows(self, scores: Tensor) -> Tensor:
        """Return scores with classes last, as a matrix."""
        return F.reshape(F.moveaxis(scores, self.along, -1), (-1, self.classes))

    def labels(self, labels: Tensor) -> tuple[Any, Any]:
        """Return labels, with 0 for those to ignore, and which count (None: all)."""
        wanted = F.reshape(label_indices(labels), (-1,))
        if self.ignored is None:
            return wanted, None
        kept = wanted != self.ignored
        return F.where(kept, wanted, 0), kept

    def divided(self, losses: Any, kept: Any, shape: Shape) -> Any:
        """Return the sum of losses over what `normalization` says."""
        if kept is not None:
            losses = F.where(kept, losses, 0.0)
        outer, every = math.prod(shape[: self.along]), math.prod(shape) / self.classes
        if self.mode == "VALID" and kept is not None:
            count = F.maximum(F.sum(F.cast(kept, losses.dtype)), 1.0)
            return F.sum(losses) / count
        count = {"FULL": every, "VALID": every, "BATCH_SIZE": outer, "NONE": 1}[self.mode]
        return F.sum(losses) / max(float(count), 1.0)


@layer("SoftmaxWithLoss")
class SoftmaxWithLoss(_Classes):
    """Minus the logarithm of the label's probability; the second top is the probabilities."""

    def setup(self, shapes: list[Shape]) -> None:
        """Check labels."""
        self.begin(shapes, self.param.softmax_param.axis)

    def forward(self, scores: Tensor, labels: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Return the loss."""
        wanted, kept = self.labels(labels)
        logs = F.log_softmax(self.rows(scores), -1)
        losses = -F.squeeze(F.take_along_axis(logs, wanted[:, None], 1), 1)
        # Caffe's loss stands at -log(FLT_MIN), 87.34; its gradient does not.
        losses = losses - F.stop_gradient(F.maximum(losses + math.log(SMALLEST), 0.0))
        loss = self.divided(losses, kept, tuple(scores.shape))
        return loss if len(self.param.top) < 2 else (loss, F.softmax(scores, self.along))


@layer("InfogainLoss")
class InfogainLoss(_Classes):
    """Like SoftmaxWithLoss, with the logarithms of all classes weighed by the label's row of H."""

    bottoms = (2, 3)

    def setup(self, shapes: list[Shape]) -> None:
        """Check labels, and read H unless it is the third bottom."""
        options = self.param.infogain_loss_param
        self.begin(shapes, options.axis)
        shape = shapes[2] if len(shapes) > 2 else self._read(options)
        self.check(
            math.prod(shape) == self.classes**2,
            f"infogain matrix must be {self.classes} x {self.classes}. Received: {shape}",
        )

    def _read(self, options: Any) -> Shape:
        self.check(options.has("source"), "Infogain matrix source must be specified.")
        matrix = blob_array(parse_message_file(options.source, BlobProto), options.source)
        self.register_buffer("infogain", tensor(matrix))
        return matrix.shape

    def forward(
        self, scores: Tensor, labels: Tensor, infogain: Tensor | None = None
    ) -> Tensor | tuple[Tensor, ...]:
        """Return the loss."""
        wanted, kept = self.labels(labels)
        matrix = self.__dict__["infogain"] if infogain is None else infogain
        weights = F.take(F.reshape(matrix, (self.classes, self.classes)), wanted, 0)
        logs = F.maximum(F.log_softmax(self.rows(scores), -1), math.log(LOG_THRESHOLD))
        loss = self.divided(-F.sum(weights * logs, 1), kept, tuple(scores.shape))
        return loss if len(self.param.top) < 2 else (loss, F.softmax(scores, self.along))


@layer("MultinomialLogisticLoss")
class MultinomialLogisticLoss(_Loss):
    """Minus the logarithm of the label's probability, for probabilities."""

    def setup(self, shapes: list[Shape]) -> None:
        """Check labels."""
        super().setup(shapes)
        self.check(
            math.prod(shapes[1]) == shapes[0][0], f"there must be one label an example: {shapes}"
        )

    def forward(self, probabilities: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        count = probabilities.shape[0]
        rows = F.reshape(probabilities, (count, -1))
        own = F.take_along_axis(rows, F.reshape(label_indices(labels), (count, 1)), 1)
        return -F.sum(F.log(F.maximum(own, LOG_THRESHOLD))) / count


@layer("SigmoidCrossEntropyLoss")
class SigmoidCrossEntropyLoss(_Loss):
    """Cross entropy of sigmoids of scores with targets from 0 to 1, element by element."""

    def setup(self, shapes: list[Shape]) -> None:
        """Check sizes; here the sum is divided by the number of examples by default."""
        self.check_same_count(shapes)
        options = self.param.loss_param
        self.ignored = options.ignore_label if options.has("ignore_label") else None
        self.mode = "BATCH_SIZE"
        if options.has("normalization"):
            self.mode = options.which("normalization")
        elif options.has("normalize") and options.normalize:
            self.mode = "VALID"

    def forward(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Return the loss."""
        wanted = F.reshape(targets, scores.shape)
        losses = F.softplus(scores) - scores * wanted
        count: Any = {"BATCH_SIZE": scores.shape[0], "NONE": 1}.get(
            self.mode, math.prod(scores.shape)
        )
        if self.ignored is not None:
            kept = wanted != self.ignored
            losses = F.where(kept, losses, 0.0)
            if self.mode == "VALID":
                return F.sum(losses) / F.maximum(F.sum(F.cast(kept, losses.dtype)), 1.0)
        return F.sum(losses) / max(float(count), 1.0)


@layer("EuclideanLoss")
class EuclideanLoss(_Loss):
    """Half the squared distance, over the number of examples."""

    differentiable = None

    def setup(self, shapes: list[Shape]) -> None:
        """Check sizes."""
        super().setup(shapes)
        inner = [math.prod(shape[1:]) for shape in shapes]
        self.check(inner[0] == inner[1], f"Inputs must have the same dimension: {shapes}")

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the loss."""
        return F.sum(F.square(a - F.reshape(b, a.shape))) / (2.0 * a.shape[0])


@layer("HingeLoss")
class HingeLoss(_Loss):
    """One against all others: scores of the label above 1, all others below -1."""

    def setup(self, shapes: list[Shape]) -> None:
        """Check labels."""
        super().setup(shapes)
        self.check(math.prod(shapes[1]) == shapes[0][0], f"there must be one label: {shapes}")

    def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        rows = F.reshape(scores, (scores.shape[0], -1))
        own = F.reshape(label_indices(labels), (-1, 1)) == F.iota(rows.shape[1])
        margins = F.maximum(1.0 + F.where(own, -rows, rows), 0.0)
        if self.param.hinge_loss_param.which("norm") == "L2":
            margins = F.square(margins)
        return F.sum(margins) / scores.shape[0]


@layer("ContrastiveLoss")
class ContrastiveLoss(_Loss):
    """Pairs of features: near each other if the third bottom says 1, else apart by a margin."""

    bottoms = (3, 3)
    differentiable = (0, 1)

    def setup(self, shapes: list[Shape]) -> None:
        """Check sizes."""
        a, b, similar = shapes
        self.check(a[:2] == b[:2] and len(a) >= 2, f"the features must have one shape: {shapes}")
        self.check(
            math.prod(a[2:]) == math.prod(b[2:]) == math.prod(similar[1:]) == 1,
            f"height and width must be 1: {shapes}",
        )
        self.check(similar[0] == a[0], f"there must be one number for each pair: {shapes}")

    def forward(self, a: Tensor, b: Tensor, similar: Tensor) -> Tensor:
        """Return the loss."""
        options = self.param.contrastive_loss_param
        count = a.shape[0]
        squares = F.sum(F.square(F.reshape(a - F.reshape(b, a.shape), (count, -1))), 1)
        if options.legacy_version:
            apart = F.maximum(options.margin - squares, 0.0)
        else:
            # The square root of 0 has no slope: two equal features are not pushed, as in Caffe.
            zero = squares == 0
            distance = F.where(zero, 0.0, F.sqrt(F.where(zero, 1.0, squares)))
            apart = F.square(F.maximum(options.margin - distance, 0.0))
        losses = F.where(F.reshape(similar, (-1,)) != 0, squares, apart)
        return F.sum(losses) / (2.0 * count)
