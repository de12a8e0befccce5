"""Errors of the command line: what is wrong, and on which line of which file."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from ..core.errors import WeftError


class ConfigError(WeftError, ValueError):
    """A configuration file, or an option of the command line, that cannot be used."""


class UsageError(WeftError, ValueError):
    """A command that was given something it cannot work with."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most like a given one, if any is; case does not matter.

    >>> nearest("conv2D", ["Conv2d", "Linear"])
    'Conv2d'
    """
    by_lower = {name.lower(): name for name in known}
    found = difflib.get_close_matches(str(word).lower(), by_lower, n=1, cutoff=0.55)
    return by_lower[found[0]] if found else None


def hint(word: str, known: Iterable[str]) -> str:
    """Return "did you mean 'x'?", or the list of what there is.

    >>> hint("lrr", ["lr", "betas"])
    "did you mean 'lr'?"
    """
    listed = list(known)
    near = nearest(word, listed)
    if near is not None:
        return f"did you mean {near!r}?"
    return f"there are: {', '.join(listed)}" if listed else "there are none"
