"""The part of torch.utils.data that PyTorch keeps under this name."""

from __future__ import annotations

from . import DataLoader, default_collate

__all__ = ["DataLoader", "default_collate"]
