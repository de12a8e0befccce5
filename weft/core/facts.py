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
"""

from __future__ import annotations

LAWS = frozenset(("associative", "commutative", "idempotent", "involution"))


class Facts:
    """What is known of an operator that states nothing: the default of each fact."""

    laws: tuple[str, ...] = ()
    exact = False

    def state(self, **facts: object) -> None:
        """Take the facts of a declaration."""
        for name, fact in facts.items():
            if not hasattr(Facts, name):
                raise TypeError(f"operators state no fact {name!r}")
            setattr(self, name, fact)
        assert LAWS.issuperset(self.laws), self.laws
