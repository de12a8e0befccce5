"""torch.signal.windows: weights that fall to the ends."""

from __future__ import annotations

from typing import Any

from ...ops.signal import windows as core_windows
from ..calls import face_function

FUNCTIONS: dict[str, Any] = {
    name: face_function(getattr(core_windows, name), name) for name in core_windows.__all__
}
globals().update(FUNCTIONS)
