"""Where rules of the user's come in: what was given is checked, tried, and registered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.op import Op
from .match import Call, Number, Rule, Var, pattern_text
from .user_rule_check import check_rule
from .user_rules import STAGES, UserRule, add_rule, remove_rule, user_rules


class RegisteredRule:
    """A rule that applies until it is removed, or until the end of a `with` block."""

    def __init__(self, user: UserRule) -> None:
        self._user = user
        self.name = user.rule.name
        self.stage = user.stage

    def remove(self) -> None:
        """Let the rule apply no more; programs are compiled anew."""
        remove_rule(self._user)

    def __enter__(self) -> RegisteredRule:
        """Return the rule."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the rule."""
        self.remove()

    def __repr__(self) -> str:
        return f"<rule {self.name!r}: {pattern_text(self._user.rule.pattern)} at {self.stage}>"


def register_rule(
    name: Any,
    pattern: Any,
    replacement: Any,
    stage: Any,
    check: Any,
    examples: Sequence[Any] | None,
) -> RegisteredRule:
    """Register a rule after a look at everything that was given."""
    _check_name(name)
    if stage not in STAGES:
        raise ArgumentError(
            f"rewrite: stage must be {' or '.join(map(repr, STAGES))}. Received: {stage!r:.60}"
        )
    if not isinstance(check, bool):
        raise ArgumentTypeError(f"rewrite: check must be True or False. Received: {check!r:.60}")
    if examples is not None and (isinstance(examples, str) or not isinstance(examples, Sequence)):
        raise ArgumentTypeError(
            "rewrite: examples must be a list of (function, *arrays). "
            f"Received: {type(examples).__name__}"
        )
    if not isinstance(pattern, Call):
        raise ArgumentTypeError(
            'rewrite: the pattern must be a call of an operator, such as P.exp(Var("x")). '
            f"Received: {pattern!r:.60}"
        )
    rule = Rule(name, _as_pattern(pattern), _as_replacement(replacement, pattern))
    user = UserRule(rule, stage)
    if check:
        check_rule(user, examples)
    add_rule(user)
    return RegisteredRule(user)


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise ArgumentTypeError(
            f"rewrite: the name must be a non-empty string. Received: {name!r:.60}"
        )
    if any(user.rule.name == name for user in user_rules()):
        raise ArgumentError(f"rewrite: there is a rule named {name!r}; remove it first")


# -- patterns --------------------------------------------------------------------------------------


def _as_pattern(part: Any) -> Any:
    """Return a pattern with numbers in it as patterns that match them."""
    if isinstance(part, Call):
        _check_call(part)
        return replace(part, args=tuple(map(_as_pattern, part.args)))
    if isinstance(part, (Var, Number)):
        return part
    if isinstance(part, (int, float)):
        return Number(lambda n, dtype: n == part, repr(part), part)
    raise ArgumentTypeError(
        "rewrite: a pattern is made of P.operator(...), Var, Number and numbers. "
        f"Received: {part!r:.60}"
    )


def _check_call(call: Call) -> None:
    op = call.op
    if not isinstance(op, Op):
        raise ArgumentTypeError(
            f"rewrite: {getattr(op, 'name', op)!s} is made of other operators; a graph has only "
            "those, so write the pattern of them"
        )
    least = len(op.inputs) - op.variadic - len(op.optional)
    most = len(op.inputs) if not op.variadic else max(len(call.args), least)
    if not least <= len(call.args) <= most:
        raise ArgumentError(
            f"rewrite: {op.name} takes {', '.join(op.inputs)}. Received: {pattern_text(call)}"
        )


def _as_replacement(part: Any, pattern: Call) -> Any:
    """Return a replacement that uses only what the pattern binds."""
    if isinstance(part, Call):
        _check_call(part)
        if part.op.attrs:
            raise ArgumentError(
                f"rewrite: {part.op.name} has the attributes {', '.join(part.op.attrs)}; give a "
                f"function: lambda m: m.make({part.op.name!r}, ..., attrs=(...))"
            )
        return replace(part, args=tuple(_as_replacement(arg, pattern) for arg in part.args))
    if isinstance(part, Var):
        if part.name not in _bound(pattern):
            shown = ", ".join(sorted(_bound(pattern))) or "none"
            raise ArgumentError(
                f"rewrite: {pattern_text(pattern)} binds {shown}, and the replacement uses "
                f"{part.name}"
            )
        return part
    if isinstance(part, (int, float)) or callable(part):
        return part
    raise ArgumentTypeError(
        "rewrite: the replacement must be a variable, P.operator(...) of variables and numbers, or "
        f"a function of the match. Received: {part!r:.60}"
    )


def _bound(part: Any) -> set[str]:
    if isinstance(part, Var):
        return {part.name}
    return set().union(*map(_bound, part.args)) if isinstance(part, Call) else set()
