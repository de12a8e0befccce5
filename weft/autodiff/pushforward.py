"""The tangent of one operation, from the rules that reverse mode uses.

partials      sum of tangent * partial
linear        the operation itself, applied to the tangents
multilinear   the operation with one input at a time replaced by its tangent
the rest      the transpose of the vjp rule. A vjp is linear in g, so J t is the gradient of
<vjp(g), t> with respect to g, taken by reverse mode at any g (here zero).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.dispatch import run
from ..core.dtype import is_float
from ..core.errors import GradientError
from ..core.op import F
from .pullback import pull_back_of
from .rules import Operation, parameters

Part = Sequence[Any]  # a contribution to the tangent of each output; None is zero


class Pushforward(Operation):
    """The tangents of one operation's outputs from those of its inputs."""

    def tangents(self, tangents: tuple[Any, ...]) -> list[Any]:
        """Return the tangent of each output; None is zero."""
        parts = self._parts(tangents) or [[None] * len(self.outputs)]
        totals = list(parts[0])
        for part in parts[1:]:
            totals = [_plus(a, b) for a, b in zip(totals, part, strict=True)]
        return [t if is_float(y.dtype) else None for y, t in zip(self.outputs, totals, strict=True)]

    def _parts(self, tangents: tuple[Any, ...]) -> list[Part]:
        """Return contributions to the outputs' tangents, each input treated by its own rule."""
        op = self.op
        if getattr(op, "has_jvp", False):  # a Function of the user's
            return [op.push_forward(self.inputs, self.attrs[0], self.out, tangents)]
        if op.jvp_rule is not None:
            return [_as_tuple(op.jvp_rule(**self._named(parameters(op.jvp_rule), tangents)))]
        if op.partials and not op.linear and not op.multilinear and not op.vjps:
            return self._by_partials(tangents)
        groups: dict[Any, list[Any]] = {}
        for i, (name, t) in enumerate(zip(self.names, tangents, strict=True)):
            if t is not None:
                groups.setdefault(self._rule_of(name), [None] * len(tangents))[i] = t
        return [part for rule, chosen in groups.items() for part in rule(self, tuple(chosen))]

    def _rule_of(self, name: str) -> Callable[..., list[Part]]:
        op = self.op
        if name in op.partials:
            return Pushforward._by_partials
        if name in op.linear:
            return Pushforward._by_linearity
        if name in op.multilinear:
            return Pushforward._by_multilinearity
        return Pushforward._by_transposition if name in op.vjps else Pushforward._nothing

    def _nothing(self, tangents: tuple[Any, ...]) -> list[Part]:
        return []

    def _by_partials(self, tangents: tuple[Any, ...]) -> list[Part]:
        parts: list[Part] = []
        for name, t in zip(self.names, tangents, strict=True):
            if t is not None and name in self.op.partials:
                part = _times(t, self._partial(name))
                whole = part.shape == self.out.shape
                parts.append((part if whole else F.broadcast_to(part, self.out.shape),))
        return parts

    def _partial(self, name: str) -> Any:
        """Return d(out)/d(name): declared as 1, -1, the name of a value, or a rule."""
        partial = self.op.partials[name]
        if isinstance(partial, int):
            return partial
        if isinstance(partial, str):
            return self.lookup(partial)
        return partial(**self._named(parameters(partial), ()))

    def _by_linearity(self, tangents: tuple[Any, ...]) -> list[Part]:
        moved = [
            t if t is not None else (F.zeros_like(x) if self._is_linear(i) else x)
            for i, (x, t) in enumerate(zip(self.inputs, tangents, strict=True))
        ]
        return [_as_tuple(run(self.op, tuple(moved), self.attrs))]

    def _is_linear(self, i: int) -> bool:
        return self.names[i] in self.op.linear and self.inputs[i] is not None

    def _by_multilinearity(self, tangents: tuple[Any, ...]) -> list[Part]:
        parts: list[Part] = []
        for i, t in enumerate(tangents):
            if t is not None:
                moved = (*self.inputs[:i], t, *self.inputs[i + 1 :])
                parts.append(_as_tuple(run(self.op, moved, self.attrs)))
        return parts

    def _by_transposition(self, tangents: tuple[Any, ...]) -> list[Part]:
        # The values of the gradients do not matter to a linear rule.
        seeds = [F.zeros_like(y) for y in self.outputs]
        places: list[int] = []

        def transposed(gs: list[Any]) -> list[Any]:
            pulled = self.pull_back(gs if self.many else gs[0], tangents)
            pairs = enumerate(zip(pulled, tangents, strict=True))
            places.extend(i for i, (x, t) in pairs if x is not None and t is not None)
            return [pulled[i] for i in places]

        _, pull, connected = pull_back_of(transposed, seeds, once=True)
        if hasattr(self.op, "pull_back") and not all(connected):
            raise GradientError(
                f"{self.op.name}: forward mode transposes backward, which must be written in Weft "
                "operations on its gradients (return None for a zero gradient)"
            )
        return [pull([tangents[i] for i in places])]

    def _named(self, names: Sequence[str], tangents: tuple[Any, ...]) -> dict[str, Any]:
        """Return what a rule asks for; a jvp rule calls the tangent of x `x_t`."""
        named = {f"{n}_t": t for n, t in zip(self.names, tangents, strict=False)}
        return {name: named[name] if name in named else self.lookup(name) for name in names}


def _plus(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    return a + b


def _times(t: Any, partial: Any) -> Any:
    if isinstance(partial, int):
        return t if partial == 1 else -t
    return t * partial


def _as_tuple(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)
