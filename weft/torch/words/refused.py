"""A call that Weft refused: what rules that phrase it are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.errors import WeftError
from ..types import type_name


class Refused:
    """An error of Weft's, with the function that met it and its arguments by name."""

    def __init__(self, error: WeftError, function: str, given: Mapping[str, Any]) -> None:
        self.error = error
        self.function = function
        self.given = given

    def __getitem__(self, name: str) -> Any:
        """Return an argument; None where the call leaves it out."""
        return self.given.get(name)

    def is_a(self, *kinds: type[WeftError]) -> bool:
        """Tell whether the error is one of some classes."""
        return isinstance(self.error, kinds)

    @property
    def facts(self) -> Mapping[str, Any]:
        """Return what Weft's check met."""
        return self.error.facts


Rule = Callable[[Refused], Exception | None]


def sizes(x: Any) -> list[Any]:
    """Return the sizes of a tensor as PyTorch writes them: [2, 3]."""
    return list(x.shape)


def joined(shape: Sequence[Any]) -> str:
    """Return sizes as PyTorch writes those of matrices: 2x3."""
    return "x".join(map(str, shape))


def kind_of(x: Any) -> str:
    """Return PyTorch's old name of a tensor's dtype: Float, Long."""
    return type_name(x.dtype)


def always(kind: type[Exception], sentence: str) -> Rule:
    """Return the rule of a function that PyTorch refuses with one sentence."""
    return lambda refused: kind(sentence)
