"""PyTorch's keywords for Weft's parameters, and calls that PyTorch's keywords give another meaning.

Parameters have the names of NumPy and the array API. PyTorch's names of them are understood
everywhere: `dim` for axis, `keepdim` for keepdims, `input` and `other` for the operands, and what
an operator declares beside these. Where PyTorch's call means something else (`max` with `dim` gives
values and indices), the operator has a rule for it, which runs when one of PyTorch's own keywords
is given: numbers never change silently with the spelling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from .errors import ArgumentError, ArgumentTypeError, WeftError
from .imports import deferred_imports
from .wording import worded

if TYPE_CHECKING:
    from .op import Op

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<not given>"})()
OPERANDS = ("input", "other")
SYNONYMS = {"dim": "axis", "dims": "axis", "keepdim": "keepdims"}


def synonyms(
    operands: Iterable[str], parameters: Iterable[str], declared: Mapping[str, str]
) -> dict[str, str]:
    """Return PyTorch's keywords of a function, each with the parameter it stands for."""
    taken = frozenset(parameters)
    found = dict(zip(OPERANDS, operands, strict=False))
    found |= {keyword: name for keyword, name in SYNONYMS.items() if name in taken}
    return {k: name for k, name in (found | dict(declared)).items() if k not in taken}


def call_with_keywords(
    op: Op, function: Callable[..., Any], arguments: dict[str, Any], keywords: dict[str, Any]
) -> Any:
    """Call an operator's function with PyTorch's keywords, or the rule it has for them.

    arguments  all parameters by name, at their defaults where the call names none
    keywords   what else the call names
    """
    if not op.rule_keywords.isdisjoint(keywords):
        assert op.keyword_rule is not None
        given = _for_rule(op, arguments, keywords)
        try:
            return op.keyword_rule(**given)
        except WeftError as error:
            raise worded(error, op.name, lambda: given, given.values()) from None
    for name, value in rename(op.name, keywords, op.synonyms).items():
        if not _is_default(op, name, arguments[name]):
            raise ArgumentTypeError(given_twice(op.name, name, keywords))
        arguments[name] = value
    return function(**arguments)


def named(**keywords: Any) -> dict[str, Any]:
    """Return the keywords that a call names."""
    return {name: value for name, value in keywords.items() if value is not MISSING}


def _is_default(op: Op, name: str, value: Any) -> bool:
    return value is MISSING or value is op.attrs.get(name)


def _for_rule(op: Op, arguments: dict[str, Any], keywords: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call under the names that the operator's rule has for them."""
    known: dict[str, Any] = {}
    for keyword, value in keywords.items():
        own = keyword in op.rule_keywords
        known |= {keyword: value} if own else rename(op.name, {keyword: value}, op.synonyms)
    spelling = {name: k for k, name in op.synonyms.items() if k in op.rule_keywords}
    for name, value in arguments.items():
        if _is_default(op, name, value):
            continue
        parameter = name if name in op.rule_parameters else spelling.get(name)
        if parameter is None or parameter in known:
            raise ArgumentTypeError(given_twice(op.name, name, keywords))
        known[parameter] = value
    return known


def rename(function: str, keywords: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return arguments under the names of their parameters; raise for a keyword without one."""
    renamed: dict[str, Any] = {}
    for keyword, value in keywords.items():
        name = names.get(keyword)
        if name is None:
            raise ArgumentTypeError(f"{function}() got an unexpected keyword argument {keyword!r}")
        if name in renamed:
            raise ArgumentTypeError(given_twice(function, name, keywords))
        renamed[name] = value
    return renamed


def given_twice(function: str, name: str, keywords: Mapping[str, Any]) -> str:
    """Return the message for an argument that a call gives in two ways."""
    others = ", ".join(keywords)
    received = ", ".join(f"{keyword}={value!r:.60}" for keyword, value in keywords.items())
    return (
        f"{function}: {name} and {others} are the same argument; give one of them. "
        f"Received: {name} and {received}"
    )


def check_given(op: Op, inputs: Iterable[Any]) -> None:
    """Raise if an operand is missing; a default stands in for it, since `input=` may bring it."""
    for name, value in zip(op.inputs, inputs, strict=False):
        if value is MISSING:
            raise ArgumentTypeError(f"{op.name}: the argument {name!r} is missing")


# -- values and indices ------------------------------------------------------------------------

# Calls whose result is not taken in two, by the id of their code (hashing it is far slower) and the
# place in it. The code is kept beside, so that the id stays its own.
plain_uses: dict[tuple[int, int], CodeType] = {}
_MAX_USES = 100_000
_passing: dict[int, CodeType] = {}


def pass_calls(code: CodeType) -> None:
    """Declare a function that only hands a call on: who calls it is who uses the result."""
    _passing[id(code)] = code


def refuse_pair(name: str, frame: FrameType) -> None:
    """Raise if the calling code takes a result in two, as PyTorch's values and indices are.

    `v, i = x.max(0)` unpacks rows here if there happen to be two, and `x.max(1)[1]` is a row, so
    that numbers would change silently. Only `axis=` says that this is meant.
    """
    while id(frame.f_code) in _passing and frame.f_back is not None:
        frame = frame.f_back
    place = (id(frame.f_code), frame.f_lasti)
    if place in plain_uses:
        return
    with deferred_imports:
        from .bytecode import use_of_result  # noqa: PLC0415  (once for each place in a program)
    use = use_of_result(frame.f_code, frame.f_lasti)
    if use is not None:
        raise ArgumentError(
            f"{name}: {use} takes values and indices apart in PyTorch, and rows of the values "
            "in NumPy; say dim= for PyTorch's pair (values, indices), or axis= for the values "
            f"alone, as in wf.{name}(x, axis=0)"
        )
    if len(plain_uses) < _MAX_USES:
        plain_uses[place] = frame.f_code
