"""Adam and its relatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.errors import ArgumentError
from .optimizer import Optimizer, given
from .scaling import scale_by_adam, scale_by_adamax, scale_by_nadam, scale_by_radam
from .sgd import descent
from .transform import GradientTransform, add_decayed_weights

Betas = tuple[float, float]


class MomentOptimizer(Optimizer):
    """Base of methods with decay rates `betas` and a choice of coupled or decoupled weight decay.

    Coupled decay enters the gradient and so the moments; decoupled decay (Loshchilov & Hutter 2019)
    shrinks the parameter beside them.
    """

    def scaling(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return how the method scales gradients; each subclass says so."""
        raise NotImplementedError

    def check_group(self, group: Mapping[str, Any]) -> None:
        """Raise unless there are as many decay rates as the method has."""
        wanted = len(self.defaults["betas"])
        if len(group["betas"]) != wanted:
            raise ArgumentError(f"betas must be {wanted} numbers. Received: {group['betas']}")

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return the scaling with weight decay before or after it, and the learning rate."""
        decay = add_decayed_weights(group["weight_decay"])
        parts = [decay, self.scaling(group)]
        if group.get("decoupled_weight_decay", False):
            parts.reverse()
        return descent(group, *parts)


class Adam(MomentOptimizer):
    """Scale by moving averages of gradients and their squares (Kingma & Ba 2015).

    Of a parameter with a row-sparse gradient, rows without one and their averages stay as they are.

    >>> import weft as wf
    >>> w = wf.tensor([1.0, -1.0], requires_grad=True)
    >>> optimizer = wf.optim.Adam([w], lr=0.1)
    >>> optimizer.minimize((w**4).sum())
    >>> w.detach()
    tensor([ 0.9, -0.9])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(**given(locals()))

    def scaling(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return Adam's scaling."""
        return scale_by_adam(*group["betas"], eps=group["eps"], amsgrad=group["amsgrad"])


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(**given(locals()), decoupled_weight_decay=True)


class Amsgrad(Adam):
    """Adam that divides by the largest second moment so far (Reddi et al. 2018)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(**given(locals()), amsgrad=True)


class SparseAdam(MomentOptimizer):
    """Adam for row-sparse gradients alone: it changes the rows that have one, and their moments.

    The numbers are those of PyTorch's SparseAdam: eps is added before the root is corrected.

    >>> import weft as wf
    >>> table = wf.nn.Embedding(1000, 2, sparse=True)
    >>> optimizer = wf.optim.SparseAdam(table.parameters(), lr=0.1)
    >>> optimizer.minimize(table(wf.tensor([7, 3])).sum())
    """

    takes_dense = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(**given(locals()))

    def scaling(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return Adam's scaling, with eps where PyTorch has it."""
        return scale_by_adam(*group["betas"], eps=group["eps"], eps_hat=True)

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return the scaling and the learning rate."""
        return descent(group, self.scaling(group))


class Adamax(MomentOptimizer):
    """Adam with the maximum norm in place of the second moment (Kingma & Ba 2015, section 7)."""

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(**given(locals()))

    def scaling(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return Adamax's scaling."""
        return scale_by_adamax(*group["betas"], eps=group["eps"])


class NAdam(MomentOptimizer):
    """Adam with Nesterov momentum (Dozat 2016)."""

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(**given(locals()))

    def scaling(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return NAdam's scaling."""
        return scale_by_nadam(
            *group["betas"], eps=group["eps"], momentum_decay=group["momentum_decay"]
        )


class RAdam(MomentOptimizer):
    """Adam that waits until its variance estimate can be trusted (Liu et al. 2020)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(**given(locals()))

    def scaling(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return RAdam's scaling."""
        return scale_by_radam(*group["betas"], eps=group["eps"])
