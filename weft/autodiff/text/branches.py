"""Branches as Python's own: `if`, a choice in an expression, `and` and `or`."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ...graph.graph import Graph
from ...graph.node import Node, Value
from ...graph.special import CONSTANT
from .spelling import AND, CHOICE, NOT, OR, Expression, within
from .writer import INDENT, TEMPORARY, NumpyBlock, own_name


def write_branch(block: NumpyBlock, node: Node) -> None:
    """Write a branch in the shortest form that it has."""
    used = [k for k, value in enumerate(node.outputs) if block.uses[value]]
    used = [k for k in used if not _passed_on(block, node, k)]
    if not used:
        return
    if len(used) == 1:
        made = _as_expression(block, node, used[0])
        if made is not None:
            block.known[node.outputs[used[0]]] = made
            _name_if_needed(block, node, node.outputs[used[0]], made)
            return
    _Branch(block, node, used).write()


def _passed_on(block: NumpyBlock, node: Node, k: int) -> bool:
    """Write a result that is one operand on both sides as that operand."""
    yes, no = (_place(graph, k) for graph in node.attrs[:2])
    if yes is None or yes != no:
        return False
    block.known[node.outputs[k]] = block.operand(node.inputs[1 + yes])
    return True


def _place(graph: Graph, k: int) -> int | None:
    """Return which input a result is, if it is one."""
    return graph.inputs.index(graph.outputs[k]) if graph.outputs[k] in graph.inputs else None


def assignments(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Return statements that give names values which may read other of the names, as before."""
    left = [(name, text) for name, text in pairs if name != text]
    lines: list[str] = []
    while left:
        free = next((p for p in left if not _is_read(p[0], left, p)), None)
        if free is None:  # each is needed by another one
            names, texts = zip(*left, strict=True)
            return [*lines, f"{', '.join(names)} = {', '.join(texts)}"]
        lines.append(f"{free[0]} = {free[1]}")
        left.remove(free)
    return lines


def _is_read(name: str, pairs: Sequence[tuple[str, str]], own: tuple[str, str]) -> bool:
    others = (text for pair in pairs if pair is not own for text in (pair[1],))
    return any(name in re.findall(r"\w+", text) for text in others)


def _name_if_needed(block: NumpyBlock, node: Node, value: Value, made: Expression) -> None:
    once = block.uses[value] <= 1 and value not in block.pinned
    if once and made.binding != CHOICE and len(made.text) <= block.width:
        return
    name = block.name(value, _result_name(node, value.index))
    block.lines.append(f"{name} = {made.text}")


def _result_name(node: Node, k: int) -> str:
    named = (own_name(graph.outputs[k].node) for graph in node.attrs[:2])
    return next(filter(None, named), "") or own_name(node) or TEMPORARY


def _as_expression(block: NumpyBlock, node: Node, k: int) -> Expression | None:
    """Return a branch as an expression, if both sides of it are short ones."""
    pred, *rest = block.operands(node)
    if any(len(graph) > 24 for graph in node.attrs[:2]):
        return None
    taken = set(block.names.taken)
    yes, no = (_expression_of(block, graph, rest, k) for graph in node.attrs[:2])
    if yes is None or no is None:
        block.names.taken.clear()
        block.names.taken.update(taken)
        return None
    if yes == no:
        return yes
    if _is_truth(node.attrs[1].outputs[k], False):
        return Expression(f"{within(pred, AND)} and {within(yes, AND)}", AND)
    if _is_truth(node.attrs[0].outputs[k], True):
        return Expression(f"{within(pred, OR)} or {within(no, OR)}", OR)
    text = f"{within(yes, OR)} if {within(pred, OR)} else {within(no, OR)}"
    return Expression(text, CHOICE) if len(text) <= block.width + 12 else None


def _expression_of(
    block: NumpyBlock, graph: Graph, given: Sequence[Expression], k: int
) -> Expression | None:
    body = block.body(graph, given)
    body.write([graph.outputs[k]])
    return None if body.lines else body.known[graph.outputs[k]]


def _is_truth(value: Value, wanted: bool) -> bool:
    if value.node.op is not CONSTANT or value.dtype.kind != "b" or value.shape != ():
        return False
    return bool(np.all(value.node.attrs[0].array)) is wanted


class _Branch:
    """An `if` statement that is being written."""

    def __init__(self, block: NumpyBlock, node: Node, used: Sequence[int]) -> None:
        self.block, self.node, self.used = block, node, used

    def write(self) -> None:
        """Write it; a side that changes nothing is left out."""
        block, node = self.block, self.node
        pred, *rest = block.operands(node)
        names = [self._name(k) for k in self.used]
        yes, no = (self._side(graph, rest, names) for graph in node.attrs[:2])
        if yes:
            block.lines.append(f"if {pred.text}:")
            block.lines += [INDENT + line for line in yes]
            block.lines += ["else:", *(INDENT + line for line in no)] if no else []
        elif no:
            block.lines.append(f"if not {within(pred, NOT)}:")
            block.lines += [INDENT + line for line in no]

    def _side(self, graph: Graph, rest: Sequence[Expression], names: Sequence[str]) -> list[str]:
        body = self.block.body(graph, rest)
        found = body.write([graph.outputs[k] for k in self.used])
        return [*body.lines, *assignments(list(zip(names, found, strict=True)))]

    def _name(self, k: int) -> str:
        """Return the variable of a result: that of an operand which one side only passes on."""
        block, node = self.block, self.node
        wanted = block.wanted.get(node.outputs[k]) or _result_name(node, k)
        for graph in node.attrs[:2]:
            if graph.outputs[k] not in graph.inputs:
                continue
            value = node.inputs[1 + graph.inputs.index(graph.outputs[k])]
            known = block.operand(value)
            fits = wanted in (known.text, TEMPORARY, re.sub(r"(_\d+)+$", "", known.text))
            if fits and block.gives_up(node, value):
                assert value is not None
                block.owned.discard(value)
                block.owned.add(node.outputs[k])
                block.known[node.outputs[k]] = known
                return known.text
        return block.name(node.outputs[k], _result_name(node, k))
