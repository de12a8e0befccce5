"""Signals: `wf.signal.windows` holds the window functions, under PyTorch's names."""

from __future__ import annotations

from .ops.signal import windows

__all__ = ["windows"]
