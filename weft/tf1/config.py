"""Settings of sessions: they are taken, and mean nothing here."""

from __future__ import annotations

from typing import Any

__all__ = [
    "ConfigProto",
    "GPUOptions",
    "GraphOptions",
    "OptimizerOptions",
    "RunMetadata",
    "RunOptions",
]


class _Settings:
    """Settings by name; what is not set is made when it is asked for."""

    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(settings)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _Settings()
        self.__dict__[name] = made
        return made

    def SerializeToString(self) -> bytes:
        """Return nothing: there is nothing to send."""
        return b""


class ConfigProto(_Settings):
    """Settings of a session; threads are set by `weft.set_num_threads`."""


class GPUOptions(_Settings):
    """Settings of GPUs; there are none."""


class GraphOptions(_Settings):
    """Settings of graphs; all of them are optimised."""


class OptimizerOptions(_Settings):
    """Settings of the optimiser of graphs."""

    L0, L1, OFF, ON_1, ON_2 = -1, 0, -1, 1, 2


class RunOptions(_Settings):
    """Settings of a run."""

    NO_TRACE, SOFTWARE_TRACE, HARDWARE_TRACE, FULL_TRACE = 0, 1, 2, 3


class RunMetadata(_Settings):
    """What is known after a run; Weft's profiler is `session.executable(...).profile()`."""
