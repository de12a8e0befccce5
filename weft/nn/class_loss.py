"""Losses of classification as layers; all take `reduction`: "mean" (the default), "sum", "none"."""

from __future__ import annotations

from typing import Any

from ..core.errors import ArgumentError
from ..core.shape import as_int
from ..core.tensor import Tensor
from ..ops.creation import asarray
from .arguments import as_flag, as_number, as_probability
from .calls import F
from .loss import Loss


class WeightedLoss(Loss):
    """Base of the losses with a fixed factor for each class or element, kept as a buffer."""

    weight: Tensor | None

    def __init__(self, weight: Any = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.register_buffer("weight", None if weight is None else asarray(weight))


class CrossEntropyLoss(WeightedLoss):
    """Return the cross entropy between logits (N, C, ...) and targets.

    Targets are class indices (N, ...), or probabilities of the shape of the logits. weight is a
    factor for each class; indices equal to ignore_index do not count; label_smoothing mixes the
    targets with the uniform distribution (Szegedy et al. 2016).

    >>> import weft as wf
    >>> wf.nn.CrossEntropyLoss()(wf.tensor([[0.0, 0.0]]), wf.tensor([1]))
    tensor(0.6931)
    """

    def __init__(
        self,
        weight: Any = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, reduction=reduction)
        self.ignore_index = as_int(ignore_index, "CrossEntropyLoss: ignore_index")
        self.label_smoothing = as_probability(self, "label_smoothing", label_smoothing)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class NLLLoss(WeightedLoss):
    """Return minus the log probability of the target class; input is (N, C, ...).

    Use it after LogSoftmax; see CrossEntropyLoss for the options.
    """

    def __init__(
        self, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(weight, reduction=reduction)
        self.ignore_index = as_int(ignore_index, "NLLLoss: ignore_index")

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        options: dict[str, Any] = {"ignore_index": self.ignore_index, "reduction": self.reduction}
        return F.nll_loss(input, target, self.weight, **options)


class BCELoss(WeightedLoss):
    """Return the cross entropy between probabilities and targets in [0, 1], elementwise."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(WeightedLoss):
    """Return the cross entropy between sigmoid(input) and targets in [0, 1], elementwise.

    pos_weight is a factor for the positive part, e.g. one for each class.
    """

    pos_weight: Tensor | None

    def __init__(
        self, weight: Any = None, *, reduction: str = "mean", pos_weight: Any = None
    ) -> None:
        super().__init__(weight, reduction=reduction)
        self.register_buffer("pos_weight", None if pos_weight is None else asarray(pos_weight))

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        options: dict[str, Any] = {"pos_weight": self.pos_weight, "reduction": self.reduction}
        return F.binary_cross_entropy_with_logits(input, target, self.weight, **options)


class SigmoidFocalLoss(Loss):
    """Return the cross entropy of logits with easy elements weighed down (Lin et al. 2017)."""

    def __init__(self, alpha: float = 0.25, gamma: float = 2.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.alpha = as_number(self, "alpha", alpha)
        self.gamma = as_number(self, "gamma", gamma, 0)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        options: dict[str, Any] = {"alpha": self.alpha, "gamma": self.gamma}
        return F.sigmoid_focal_loss(input, target, reduction=self.reduction, **options)


class SoftMarginLoss(Loss):
    """Return log(1 + exp(-target * input)) for targets 1 and -1."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(WeightedLoss):
    """Return the cross entropy of logits averaged over the classes, the last axis."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        options: dict[str, Any] = {"reduction": self.reduction}
        return F.multilabel_soft_margin_loss(input, target, self.weight, **options)


class MultiLabelMarginLoss(Loss):
    """Return the hinge loss between all listed classes and all others.

    target lists class indices for each row, ended by -1.
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiMarginLoss(WeightedLoss):
    """Return the mean over other classes of max(0, margin - input[target] + input[i])**p."""

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Any = None, *, reduction: str = "mean"
    ) -> None:
        super().__init__(weight, reduction=reduction)
        if p not in (1, 2):
            raise ArgumentError(f"MultiMarginLoss: p must be 1 or 2. Received: {p!r}")
        self.p = p
        self.margin = as_number(self, "margin", margin)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        options: dict[str, Any] = {"p": self.p, "margin": self.margin, "weight": self.weight}
        return F.multi_margin_loss(input, target, reduction=self.reduction, **options)


class CTCLoss(Loss):
    """Return the negative log likelihood of label sequences under any alignment (Graves 2006).

    log_probs is (T, N, C) or (T, C); blank is the index of the empty label; zero_infinity sets the
    loss of sequences that do not fit their input to zero.
    """

    def __init__(
        self, blank: int = 0, *, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = as_int(blank, "CTCLoss: blank")
        self.zero_infinity = as_flag(self, "zero_infinity", zero_infinity)

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        """Return the loss."""
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            blank=self.blank,
            reduction=self.reduction,
            zero_infinity=self.zero_infinity,
        )
