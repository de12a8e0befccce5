"""Wire types: how a value of a field is written."""

from __future__ import annotations

from typing import Final

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
GROUP: Final = 3
GROUP_END: Final = 4
FIXED32: Final = 5

NAMES: Final = {
    VARINT: "a varint",
    FIXED64: "eight bytes",
    BYTES: "bytes with a length",
    GROUP: "a group",
    FIXED32: "four bytes",
}
