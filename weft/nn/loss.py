"""Losses as layers: of regression, of distributions, and of margins.

All take `reduction`: "mean" (the default), "sum" or "none". A loss never broadcasts silently: input
and target must have the same shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ..core.tensor import Tensor
from .arguments import as_choice, as_flag, as_number
from .calls import F
from .distance import PairwiseDistance
from .module import Module

REDUCTIONS = ("mean", "sum", "none")


class Loss(Module):
    """Base of the losses: the name of a function, and the options that it takes."""

    _function: ClassVar[str]
    _options: ClassVar[tuple[str, ...]] = ()
    _reductions: ClassVar[tuple[str, ...]] = REDUCTIONS

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = as_choice(self, "reduction", reduction, self._reductions)

    def _of(self, *inputs: Any) -> Any:
        options = {"reduction": self.reduction}
        for name in self._options:
            options[name] = self.__dict__[name]
        return getattr(F, self._function)(*inputs, **options)


class PairLoss(Loss):
    """Base of the losses of an input and a target."""

    def forward(self, input: Tensor, target: Tensor) -> Any:
        """Return the loss."""
        if self._options:
            return self._of(input, target)
        return getattr(F, self._function)(input, target, reduction=self.reduction)


# -- regression ----------------------------------------------------------------------------------


class L1Loss(PairLoss):
    """Return the mean of |input - target|."""

    _function = "l1_loss"


class MSELoss(PairLoss):
    """Return the mean of (input - target)**2.

    >>> import weft as wf
    >>> wf.nn.MSELoss()(wf.tensor([1.0, 2.0]), wf.tensor([1.0, 4.0]))
    tensor(2.)
    """

    _function = "mse_loss"


class SmoothL1Loss(PairLoss):
    """Return a squared error below `beta` and an absolute one above (Girshick 2015)."""

    _function = "smooth_l1_loss"
    _options = ("beta",)

    def __init__(self, *, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.beta = as_number(self, "beta", beta, 0)


class HuberLoss(PairLoss):
    """Return a squared error below `delta` and an absolute one above, times delta (Huber 1964)."""

    _function = "huber_loss"
    _options = ("delta",)

    def __init__(self, *, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = as_number(self, "delta", delta)


class PoissonNLLLoss(PairLoss):
    """Return the negative log likelihood of counts under a Poisson distribution.

    input is the rate, or its logarithm with log_input; `full` adds Stirling's approximation of the
    term without input.
    """

    _function = "poisson_nll_loss"
    _options = ("log_input", "full", "eps")

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        eps: float = 1e-8,
        *,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.log_input = as_flag(self, "log_input", log_input)
        self.full = as_flag(self, "full", full)
        self.eps = as_number(self, "eps", eps)


class GaussianNLLLoss(Loss):
    """Return the negative log likelihood of targets under normal distributions.

    input is the mean and var the variance, at least eps; `full` adds log(2 pi) / 2.
    """

    _function = "gaussian_nll_loss"
    _options = ("full", "eps")

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = as_flag(self, "full", full)
        self.eps = as_number(self, "eps", eps)

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Any:
        """Return the loss."""
        return self._of(input, target, var)


class KLDivLoss(PairLoss):
    """Return target * (log(target) - input), with input a logarithm of probabilities.

    Reduction "batchmean" divides the sum by the batch size: the divergence itself.
    """

    _function = "kl_div"
    _options = ("log_target",)
    _reductions: ClassVar[tuple[str, ...]] = ("mean", "batchmean", "sum", "none")

    def __init__(self, *, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.log_target = as_flag(self, "log_target", log_target)


# -- margins -------------------------------------------------------------------------------------


class _MarginLoss(Loss):
    _options: ClassVar[tuple[str, ...]] = ("margin",)

    def __init__(self, margin: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.margin = as_number(self, "margin", margin)


class HingeLoss(_MarginLoss, PairLoss):
    """Return max(0, margin - target * input) for targets 1 and -1."""

    _function = "hinge_loss"


class HingeEmbeddingLoss(_MarginLoss, PairLoss):
    """Return input where target is 1 and max(0, margin - input) where it is -1."""

    _function = "hinge_embedding_loss"


class _TwoInputsLoss(_MarginLoss):
    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(margin, reduction=reduction)

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Any:
        """Return the loss."""
        return self._of(input1, input2, target)


class MarginRankingLoss(_TwoInputsLoss):
    """Return max(0, margin - target * (input1 - input2)) for targets 1 and -1."""

    _function = "margin_ranking_loss"


class CosineEmbeddingLoss(_TwoInputsLoss):
    """Return 1 - cos(input1, input2) where target is 1 and max(0, cos - margin) where it is -1."""

    _function = "cosine_embedding_loss"


class TripletMarginLoss(_MarginLoss):
    """Return max(0, margin + d(anchor, positive) - d(anchor, negative)) with the p-norm as d.

    With `swap` the nearer of anchor and positive is compared with the negative.
    """

    _function = "triplet_margin_loss"
    _options = ("margin", "p", "eps", "swap")

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        *,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, reduction=reduction)
        self.p = as_number(self, "p", p)
        self.eps = as_number(self, "eps", eps)
        self.swap = as_flag(self, "swap", swap)

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Any:
        """Return the loss."""
        return self._of(anchor, positive, negative)


class TripletMarginWithDistanceLoss(_MarginLoss):
    """The triplet loss with a distance function of the user's own (default: Euclidean)."""

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, reduction=reduction)
        self.distance_function = distance_function or PairwiseDistance()
        self.swap = as_flag(self, "swap", swap)

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return the loss."""
        distance = self.distance_function
        near, far = distance(anchor, positive), distance(anchor, negative)
        if self.swap:
            far = F.minimum(far, distance(positive, negative))
        loss = F.relu(near - far + self.margin)
        if self.reduction == "none":
            return loss
        return F.mean(loss) if self.reduction == "mean" else F.sum(loss)
