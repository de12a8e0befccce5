"""Errors of the command line: what is wrong, and on which line of which file."""

from __future__ import annotations

from ..core.errors import WeftError


class ConfigError(WeftError, ValueError):
    """A configuration file, or an option of the command line, that cannot be used."""


class UsageError(WeftError, ValueError):
    """A command that was given something it cannot work with."""


# What a mistake in a configuration makes the code raise that it is given to.
BUILD_ERRORS = (WeftError, OSError, ValueError, TypeError, IndexError, ZeroDivisionError)
