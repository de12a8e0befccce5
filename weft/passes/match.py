"""Rewrite rules as data: patterns of nodes, and what to put in their place.

    Rule("x * 1", P.mul(x, ONE), x)

says that a product by a value all of whose elements are 1 is its other factor. A rule fires only if
what it puts in place has the very type of the node it replaces, so that no rule needs to care about
broadcasting and promotion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from ..core.dim import Dim, raise_if_told
from ..core.dispatch import ERRORS, group
from ..core.dtype import is_float
from ..core.errors import ArgumentTypeError
from ..core.op import Op, find_op, random
from ..core.shape import TensorType
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.special import CONSTANT, Literal
from .rewrite import Pass, Rebuild, pass_over

MAX_STEPS = 64  # rules applied one after another to one node: a guard against rules that circle
MAX_SCAN = 1 << 16  # elements of a constant that are looked at to see whether all are the same


# -- patterns --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Var:
    """Any value; the same one wherever the variable stands."""

    name: str

    def __post_init__(self) -> None:
        name: Any = self.name
        if not isinstance(name, str) or not name:
            raise ArgumentTypeError(f"Var: the name must be a text. Received: {name!r:.60}")


@dataclass(frozen=True)
class Number:
    """A value all of whose elements are one number that passes a test."""

    test: Callable[[Any, Any], bool]  # the number, and the dtype it has
    text: str = "number"  # what messages call it
    example: float | None = None  # one that passes, to try rules with


@dataclass(frozen=True)
class Call:
    """The result of an operator on values that match; `label` gives its node a name."""

    op: Op
    args: tuple[Any, ...]
    label: str | None = None

    def __matmul__(self, label: str) -> Call:
        """Name the node that matches: P.permute(x) @ "inner"."""
        return replace(self, label=label)


class Patterns:
    """Patterns by operator: P.mul(x, y)."""

    def __getattr__(self, name: str) -> Callable[..., Call]:
        if name.startswith("__"):  # asked for by inspection, not by a rule
            raise AttributeError(name)
        try:
            op = find_op(name)
        except KeyError:
            raise AttributeError(
                f"no operator is named {name!r:.60}; patterns are P.operator(...), as in "
                'P.exp(Var("x"))'
            ) from None
        return lambda *args: Call(op, args)


P = Patterns()
Pattern = Var | Number | Call
Replacement = Var | Call | Callable[["Match"], "Value | None"]


@dataclass(frozen=True)
class Rule:
    """What a pattern becomes: a variable, a pattern of operators without attributes, or a function.

    A function gets the Match and returns a value, or None if the rule does not apply after all.
    """

    name: str
    pattern: Call
    result: Replacement

    def may_fit(self, node: Node) -> bool:
        """Tell quickly whether the operands come from the operators that the pattern asks for."""
        return all(
            arg.__class__ is not Call or (x is not None and x.node.op is arg.op)
            for arg, x in zip(self.pattern.args, node.inputs, strict=False)
        )

    def variants(self) -> Iterator[Rule]:
        """Yield the rule for each order of the operands of commutative operators."""
        for pattern in _orders(self.pattern):
            yield replace(self, pattern=pattern)


def pattern_text(pattern: Any) -> str:
    """Return a pattern as text: log(exp(x))."""
    if isinstance(pattern, Call):
        return f"{pattern.op.name}({', '.join(map(pattern_text, pattern.args))})"
    if isinstance(pattern, (Var, Number)):
        return pattern.name if isinstance(pattern, Var) else pattern.text
    return getattr(pattern, "__name__", repr(pattern))


def _orders(pattern: Any) -> list[Any]:
    if not isinstance(pattern, Call):
        return [pattern]
    found = [replace(pattern, args=args) for args in product(*map(_orders, pattern.args))]
    if "commutative" in pattern.op.laws and pattern.args[0] != pattern.args[1]:
        found += [replace(call, args=call.args[::-1]) for call in found]
    return found


# -- matching --------------------------------------------------------------------------------------


class Match:
    """What a pattern found, and what is built from it.

    values   values by the names of variables
    leaves   all values where the pattern ends
    nodes    nodes by their labels; the node to be replaced is "root"
    made     new nodes, not yet in the graph
    """

    def __init__(self, rebuild: Rebuild, numbers: dict[Value, Any], root: Node) -> None:
        self.rebuild = rebuild
        self.numbers = numbers
        self.values: dict[str, Value] = {}
        self.leaves: list[Value] = []
        self.nodes: dict[str, Node] = {"root": root}
        self.made: list[Node] = []

    def __getitem__(self, name: str) -> Value:
        """Return the value of a variable."""
        return self.values[name]

    @property
    def root(self) -> Node:
        """Return the node that is to be replaced."""
        return self.nodes["root"]

    def fits(self, pattern: Pattern, value: Value | None) -> bool:
        """Tell whether a value matches, noting what it binds."""
        if value is None:
            return False
        if isinstance(pattern, Call):
            return self.fits_node(pattern, value.node)
        self.leaves.append(value)
        if isinstance(pattern, Var):
            return self.values.setdefault(pattern.name, value) is value
        number = self.numbers.get(value)
        return number is not None and pattern.test(number, value.dtype)

    def fits_node(self, pattern: Call, node: Node) -> bool:
        """Tell whether a node matches a call."""
        if node.op is not pattern.op or len(node.inputs) != len(pattern.args):
            return False
        if pattern.label is not None:
            self.nodes[pattern.label] = node
        return all(map(self.fits, pattern.args, node.inputs))

    def make(self, name: str, *inputs: Value, attrs: tuple[Any, ...] = ()) -> Value:
        """Return the result of a new node; its attributes must be in canonical form."""
        op = find_op(name)
        kind = op.type_rule(group(op, [x.type for x in inputs]), attrs)
        return self._add(op, inputs, attrs, kind)

    def number(self, number: float | Dim, dtype: Any) -> Value:
        """Return a constant without dimensions, or a number that each run is told."""
        if isinstance(number, Dim):
            return self.make("size_value", attrs=(number, dtype))
        literal = Literal(np.array(number, dtype))
        return self._add(CONSTANT, (), (literal,), literal.type)

    def _literal(self, number: float) -> Value | None:
        """Return a number of a rule in the dtype of what is replaced, if that dtype has it."""
        dtype = self.root.outputs[0].dtype
        with np.errstate(all="ignore"):
            exact = is_float(dtype) or (number == number // 1 and np.array(number, dtype) == number)
        return self.number(number, dtype) if exact else None

    def _add(self, op: Any, inputs: Sequence[Value], attrs: Any, kind: TensorType) -> Value:
        self.made.append(self.rebuild.fresh(self.root, op, inputs, attrs, [kind]))
        return self.made[-1].outputs[0]

    def build(self, pattern: Any) -> Value | None:
        """Return the value that a replacement stands for."""
        if isinstance(pattern, Var):
            return self.values[pattern.name]
        if isinstance(pattern, (int, float)):
            return self._literal(pattern)
        if isinstance(pattern, Call):
            built = [self.build(arg) for arg in pattern.args]
            known = [x for x in built if x is not None]
            return self.make(pattern.op.name, *known) if len(known) == len(built) else None
        found: Value | None = pattern(self)
        return found


# -- rewriting -------------------------------------------------------------------------------------


class Rewriter:
    """Applies a table of rules to the nodes of one graph, in one sweep.

    The inputs of a node are rewritten before the node, and what a rule makes is rewritten again, so
    that no rule of the table applies to the result.
    """

    def __init__(self, table: RuleTable) -> None:
        self.table = table
        self.numbers: dict[Value, Any] = {}  # values all of whose elements are one number
        self._drawn: set[Value] = set()  # values that depend on random draws
        self.steps = 0

    def visit(self, rebuild: Rebuild, node: Node) -> Sequence[Value] | None:
        """Return the value to take in place of a node, or None to keep it."""
        self.steps = 0
        found = self.replacement(rebuild, node)
        if found is None:
            self._note(node)
        return None if found is None else [found]

    def replacement(self, rebuild: Rebuild, node: Node) -> Value | None:
        """Return what the first rule that applies makes of a node, itself rewritten."""
        if len(node.outputs) != 1 or self.steps >= MAX_STEPS:
            return None
        for rule in self.table[node.op]:
            if not rule.may_fit(node):
                continue
            match = Match(rebuild, self.numbers, node)
            if match.fits_node(rule.pattern, node):
                value = self.apply(rule, match)
                if value is not None:
                    self.steps += 1
                    return self._emit(rebuild, match, value)
        return None

    def apply(self, rule: Rule, match: Match) -> Value | None:
        """Return what a rule makes of what its pattern found, None if it does not apply."""
        try:
            value = match.build(rule.result)
        except ERRORS as error:  # a shape rule that cannot decide with sizes unknown
            raise_if_told(error)
            return None
        return self.fitting(match, value)

    def fitting(self, match: Match, value: Value | None) -> Value | None:
        """Return what a rule built, if it can stand for the node that matched."""
        if value is None or not same_type(value.type, match.root.outputs[0].type):
            return None
        return None if self._drops_a_draw(match, value) else value

    def _drops_a_draw(self, match: Match, value: Value) -> bool:
        """Tell whether something random would not be needed any more.

        Then the generator would not move on, and later draws would differ.
        """
        drawn = [leaf for leaf in match.leaves if leaf in self._drawn]
        if not drawn:
            return False
        kept = {value, *value.node.inputs, *(x for node in match.made for x in node.inputs)}
        return any(leaf not in kept for leaf in drawn)

    def _emit(self, rebuild: Rebuild, match: Match, value: Value) -> Value:
        """Append the new nodes, themselves rewritten, and return the value that was built."""
        now: dict[Value, Value] = {}
        for new in match.made:
            inputs = [now.get(x, x) if x is not None else None for x in new.inputs]
            name = match.root.name if new is value.node else new.name
            node = new.rebuilt(inputs, name=name)
            found = self.replacement(rebuild, node)
            if found is None:
                rebuild.graph.append(node)
                self._note(node)
                found = node.outputs[0]
            now[new.outputs[0]] = found
        return now.get(value, value)

    def _note(self, node: Node) -> None:
        """Note whether all elements of a node's result are one number."""
        number = None
        if node.op is CONSTANT:
            number = _only_number(node.attrs[0].array)
        elif node.op is _FILL_LIKE:
            number = np.array(node.attrs[0], node.attrs[1]).item()
        elif node.op.reshapes or node.op in (_BROADCAST_TO, _PERMUTE, _STOP_GRADIENT):
            number = self.numbers.get(node.inputs[0])  # type: ignore[arg-type]  # never None
        if number is not None:
            self.numbers[node.outputs[0]] = number
        if _draws(node) or any(x in self._drawn for x in node.inputs):
            self._drawn.update(node.outputs)


class RuleTable(dict[Any, list[Rule]]):
    """Rules by the operator of the node they replace.

    of_facts   gives the rules that follow from what an operator states of itself
    """

    def __init__(
        self, rules: Iterable[Rule], of_facts: Callable[[Any], Iterable[Rule]] = lambda op: ()
    ) -> None:
        super().__init__()
        self._of_facts = of_facts
        for rule in rules:
            self[rule.pattern.op] += rule.variants()

    def __missing__(self, op: Any) -> list[Rule]:
        """Return the rules of an operator that is met for the first time."""
        self[op] = found = [v for rule in self._of_facts(op) for v in rule.variants()]
        return found


_FILL_LIKE = find_op("fill_like")
_BROADCAST_TO, _PERMUTE = find_op("broadcast_to"), find_op("permute")
_STOP_GRADIENT = find_op("stop_gradient")


def rewrite(
    graph: Graph, outputs: Sequence[Value] | None, table: RuleTable, recurse: Pass
) -> Graph:
    """Return the graph with a table of rules applied until none applies."""
    return pass_over(graph, outputs, Rewriter(table).visit, recurse)


def _only_number(array: Any) -> Any:
    if not 0 < array.size <= MAX_SCAN:
        return None
    first = array.reshape(-1)[:1]
    same = bool((array == first).all())  # False for NaN
    if same and array.dtype.kind not in "biu":
        same = bool((np.signbit(array) == np.signbit(first)).all())
    return first[0].item() if same else None


def _draws(node: Node) -> bool:
    threads = getattr(node.op, "threads", None)
    return node.op.kind == random or (threads is not None and bool(threads(node)))


def same_type(a: TensorType, b: TensorType) -> bool:
    """Tell whether two types are the same."""
    return a.dtype == b.dtype and a.shape == b.shape
