"""`chainer.optimizer_hooks`: changes of gradients before an update."""

from __future__ import annotations

from typing import Any

from ..core.modes import no_grad
from ..core.op import F
from ..ops.random.draw import randn
from .optimizer import GradientMethod, change_gradients, gradients_of

__all__ = [
    "GradientClipping",
    "GradientHardClipping",
    "GradientLARS",
    "GradientNoise",
    "Lasso",
    "WeightDecay",
]


class WeightDecay:
    """Add a multiple of the weights to their gradients."""

    name, timing, call_for_each_param = "WeightDecay", "pre", True

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(self, opt: GradientMethod) -> None:
        """Change the gradients of an optimizer."""
        change_gradients(opt, lambda p, g: g + p * self.rate)


class Lasso:
    """Add a multiple of the weights' signs to their gradients."""

    name, timing, call_for_each_param = "Lasso", "pre", True

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(self, opt: GradientMethod) -> None:
        """Change the gradients of an optimizer."""
        change_gradients(opt, lambda p, g: g + F.sign(p) * self.rate)


class GradientClipping:
    """Shrink all gradients together to a joint norm."""

    name, timing, call_for_each_param = "GradientClipping", "pre", False

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def __call__(self, opt: GradientMethod) -> None:
        """Change the gradients of an optimizer."""
        with no_grad():
            tensors = [p._tensor for p in gradients_of(opt)]
            squares = [F.sum(F.square(t.grad.detach())) for t in tensors]
            if not squares:
                return
            norm = F.sqrt(sum(squares[1:], squares[0]))
            rate = F.minimum(self.threshold / F.maximum(norm, 1e-30), 1.0)
            for tensor in tensors:
                tensor.grad = tensor.grad.detach() * F.cast(rate, tensor.dtype)


class GradientHardClipping:
    """Keep each element of the gradients between two numbers."""

    name, timing, call_for_each_param = "GradientHardClipping", "pre", True

    def __init__(self, lower_bound: float, upper_bound: float) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def __call__(self, opt: GradientMethod) -> None:
        """Change the gradients of an optimizer."""
        change_gradients(opt, lambda p, g: F.clip(g, self.lower_bound, self.upper_bound))


class GradientNoise:
    """Add noise to gradients, less with each update: deviation sqrt(eta / (1 + t)^0.55)."""

    name, timing, call_for_each_param = "GradientNoise", "pre", True

    def __init__(self, eta: float, noise_func: Any = None) -> None:
        if noise_func is not None:
            raise NotImplementedError("noise_func is not served: the noise is normal")
        self.eta = eta

    def __call__(self, opt: GradientMethod) -> None:
        """Change the gradients of an optimizer."""
        deviation = (self.eta / (1 + opt.t) ** 0.55) ** 0.5
        change_gradients(opt, lambda p, g: g + randn(*g.shape, dtype=g.dtype) * deviation)


class GradientLARS:
    """Scale the gradient of each parameter by the ratio of its weights' norm to it."""

    name, timing, call_for_each_param = "GradientLARS", "pre", True

    def __init__(
        self, threshold: float = 1e-2, weight_decay: float = 0.0, eps: float = 1e-9
    ) -> None:
        self.threshold, self.weight_decay, self.eps = threshold, weight_decay, eps

    def __call__(self, opt: GradientMethod) -> None:
        """Change the gradients of an optimizer."""

        def scaled(p: Any, g: Any) -> Any:
            of_p, of_g = F.sqrt(F.sum(F.square(p))), F.sqrt(F.sum(F.square(g)))
            rate = of_p / (self.eps + of_g + self.weight_decay * of_p)
            rate = F.where(of_p > self.threshold, rate, 1.0)
            return (g + p * self.weight_decay) * F.cast(rate, g.dtype)

        change_gradients(opt, scaled)
