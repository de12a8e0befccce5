"""What the faces of other frameworks share: how programs that import them are served."""

from __future__ import annotations

from .absent import absent_names
from .serving import Serving, serving

__all__ = [
    "Serving",
    "absent_names",
    "serving",
]
