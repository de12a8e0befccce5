"""Errors of shapes and dtypes, in Chainer's words."""

from __future__ import annotations

from typing import Any

from ...core.errors import WeftError


class InvalidType(WeftError, ValueError):  # noqa: N818  (Chainer's name)
    """Inputs of a function do not have the shapes or dtypes that it needs."""

    def __init__(self, expect: Any, actual: Any, msg: str | None = None) -> None:
        text = msg if msg is not None else f"Expect: {expect}\nActual: {actual}"
        super().__init__(text)
        self.expect, self.actual = expect, actual

    @classmethod
    def of(cls, where: str, error: Exception) -> InvalidType:
        """Return the error of a function from the one that an operator raised."""
        return cls(None, None, f"Invalid operation is performed in: {where} (Forward)\n\n{error}")


def expect(where: str, condition: bool, expected: str, actual: str) -> None:
    """Raise unless inputs are as a function expects them."""
    if not condition:
        head = f"Invalid operation is performed in: {where} (Forward)\n\n"
        raise InvalidType(expected, actual, f"{head}Expect: {expected}\nActual: {actual}")
