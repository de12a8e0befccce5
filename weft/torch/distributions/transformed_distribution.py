"""The part of torch.distributions that PyTorch keeps under this name."""

from __future__ import annotations

from . import CLASSES

TransformedDistribution = CLASSES["TransformedDistribution"]
