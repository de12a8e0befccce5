"""`tf.app`: main functions and flags."""

from __future__ import annotations

import sys
from typing import Any

from . import flags as flags

__all__ = ["flags", "run"]


def run(main: Any = None, argv: Any = None) -> None:
    """Read the flags, run the main function of the program, and exit."""
    arguments = list(sys.argv if argv is None else argv)
    left = flags.FLAGS(arguments)
    function = main if main is not None else sys.modules["__main__"].main
    sys.exit(function(left))
