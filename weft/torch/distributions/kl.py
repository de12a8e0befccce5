"""The part of torch.distributions that PyTorch keeps under this name."""

from __future__ import annotations

from . import kl_divergence, register_kl

__all__ = ["kl_divergence", "register_kl"]
