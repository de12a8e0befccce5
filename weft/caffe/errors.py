"""What is wrong with a net, said as Caffe says it: the layer, what was received, what to do."""

from __future__ import annotations

from ..core.errors import WeftError


class CaffeError(WeftError, ValueError):
    """A net, solver or file of Caffe cannot be used as it stands."""


class PrototxtError(CaffeError):
    """A prototxt file does not parse: the message begins with file:line:column."""

    def __init__(self, what: str, *, name: str = "<text>", line: int = 1, column: int = 1) -> None:
        super().__init__(f"{name}:{line}:{column}: {what}")
        self.name, self.line, self.column = name, line, column


class CaffemodelError(CaffeError):
    """A .caffemodel (or another binary message) is damaged, or is none."""
