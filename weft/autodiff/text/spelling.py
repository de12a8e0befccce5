"""How operators are written in NumPy's terms: expressions, and which of them need parentheses."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple


class Expression(NamedTuple):
    """An expression, and how tightly it binds: operands that bind less are put in parentheses."""

    text: str
    binding: int


ATOM, POWER, SIGN, PRODUCT, SUM, COMPARISON, NOT, AND, OR, CHOICE = range(9, -1, -1)
LOWEST = CHOICE  # of what stands between commas
OPERATORS = {
    "__add__": "{} + {}",
    "__sub__": "{} - {}",
    "__mul__": "{} * {}",
    "__truediv__": "{} / {}",
    "__matmul__": "{} @ {}",
    "__pow__": "{} ** {}",
    "__neg__": "-{}",
    "__gt__": "{} > {}",
    "__ge__": "{} >= {}",
    "__lt__": "{} < {}",
    "__le__": "{} <= {}",
    "__eq__": "{} == {}",
    "__ne__": "{} != {}",
}


_ALONE = re.compile(r"{(\w+)}")
_SUM = re.compile(r"{(\w+)} \+ {(\w+)}")


def within(part: Expression, binding: int) -> str:
    """Return an expression as an operand of one that binds so tightly."""
    return part.text if part.binding >= binding else f"({part.text})"


class Spelling(NamedTuple):
    """An expression with places for others, how tightly it binds, and they must at the least."""

    text: str
    binding: int
    places: dict[str, int]
    whole: bool = False  # whether attributes are said in the text already
    helpers: Mapping[str, Any] = MappingProxyType({})  # functions of some of the places

    def fits(self, attrs: Mapping[str, str]) -> bool:
        """Tell whether it says all that the attributes do."""
        if self.whole:
            return True
        return all(text == "None" for name, text in attrs.items() if name not in self.places)

    def filled(self, parts: Mapping[str, Expression]) -> Expression:
        """Return the expression of some others."""
        alone = _ALONE.fullmatch(self.text)
        if alone:
            return parts[alone[1]]
        texts = {name: within(parts[name], binding) for name, binding in self.places.items()}
        made = self.text.format(**texts)
        sides = _SUM.fullmatch(self.text)
        if sides and texts[sides[2]].startswith("-") and parts[sides[2]].binding >= PRODUCT:
            made = f"{texts[sides[1]]} - {texts[sides[2]][1:]}"
        return Expression(made, self.binding)


def spelling_of(node: Any) -> Spelling | None:
    """Return how a node is written in NumPy's terms, None if only as a call of its kernel."""
    op = node.op
    if op.spelling_rule is not None:
        types = [None if x is None else x.type for x in node.inputs]
        found = op.spelling_rule(types, *node.attrs)
        if found is not None:
            text, helpers = found if isinstance(found, tuple) else (found, {})
            return _spelling(text)._replace(whole=True, helpers=helpers)
    text = op.numpy
    if text is None and op.operator in OPERATORS:
        text = OPERATORS[op.operator].format(*(f"{{{name}}}" for name in op.inputs))
    return None if text is None else _spelling(text)


@cache
def _spelling(text: str) -> Spelling:
    tree = ast.parse(re.sub(r"[{}]", "", text), mode="eval").body
    names = set(re.findall(r"{(\w+)}", text))
    places = {
        child.id: binding
        for node in ast.walk(tree)
        for child, binding in _operands(node)
        if isinstance(child, ast.Name) and child.id in names
    }
    return Spelling(text, _binding(tree), places)


def _operands(node: ast.AST) -> list[tuple[ast.AST, int]]:
    """Return the operands of an expression, each with how tightly it must bind at the least."""
    binding = _binding(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return [(node.left, ATOM), (node.right, SIGN)]
    if isinstance(node, ast.BinOp):  # the right one more tightly: a - (b - c)
        return [(node.left, binding), (node.right, binding + 1)]
    if isinstance(node, ast.Compare):
        return [(node.left, binding), (node.comparators[0], binding + 1)]
    if isinstance(node, ast.UnaryOp):
        return [(node.operand, binding)]
    if isinstance(node, ast.Attribute | ast.Subscript):
        rest = [node.slice] if isinstance(node, ast.Subscript) else []
        return [(node.value, ATOM), *((child, LOWEST) for child in rest)]
    return [(child, LOWEST) for child in ast.iter_child_nodes(node)]


def _binding(node: ast.AST) -> int:
    if isinstance(node, ast.BinOp):
        return _BINDING.get(type(node.op), PRODUCT)
    if isinstance(node, ast.UnaryOp):
        return NOT if isinstance(node.op, ast.Not) else SIGN
    return COMPARISON if isinstance(node, ast.Compare) else ATOM


_BINDING: dict[type[ast.operator], int] = {ast.Add: SUM, ast.Sub: SUM, ast.Pow: POWER}
