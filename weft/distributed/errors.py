"""Errors of programs that run as several processes."""

from __future__ import annotations

from ..core.errors import WeftError


class DistributedError(WeftError, RuntimeError):
    """Several processes cannot do together what was asked for."""


class MismatchError(DistributedError):
    """Processes came to a collective operation with different shapes, dtypes or operations."""
