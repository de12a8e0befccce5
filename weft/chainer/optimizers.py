"""`chainer.optimizers`: names and defaults, each with the rule of Weft's that computes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from .. import optim
from ..optim import classic
from .optimizer import GradientMethod

__all__ = [
    "SGD",
    "SMORMS3",
    "AMSGrad",
    "AdaDelta",
    "AdaGrad",
    "Adam",
    "AdamW",
    "CorrectedMomentumSGD",
    "MomentumSGD",
    "NesterovAG",
    "RMSprop",
    "RMSpropGraves",
]


class SGD(GradientMethod):
    """Follow the gradient."""

    rule: ClassVar[type[optim.Optimizer]] = optim.SGD
    settings: ClassVar[Mapping[str, str]] = {"lr": "lr"}

    def __init__(self, lr: float = 0.01) -> None:
        super().__init__(lr=lr)


class MomentumSGD(GradientMethod):
    """SGD with momentum; the rate is inside the velocity."""

    rule: ClassVar[type[optim.Optimizer]] = classic.VelocitySGD
    settings: ClassVar[Mapping[str, str]] = {"lr": "lr", "momentum": "momentum"}

    def __init__(self, lr: float = 0.01, momentum: float = 0.9) -> None:
        super().__init__(lr=lr, momentum=momentum)


class NesterovAG(MomentumSGD):
    """SGD with momentum that looks ahead."""

    rule: ClassVar[type[optim.Optimizer]] = classic.ChainerNesterov


class CorrectedMomentumSGD(MomentumSGD):
    """SGD with momentum; the rate is outside the velocity."""

    rule: ClassVar[type[optim.Optimizer]] = optim.SGD


class AdaGrad(GradientMethod):
    """Rates that fall with the squares of all gradients so far."""

    rule: ClassVar[type[optim.Optimizer]] = optim.Adagrad
    settings: ClassVar[Mapping[str, str]] = {"lr": "lr", "eps": "eps"}

    def __init__(self, lr: float = 0.001, eps: float = 1e-8) -> None:
        super().__init__(lr=lr, eps=eps)


class AdaDelta(GradientMethod):
    """Steps whose size follows from steps of the past."""

    rule: ClassVar[type[optim.Optimizer]] = optim.Adadelta
    settings: ClassVar[Mapping[str, str]] = {"rho": "rho", "eps": "eps"}
    fixed: ClassVar[Mapping[str, Any]] = {"lr": 1.0}

    def __init__(self, rho: float = 0.95, eps: float = 1e-6) -> None:
        super().__init__(rho=rho, eps=eps)


class RMSprop(GradientMethod):
    """Rates that fall with a moving average of squared gradients."""

    rule: ClassVar[type[optim.Optimizer]] = optim.RMSprop
    settings: ClassVar[Mapping[str, str]] = {"lr": "lr", "alpha": "alpha", "eps": "eps"}

    def __init__(
        self,
        lr: float = 0.01,
        alpha: float = 0.99,
        eps: float = 1e-8,
        eps_inside_sqrt: bool = False,
    ) -> None:
        super().__init__(lr=lr, alpha=alpha, eps=eps)
        if eps_inside_sqrt:
            self.__class__ = _InnerRMSprop


class _InnerRMSprop(RMSprop):
    rule: ClassVar[type[optim.Optimizer]] = classic.InnerRMSprop


class RMSpropGraves(GradientMethod):
    """RMSprop with a centred second moment and momentum."""

    rule: ClassVar[type[optim.Optimizer]] = classic.GravesRMSprop
    settings: ClassVar[Mapping[str, str]] = {
        "lr": "lr",
        "alpha": "alpha",
        "momentum": "momentum",
        "eps": "eps",
    }

    def __init__(
        self, lr: float = 1e-4, alpha: float = 0.95, momentum: float = 0.9, eps: float = 1e-4
    ) -> None:
        super().__init__(lr=lr, alpha=alpha, momentum=momentum, eps=eps)


class SMORMS3(GradientMethod):
    """A rate for each element from how steady its gradient is."""

    rule: ClassVar[type[optim.Optimizer]] = classic.SMORMS3
    settings: ClassVar[Mapping[str, str]] = {"lr": "lr", "eps": "eps"}

    def __init__(self, lr: float = 0.001, eps: float = 1e-16) -> None:
        super().__init__(lr=lr, eps=eps)


class Adam(GradientMethod):
    """Adam, with epsilon beside the root of the uncorrected moment."""

    rule: ClassVar[type[optim.Optimizer]] = classic.HatAdam

    def __init__(
        self,
        alpha: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        eta: float = 1.0,
        weight_decay_rate: float = 0.0,
        amsgrad: bool = False,
        adabound: bool = False,
        final_lr: float = 0.1,
        gamma: float = 0.001,
    ) -> None:
        if adabound:
            raise NotImplementedError("AdaBound is not served: use Adam(amsgrad=True)")
        super().__init__(
            alpha=alpha,
            beta1=beta1,
            beta2=beta2,
            eps=eps,
            eta=eta,
            weight_decay_rate=weight_decay_rate,
            amsgrad=amsgrad,
        )

    @property
    def lr(self) -> float:
        """The rate of the next step, with the corrections of both moments."""
        if self.t == 0:
            raise RuntimeError("the learning rate of Adam is known after the first update")
        return float(self.alpha * (1 - self.beta2**self.t) ** 0.5 / (1 - self.beta1**self.t))

    def _rule_settings(self) -> dict[str, Any]:
        return {
            "lr": self.alpha,
            "betas": (self.beta1, self.beta2),
            "eps": self.eps,
            "eta": self.eta,
            "decay_rate": self.weight_decay_rate,
            "amsgrad": self.amsgrad,
        }


class AdamW(Adam):
    """Adam with decay of the weights beside it."""

    def __init__(
        self,
        alpha: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        eta: float = 1.0,
        weight_decay_rate: float = 0.0,
    ) -> None:
        super().__init__(alpha, beta1, beta2, eps, eta, weight_decay_rate)


class AMSGrad(Adam):
    """Adam with the largest second moment so far."""

    def __init__(
        self,
        alpha: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        eta: float = 1.0,
    ) -> None:
        super().__init__(alpha, beta1, beta2, eps, eta, amsgrad=True)
