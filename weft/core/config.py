"""Process-wide settings, each read where it matters and documented here."""

from __future__ import annotations


class Config:
    """Hold the settings of a process; assign attributes to change them.

    default_float     name of the dtype that Python floats become ("float32")
    debug_interpret   whether graphs run node by node instead of as machine code (False)
    """

    __slots__ = ("debug_interpret", "default_float")

    def __init__(self) -> None:
        self.default_float = "float32"
        self.debug_interpret = False


config = Config()
