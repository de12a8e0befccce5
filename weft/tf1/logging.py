"""`tf.logging`: messages of the program, by Python's logging."""

from __future__ import annotations

import logging as _logging
from typing import Any

__all__ = [
    "DEBUG",
    "ERROR",
    "FATAL",
    "INFO",
    "WARN",
    "debug",
    "error",
    "fatal",
    "info",
    "set_verbosity",
    "warn",
    "warning",
]

DEBUG, INFO, WARN, ERROR, FATAL = (
    _logging.DEBUG,
    _logging.INFO,
    _logging.WARNING,
    _logging.ERROR,
    _logging.CRITICAL,
)
_logger = _logging.getLogger("tensorflow")
debug, info, error, fatal = _logger.debug, _logger.info, _logger.error, _logger.critical
warn = warning = _logger.warning


def set_verbosity(level: Any) -> None:
    """Show messages from a level on."""
    if not _logger.handlers:
        handler = _logging.StreamHandler()
        handler.setFormatter(_logging.Formatter("%(levelname)s:tensorflow:%(message)s"))
        _logger.addHandler(handler)
        _logger.propagate = False
    _logger.setLevel(level)


def get_verbosity() -> int:
    """Return the level from which on messages are shown."""
    return _logger.getEffectiveLevel()


def log_every_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Show a message."""
    _logger.log(level, msg, *args)


log = _logger.log
