"""Where errors of Weft's become PyTorch's: the words are looked up when there is an error.

Operators and functions of Weft's find `phrase` by the class of their operands (core/wording.py);
functions, constructors and methods of this face that are given no tensors call it themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..core.errors import WeftError

SAID = "_weft_error"  # the attribute of an error in PyTorch's words that holds Weft's
Function = Callable[..., Any]


def phrase(error: Exception, function: str, given: dict[str, Any]) -> Exception:
    """Return what PyTorch raises where Weft raises an error.

    function   what met it: a function of Weft's, or a constructor or method of this face
    given      its arguments by name; `args` are all that were given by place
    """
    if not isinstance(error, WeftError) and not hasattr(error, SAID):
        return error
    from .words import in_their_words  # noqa: PLC0415  (for those who meet an error)

    return in_their_words(error, function, given)


def phrased(function: Function, name: str | None = None) -> Function:
    """Return a constructor, or a method, whose errors are in PyTorch's words."""
    code: Any = function.__code__
    names = code.co_varnames[: code.co_argcount]

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            given = {**dict(zip(names, args, strict=False)), "args": args, **kwargs}
            found = phrase(error, name or function.__qualname__, given)
            if found is error:
                raise
            raise found from None

    return call
