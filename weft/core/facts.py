"""Facts that an operator states of itself, for everybody who treats operators alike.

Passes, the compiler, eager mode and text ask here; none of them knows operators by their names. A
fact is an option of the declaration, a fact that depends on the call is a rule:

    laws         "commutative"   the same bits with its two operands exchanged (payloads of NaN
                                 apart); not maximum, say, which tells 0.0 from -0.0 by their order
                 "associative"   the same bits however three operands are grouped, or a reduction's
                                 axes are taken one after another
                 "idempotent"    f(f(x)) = f(x), or f(x, x) = x if it takes two operands
                 "involution"    f(f(x)) = x
    exact        it rounds at most once, so that compiled code gives NumPy's bits
    identity     its result is its first operand, as it is
    reshapes     its result has the elements of its operand in the same (C) order
    view         a rule: where the elements of the result lie in the operand's memory
    join         a rule: where the operands lie in the memory of the result
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Rule = Callable[..., Any]
RuleT = TypeVar("RuleT", bound=Rule)

LAWS = frozenset(("associative", "commutative", "idempotent", "involution"))


class Facts:
    """What is known of an operator that states nothing: the default of each fact."""

    laws: tuple[str, ...] = ()
    exact = False
    identity = False
    reshapes = False
    view_rule: Rule | None = None
    join_rule: Rule | None = None

    @property
    def is_view(self) -> bool:
        """Tell whether its result may be the memory of its operand, read by other strides."""
        return self.identity or self.reshapes or self.view_rule is not None

    def view(self, rule: RuleT) -> RuleT:
        """Attach the rule that gives the result as a view of the operand, or None if there is none.

        It receives the operand, with `shape`, `strides` (in elements) and the methods `permuted`,
        `broadcast`, `reshaped`, `sliced` and `restrided`, and the attributes.
        """
        self.view_rule = rule
        return rule

    def join(self, rule: RuleT) -> RuleT:
        """Attach the rule that gives the operands as views of the result.

        It receives the result as `view` rules do their operand, the operands' shapes as a list, and
        the attributes.
        """
        self.join_rule = rule
        return rule

    def state(self, **facts: object) -> None:
        """Take the facts of a declaration."""
        for name, fact in facts.items():
            if not hasattr(Facts, name):
                raise TypeError(f"operators state no fact {name!r}")
            setattr(self, name, fact)
        assert LAWS.issuperset(self.laws), self.laws
