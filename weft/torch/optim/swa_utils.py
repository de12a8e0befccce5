"""torch.optim.swa_utils: averages of weights, and the schedule that goes with them."""

from __future__ import annotations

from ...optim import update_bn
from ...optim.lr import SWALR

__all__ = ["SWALR", "update_bn"]
