"""Process-wide settings, each read where it matters and documented here."""

from __future__ import annotations

import os


class Config:
    """Hold the settings of a process; assign attributes to change them.

    default_float     name of the dtype that Python floats become ("float32")
    debug_interpret   whether graphs run node by node instead of as machine code (False)
    eager_kernels     whether operations on large tensors run as machine code (True, unless
                      the environment sets WEFT_EAGER_KERNELS=0)
    """

    __slots__ = ("debug_interpret", "default_float", "eager_kernels")

    def __init__(self) -> None:
        self.default_float = "float32"
        self.debug_interpret = False
        self.eager_kernels = os.environ.get("WEFT_EAGER_KERNELS", "1").strip() != "0"


config = Config()
