"""Losses of classification as layers; all take `reduction`: "mean" (the default), "sum", "none"."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.errors import ArgumentError
from ..core.shape import as_int
from ..core.tensor import Tensor
from ..ops.creation import asarray
from .arguments import as_flag, as_number, as_probability
from .loss import Loss, PairLoss


class WeightedLoss(PairLoss):
    """Base of the losses with a fixed factor for each class or element, kept as a buffer."""

    _options: ClassVar[tuple[str, ...]] = ("weight",)
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

    _function = "cross_entropy"
    _options = ("weight", "ignore_index", "label_smoothing")

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


class NLLLoss(WeightedLoss):
    """Return minus the log probability of the target class; input is (N, C, ...).

    Use it after LogSoftmax; see CrossEntropyLoss for the options.
    """

    _function = "nll_loss"
    _options = ("weight", "ignore_index")

    def __init__(
        self, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(weight, reduction=reduction)
        self.ignore_index = as_int(ignore_index, "NLLLoss: ignore_index")


class BCELoss(WeightedLoss):
    """Return the cross entropy between probabilities and targets in [0, 1], elementwise."""

    _function = "binary_cross_entropy"


class BCEWithLogitsLoss(WeightedLoss):
    """Return the cross entropy between sigmoid(input) and targets in [0, 1], elementwise.

    pos_weight is a factor for the positive part, e.g. one for each class.
    """

    _function = "binary_cross_entropy_with_logits"
    _options = ("weight", "pos_weight")
    pos_weight: Tensor | None

    def __init__(
        self, weight: Any = None, *, reduction: str = "mean", pos_weight: Any = None
    ) -> None:
        super().__init__(weight, reduction=reduction)
        self.register_buffer("pos_weight", None if pos_weight is None else asarray(pos_weight))


class SigmoidFocalLoss(PairLoss):
    """Return the cross entropy of logits with easy elements weighed down (Lin et al. 2017)."""

    _function = "sigmoid_focal_loss"
    _options = ("alpha", "gamma")

    def __init__(self, alpha: float = 0.25, gamma: float = 2.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.alpha = as_number(self, "alpha", alpha)
        self.gamma = as_number(self, "gamma", gamma, 0)


class SoftMarginLoss(PairLoss):
    """Return log(1 + exp(-target * input)) for targets 1 and -1."""

    _function = "soft_margin_loss"


class MultiLabelSoftMarginLoss(WeightedLoss):
    """Return the cross entropy of logits averaged over the classes, the last axis."""

    _function = "multilabel_soft_margin_loss"


class MultiLabelMarginLoss(PairLoss):
    """Return the hinge loss between all listed classes and all others.

    target lists class indices for each row, ended by -1.
    """

    _function = "multilabel_margin_loss"


class MultiMarginLoss(WeightedLoss):
    """Return the mean over other classes of max(0, margin - input[target] + input[i])**p."""

    _function = "multi_margin_loss"
    _options = ("p", "margin", "weight")

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Any = None, *, reduction: str = "mean"
    ) -> None:
        super().__init__(weight, reduction=reduction)
        if p not in (1, 2):
            raise ArgumentError(f"MultiMarginLoss: p must be 1 or 2. Received: {p!r}")
        self.p = p
        self.margin = as_number(self, "margin", margin)


class CTCLoss(Loss):
    """Return the negative log likelihood of label sequences under any alignment (Graves 2006).

    log_probs is (T, N, C) or (T, C); blank is the index of the empty label; zero_infinity sets the
    loss of sequences that do not fit their input to zero.
    """

    _function = "ctc_loss"
    _options = ("blank", "zero_infinity")

    def __init__(
        self, blank: int = 0, *, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = as_int(blank, "CTCLoss: blank")
        self.zero_infinity = as_flag(self, "zero_infinity", zero_infinity)

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Any:
        """Return the loss."""
        return self._of(log_probs, targets, input_lengths, target_lengths)
