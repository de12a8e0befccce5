"""Errors in PyTorch's words: its type, and its sentence with the facts of Weft's error.

Weft checks; here is only how PyTorch says it, by rules for what was called. What Weft said, with
the operator and the user's lines, stays as a note below the message.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from ...core.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    DTypeError,
    IndexOutOfRange,
    LinalgError,
    ShapeError,
    UnknownSizeError,
    WeftError,
    is_final,
)
from ...core.tensor import Tensor
from ..linalg import LinAlgError
from ..phrasing import SAID
from ..sentences import dimension_out_of_range, unequal_sizes
from . import (
    creation,
    data,
    indexing,
    modules,
    networks,
    optimizers,
    products,
    reductions,
    shapes,
    transforms,
)
from .refused import Refused, Rule

RULES: dict[str, Rule] = {
    **products.RULES,
    **shapes.RULES,
    **reductions.RULES,
    **indexing.RULES,
    **creation.RULES,
    **networks.RULES,
    **modules.RULES,
    **optimizers.RULES,
    **data.RULES,
    **transforms.RULES,
}
# What PyTorch raises where no rule says more; of other errors the class is the same already.
KINDS: tuple[tuple[type[WeftError], type[Exception]], ...] = (
    (AxisError, IndexError),
    (ShapeError, RuntimeError),
    (IndexOutOfRange, IndexError),
    (DTypeError, RuntimeError),
    (ArgumentTypeError, TypeError),
    (ArgumentError, RuntimeError),
    (LinalgError, LinAlgError),
)
# Constructors of PyTorch's are written in Python, and raise what Python's functions do.
CONSTRUCTOR = ".__init__"


def in_their_words(error: Exception, function: str, given: dict[str, Any]) -> Exception:
    """Return what PyTorch raises where Weft raises an error.

    function   the function of Weft's that met it; around it, others may know better words
    """
    met = getattr(error, SAID, error)
    if not isinstance(met, WeftError) or isinstance(met, UnknownSizeError) or is_final(met):
        return error
    refused = Refused(met, function, given)
    found = _by_rule(refused)
    if found is None:
        found = _in_general(refused) if met is error else error
    if found is error:
        return error
    if str(found) != str(met):
        found.add_note(f"weft: {met}")
    setattr(found, SAID, met)
    return found


def _by_rule(refused: Refused) -> Exception | None:
    """Return what the rule of a function says; it reads arguments, which may be anything."""
    rule = RULES.get(refused.function)
    if rule is None:
        return None
    with suppress(AttributeError, TypeError, IndexError, KeyError, ValueError, StopIteration):
        return rule(refused)
    return None


def _in_general(refused: Refused) -> Exception:
    """Return what PyTorch raises for what many functions can meet."""
    facts = refused.facts
    if refused.is_a(AxisError) and "ndim" in facts:
        return dimension_out_of_range(facts["axis"], facts["ndim"])
    if "twice" in facts:
        return RuntimeError(f"dim {facts['twice']} appears multiple times in the list of dims")
    if "shapes" in facts:
        return unequal_sizes(facts["shapes"])
    if "index" in facts and facts.get("axis") is not None:
        return indexing.out_of_bounds(refused, IndexError)
    if refused.is_a(ArgumentTypeError):
        return _wrong_operand(refused) or TypeError(str(refused.error))
    return _of_its_kind(refused)


def _wrong_operand(refused: Refused) -> Exception | None:
    """Return what PyTorch raises for an operand that is no tensor."""
    if "." in refused.function:
        return None  # a method, or a constructor
    operands = refused["args"] or [refused[name] for name in ("x", "y") if name in refused.given]
    for place, (name, x) in enumerate(zip(("input", "other"), operands, strict=False), 1):
        if not isinstance(x, (Tensor, bool, int, float)):
            return TypeError(
                f"{refused.function}(): argument '{name}' (position {place}) must be Tensor, not "
                f"{type(x).__name__}"
            )
    return None


def _of_its_kind(refused: Refused) -> Exception:
    error = refused.error
    for ours, theirs in KINDS:
        if isinstance(error, ours):
            python = refused.function.endswith(CONSTRUCTOR) and theirs is RuntimeError
            return (ValueError if python else theirs)(str(error))
    return error
