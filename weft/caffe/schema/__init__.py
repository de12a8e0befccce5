"""Caffe's messages, as data: nets, layers, solvers, blobs, their fields, numbers and defaults.

`message.py` makes objects of them, `text/` reads and prints prototxt, `binary.py` reads and writes
their binary form.
"""

from __future__ import annotations

from . import data, layers, net, old, solver
from .declare import EnumType, Field, MessageType, enum_type, message_type

__all__ = ["ENUMS", "TYPES", "EnumType", "Field", "MessageType"]

ENUMS: dict[str, EnumType] = {e.name: e for e in map(enum_type, net.ENUMS)}
_LINES = net.MESSAGES | layers.MESSAGES | data.MESSAGES | solver.MESSAGES | old.MESSAGES
TYPES: dict[str, MessageType] = {
    name: message_type(name, lines, ENUMS) for name, lines in _LINES.items()
}
