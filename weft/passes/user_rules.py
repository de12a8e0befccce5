"""Rules of the user's: run in the pipeline behind Weft's own, and held to what a rule must do.

A rule of ours that cannot be applied is passed over. One of the user's that raises, that builds
what does not belong to the graph, or that never ends, is an error that names the rule and its
pattern: a wrong rewrite is a wrong answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, NamedTuple

from ..core.dim import raise_if_told
from ..core.errors import GraphError, WeftError
from ..graph.call import forget_code
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.verify import verify
from .match import MAX_STEPS, Match, Rewriter, Rule, RuleTable, pattern_text
from .rewrite import Rebuild, pass_over

CANONICALIZE, STABILIZE = "canonicalize", "stabilize"
STAGES = (CANONICALIZE, STABILIZE)


class RewriteError(RuntimeError):
    """A rule of the user's is wrong.

    No WeftError: a program whose compilation fails with one runs node by node, with a warning. This
    error must reach the user.
    """


class UserRule(NamedTuple):
    """A rule, and the stage of the pipeline that it runs at."""

    rule: Rule
    stage: str


# By identity, in the order in which they were registered; every access is one step of Python's.
_registered: dict[int, UserRule] = {}
_ignored: ContextVar[bool] = ContextVar("weft_user_rules_ignored", default=False)
_trial: ContextVar[tuple[UserRule, ...]] = ContextVar("weft_user_rules_trial", default=())


def user_rules() -> tuple[UserRule, ...]:
    """Return the rules that apply here."""
    return () if _ignored.get() else (*_registered.values(), *_trial.get())


def add_rule(rule: UserRule) -> None:
    """Let a rule apply to every program from now on; those that exist are compiled anew."""
    _registered[id(rule)] = rule
    forget_code()


def remove_rule(rule: UserRule) -> None:
    """Let a rule apply no more."""
    if _registered.pop(id(rule), None) is not None:
        forget_code()


@contextmanager
def without_user_rules() -> Iterator[None]:
    """Compile as if there were no rules of the user's."""
    token = _ignored.set(True)
    try:
        yield
    finally:
        _ignored.reset(token)


@contextmanager
def trying(rule: UserRule) -> Iterator[None]:
    """Let a rule apply in this context only."""
    token = _trial.set((*_trial.get(), rule))
    try:
        yield
    finally:
        _trial.reset(token)


# -- applying --------------------------------------------------------------------------------------


def apply_user_rules(graph: Graph, stage: str) -> Graph:
    """Return the graph with the user's rules of a stage applied wherever they can be, verified."""
    rules = tuple(user.rule for user in user_rules() if user.stage == stage)
    return apply_rules(graph, rules)[0] if rules else graph


def apply_rules(graph: Graph, rules: tuple[Rule, ...]) -> tuple[Graph, list[Rule]]:
    """Return a graph with rules applied, and the rules that were."""
    applied: list[Rule] = []
    table = _table(rules)

    def over(part: Graph, outputs: Sequence[Value] | None = None) -> Graph:
        return pass_over(part, outputs, StrictRewriter(table, applied).visit, over)

    made = over(graph)
    if not applied:
        return graph, applied
    try:
        verify(made)
    except GraphError as error:
        raise rule_error(applied[-1], f"built a graph that is not sound: {error}") from error
    return made, applied


@lru_cache(8)
def _table(rules: tuple[Rule, ...]) -> RuleTable:
    return RuleTable(rules)


class StrictRewriter(Rewriter):
    """Applies rules that may be wrong; notes those it applied."""

    def __init__(self, table: RuleTable, applied: list[Rule]) -> None:
        super().__init__(table)
        self.applied = applied

    def replacement(self, rebuild: Rebuild, node: Node) -> Value | None:
        """Return what rules make of a node; raise if they go on for ever."""
        if self.steps >= MAX_STEPS:
            raise rule_error(
                self.applied[-1],
                f"was applied {MAX_STEPS} times to {node.name}, and still applies to what it built",
            )
        return super().replacement(rebuild, node)

    def apply(self, rule: Rule, match: Match) -> Value | None:
        """Return what a rule makes of what its pattern found; raise if it is no value for it."""
        try:
            value: Any = match.build(rule.result)
        except WeftError as error:  # operators that do not take these types, or unknown sizes
            raise_if_told(error)
            return None
        except Exception as error:  # what a function of the user's may raise is not known
            where = f" at {match.root.where}" if match.root.where else ""
            problem = f"raised {type(error).__name__}: {error} [for {match.root.name}{where}]"
            raise rule_error(rule, problem) from error
        if value is not None:
            _check_built(rule, match, value)
        found = self.fitting(match, value)
        if found is not None:
            self.applied.append(rule)
        return found


def _check_built(rule: Rule, match: Match, value: Any) -> None:
    """Raise unless a rule built its value from what it was given."""
    if not isinstance(value, Value):
        raise rule_error(rule, f"returned {type(value).__name__} {value!r:.60}, and no value")
    known = {*match.leaves, *(y for node in match.made for y in node.outputs)}
    for used in (value, *(x for node in match.made for x in node.inputs)):
        if used is not None and used not in known and used not in match.rebuild.graph:
            raise rule_error(rule, f"used {used.name}, which does not belong to this graph")


def rule_error(rule: Rule, problem: str) -> RewriteError:
    """Return an error that names a rule and its pattern."""
    text = pattern_text(rule.pattern)
    return RewriteError(f"the rewrite rule {rule.name!r} ({text}) {problem}")
