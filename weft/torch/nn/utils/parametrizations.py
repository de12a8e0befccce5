"""Weights that are computed from others: weight_norm, spectral_norm, orthogonal."""

from __future__ import annotations

from typing import Any

from .... import nn as core_nn


def weight_norm(module: Any, name: str = "weight", dim: int = 0) -> Any:
    """Let a weight be a direction times a magnitude."""
    return core_nn.weight_norm(module, name, dim)


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Let a weight be divided by its largest singular value."""
    return core_nn.spectral_norm(module, name, n_power_iterations, eps, dim)
