"""torch.cuda.amp: mixed precision on a GPU, of which nothing happens here."""

from __future__ import annotations

from typing import Any

from ..amp import GradScaler
from ..amp import autocast as any_autocast

__all__ = ["GradScaler", "autocast"]


class autocast(any_autocast):  # noqa: N801  (PyTorch's name)
    """A context in which a GPU would compute in half precision."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled)
