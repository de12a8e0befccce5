"""Muon: momentum of matrices, made orthogonal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ..core.errors import ArgumentError, ShapeError
from ..core.op import F
from .optimizer import Optimizer, given
from .transform import GradientTransform, State, Value, norm, per_value

Coefficients = tuple[float, float, float]


def orthogonalized(x: Value, coefficients: Coefficients, steps: int, eps: float) -> Value:
    """Return a matrix with nearly all singular values near 1, by Newton-Schulz iterations.

    Jordan et al. 2024: the quintic a x + b x^3 + c x^5 of singular values, which rises steeply at
    zero and does not settle at 1 but between 0.7 and 1.2.
    """
    a, b, c = coefficients
    tall = x.shape[0] > x.shape[1]
    x = F.permute(x, (1, 0)) if tall else x
    x = x / F.maximum(norm(x), eps)
    for _ in range(steps):
        gram = F.matmul(x, F.permute(x, (1, 0)))
        x = x * a + F.matmul(gram * b + F.matmul(gram, gram) * c, x)
    return F.permute(x, (1, 0)) if tall else x


# How the rate follows from the sizes of a matrix.
ADJUSTMENTS: dict[str, Callable[[int, int], float]] = {
    "original": lambda rows, columns: math.sqrt(max(1.0, rows / max(1, columns))),
    "match_rms_adamw": lambda rows, columns: 0.2 * math.sqrt(max(rows, columns)),
}


class Muon(Optimizer):
    """Step by the momentum of a matrix, made orthogonal (Jordan et al. 2024).

    It is for the matrices inside of a network; give embeddings, heads and vectors to AdamW.

    ns_coefficients, ns_steps   the polynomial of the iteration, and how often it is applied
    adjust_lr_fn                how `lr` follows the sizes of a matrix: "original", or
                                "match_rms_adamw" for rates that were tuned for AdamW

    The iteration is computed in the precision of the parameters.

    >>> import weft as wf
    >>> w = wf.nn.Parameter(wf.eye(2))
    >>> optimizer = wf.optim.Muon([w], lr=0.1)
    >>> optimizer.minimize((w * w).sum())
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: Coefficients = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        super().__init__(**given(locals()))

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Add a group of matrices."""
        super().add_param_group(group)
        for p in self.param_groups[-1]["params"]:
            if p.ndim != 2:
                self.param_groups.pop()
                raise ShapeError(
                    "Muon only supports 2D parameters whereas we found a parameter with size: "
                    f"{tuple(p.shape)}; give it to AdamW"
                )

    def check_group(self, group: Mapping[str, Any]) -> None:
        """Raise unless the iteration and the adjustment of the rate are known."""
        if len(group["ns_coefficients"]) != 3:
            raise ArgumentError(
                f"ns_coefficients must be 3 numbers. Received: {group['ns_coefficients']}"
            )
        if group["ns_steps"] >= 100:
            raise ArgumentError(f"ns_steps must be less than 100. Received: {group['ns_steps']}")
        chosen = group["adjust_lr_fn"]
        if chosen is not None and chosen not in ADJUSTMENTS:
            raise ArgumentError(
                f"adjust_lr_fn must be one of {', '.join(map(repr, ADJUSTMENTS))} or None. "
                f"Received: {chosen!r}"
            )

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return the step."""
        lr, momentum, decay = group["lr"], group["momentum"], group["weight_decay"]
        iteration = group["ns_coefficients"], group["ns_steps"], group["eps"]
        adjust = ADJUSTMENTS[group["adjust_lr_fn"] or "original"]

        def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
            buffer = s["momentum_buffer"] * momentum + g * (1.0 - momentum)
            ahead = g * (1.0 - momentum) + buffer * momentum if group["nesterov"] else buffer
            step = orthogonalized(ahead, *iteration) * adjust(*p.shape)
            return (step + p * decay) * -lr, {"momentum_buffer": buffer}

        return per_value(
            lambda p: {"momentum_buffer": F.zeros_like(p)},
            update,
            elementwise=False,
            slots=("momentum_buffer",),
        )
