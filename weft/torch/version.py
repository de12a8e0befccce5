"""torch.version: of the names that this face has; of GPUs' software there is none."""

from __future__ import annotations

__version__ = "2.13.0"
cuda = hip = git_version = None
debug = False
