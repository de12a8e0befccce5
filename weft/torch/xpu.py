"""torch.xpu: there is no such device."""

from __future__ import annotations

from .cuda import device_count, empty_cache, is_available, manual_seed, synchronize

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "synchronize"]
