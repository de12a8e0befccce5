"""Write the nodes of a graph as statements of NumPy; control flow becomes Python's own.

Each node is an expression: an operator or a NumPy function where there is one, else a call of the
kernel, which is written out beside it. A branch is an `if`, a loop a `while`, a scan a `for`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.errors import ArgumentError
from ...graph.control.ops import COND, SCAN, WHILE
from ...graph.custom import CustomGradient
from ...graph.graph import Graph
from ...graph.node import Node, Value
from ...graph.special import CONSTANT, PARAMETER, PLACEHOLDER, STATE
from ...graph.text.expressions import Names
from ...ops.elementwise.filling import fill_like
from .kernels import KernelText, literal
from .spelling import ATOM, SIGN, Expression, spelling_of

INDENT = "    "


class NumpyText:
    """A program that is being written: its imports, kernels, and names that are taken."""

    def __init__(self, *taken: str) -> None:
        self.names = Names({"np", *taken})
        self.kernels = KernelText(self.names)

    def text(self, definition: str) -> str:
        """Return all of it, with a definition at the end."""
        imports = "\n".join(sorted(self.kernels.imports))
        return "\n\n".join([imports, *self.kernels.parts, definition]) + "\n"


class NumpyBlock:
    """Writes the nodes of a graph, or of a body of control flow.

    inline   whether what is used once is written where it is used
    typed    whether constants say their dtype, which they need not beside arrays
    known    what values are written as
    """

    def __init__(
        self, program: NumpyText, graph: Graph, *, inline: bool = False, typed: bool = False
    ) -> None:
        self.program, self.graph, self.inline, self.typed = program, graph, inline, typed
        self.names = program.names
        self.known: dict[Value, Expression] = {}
        self.lines: list[str] = []
        self._users = graph.users()

    def name(self, value: Value, wanted: str = "") -> str:
        """Give a value a name, and return it."""
        name = self.names.give(wanted or value.name.rpartition("/")[2])
        self.known[value] = Expression(name, ATOM)
        return name

    def write(self, outputs: Sequence[Value]) -> list[str]:
        """Write what some values need; return what they are written as."""
        for node in self.graph.ancestors(outputs):
            self._write(node)
        return [self.known[value].text for value in outputs]

    def _write(self, node: Node) -> None:
        if node.op in (PLACEHOLDER, PARAMETER, STATE):
            return
        if node.op is CONSTANT:
            self.known[node.outputs[0]] = constant(node.attrs[0].array, typed=self.typed)
        elif node.op.identity:
            self.known[node.outputs[0]] = self._operand(node.inputs[0])
        elif isinstance(node.op, CustomGradient):
            _, first, count = node.attrs
            for value, given in zip(node.outputs, node.inputs[first : first + count], strict=True):
                self.known[value] = self._operand(given)
        elif node.op in _CONTROL:
            _CONTROL[node.op](self, node)
        else:
            self._assign(node, self._expression(node))

    def _assign(self, node: Node, made: Expression) -> None:
        if len(node.outputs) == 1 and self.inline and len(self._users[node.outputs[0]]) <= 1:
            self.known[node.outputs[0]] = made
            return
        names = [self.name(value) for value in node.outputs]
        comma = "," if node.op.outputs != 1 and len(names) == 1 else ""
        self.lines.append(f"{', '.join(names)}{comma} = {made.text}")

    def _operand(self, value: Value | None) -> Expression:
        return Expression("None", ATOM) if value is None else self.known[value]

    def _operands(self, node: Node) -> list[Expression]:
        return [self._operand(x) for x in node.inputs]

    def _expression(self, node: Node) -> Expression:
        op = node.op
        if op.kernel is None:
            raise ArgumentError(
                f"{op.name} at {node.where or 'an unknown line'} cannot be written as NumPy"
            )
        operands = self._operands(node)
        attrs = {name: attr_text(node, v) for name, v in zip(op.attrs, node.attrs, strict=True)}
        form = spelling_of(op)
        if form is not None and form.fits(attrs):
            named = {name: Expression(text, ATOM) for name, text in attrs.items()}
            return form.filled({**named, **dict(zip(op.inputs, operands, strict=True))})
        if op is fill_like and node.outputs[0].shape == ():
            made = np.array(node.attr("value"), node.outputs[0].dtype)
            return constant(made, typed=self.typed)
        return self._kernel_call(node, operands, attrs)

    def _kernel_call(
        self, node: Node, operands: list[Expression], attrs: dict[str, str]
    ) -> Expression:
        op = node.op
        dtypes = [None if x is None else x.dtype for x in node.inputs]
        kernel = self.program.kernels.call(op, dtypes, node.attrs)
        args = [part.text for part in operands]
        if op.variadic:
            fixed = len(op.inputs) - 1
            args = [*args[:fixed], f"[{', '.join(args[fixed:])}]"]
        return Expression(f"{kernel}({', '.join((*args, *attrs.values()))})", ATOM)

    # -- control flow ------------------------------------------------------------------------------

    def _body(self, graph: Graph, given: Sequence[Expression]) -> NumpyBlock:
        """Return a block for a body whose inputs are written already."""
        body = NumpyBlock(self.program, graph, typed=self.typed)
        body.known.update(zip(graph.inputs, given, strict=True))
        return body

    def _indented(self, body: NumpyBlock, *more: str) -> None:
        self.lines += [INDENT + line for line in (*body.lines, *more)] or [INDENT + "pass"]

    def _branch(self, node: Node) -> None:
        pred, *rest = self._operands(node)
        names = ", ".join(self.names.give(f"{node.op.name}_{i}") for i in range(len(node.outputs)))
        for head, graph in zip((f"if {pred.text}:", "else:"), node.attrs[:2], strict=True):
            body = self._body(graph, rest)
            found = ", ".join(body.write(graph.outputs))
            self.lines.append(head)
            self._indented(body, *([f"{names} = {found}"] if names else []))
        self._take_names(node, names.split(", "))

    def _take_names(self, node: Node, names: Sequence[str]) -> None:
        for value, name in zip(node.outputs, names, strict=False):
            self.known[value] = Expression(name, ATOM)

    def _loop(self, node: Node) -> None:
        test, graph, carries, _ = node.attrs
        loop = _Loop(self, node, carries, graph.outputs[carries:])
        operands = [*loop.carried, *self._operands(node)[carries:]]
        self.lines.append("while True:")
        tested = self._body(test, operands)
        (holds,) = tested.write(test.outputs)
        self._indented(tested, f"if not {holds}:", INDENT + "break")
        body = self._body(graph, operands)
        self._indented(body, *loop.turned(body.write(graph.outputs)))
        loop.end()

    def _scan(self, node: Node) -> None:
        graph, carries, xs, length, reverse, until, _ = node.attrs
        loop = _Loop(self, node, carries, graph.outputs[until + carries :])
        operands = self._operands(node)
        columns, captured = operands[carries : carries + xs], operands[carries + xs :]
        turn = self.names.give("i")
        count = f"len({columns[0].text})" if columns else attr_text(node, length)
        steps = f"range({count})"
        self.lines.append(f"for {turn} in {f'reversed({steps})' if reverse else steps}:")
        rows = [self.names.give(f"row_{k}") for k in range(xs)]
        given = [f"{row} = {x.text}[{turn}]" for row, x in zip(rows, columns, strict=True)]
        body = self._body(graph, [*loop.carried, *(Expression(r, ATOM) for r in rows), *captured])
        found = body.write(graph.outputs)
        stop = found.pop(0) if until else None
        body.lines = [*given, *body.lines]
        self._indented(body, *loop.turned(found, stop))
        loop.end(reverse=reverse)


class _Loop:
    """The carried values and the stacked results of a loop that is being written."""

    def __init__(self, block: NumpyBlock, node: Node, carries: int, rows: Sequence[Value]) -> None:
        self.block, self.node, self.rows = block, node, rows
        names = [block.names.give(f"carry_{i}") for i in range(carries)]
        self.carried = [Expression(name, ATOM) for name in names]
        self.lists = [block.names.give(f"rows_{i}") for i in range(len(rows))]
        if names:
            start = ", ".join(x.text for x in block._operands(node)[:carries])
            block.lines.append(f"{', '.join(names)} = {start}")
        block.lines += [f"{name} = []" for name in self.lists]

    def turned(self, found: Sequence[str], stop: str | None = None) -> list[str]:
        """Return the lines at the end of a turn, for what the body gives."""
        new, rows = found[: len(self.carried)], found[len(self.carried) :]
        lines = [f"{kept}.append({row})" for kept, row in zip(self.lists, rows, strict=True)]
        last = [] if stop is None else [self.block.names.give("last")]
        before = [*(x.text for x in self.carried), *last]  # it may be one of the carries
        after = [*new, *([] if stop is None else [stop])]
        if before:
            lines.append(f"{', '.join(before)} = {', '.join(after)}")
        return [*lines, *(line for name in last for line in (f"if {name}:", INDENT + "break"))]

    def end(self, *, reverse: bool = False) -> None:
        """Write what stacks the results, and name everything."""
        turned = "[::-1]" if reverse else ""
        outputs = self.node.outputs
        for kept, row, value in zip(
            self.lists, self.rows, outputs[len(self.carried) :], strict=True
        ):
            empty = f"np.zeros({(0, *row.shape)!r}, np.dtype({row.dtype.name!r}))"
            name = self.block.name(value)
            self.block.lines.append(f"{name} = np.stack({kept}{turned}) if {kept} else {empty}")
        self.block.known.update(zip(outputs, self.carried, strict=False))


_CONTROL: dict[Any, Callable[[NumpyBlock, Node], None]] = {
    COND: NumpyBlock._branch,
    SCAN: NumpyBlock._scan,
    WHILE: NumpyBlock._loop,
}


def attr_text(node: Node, value: Any) -> str:
    """Return an attribute of a node as an expression."""
    text = literal(value)
    if text is None:
        raise ArgumentError(
            f"{node.op.name}: its attribute {value!r:.60} cannot be written as NumPy"
        )
    return text


def constant(array: np.ndarray[Any, Any], *, typed: bool = False) -> Expression:
    """Return a constant; a number of the common types is written as Python's unless typed."""
    if array.ndim == 0 and array.dtype.kind in "bif":
        text = literal(_shortest(array)) or ""
        if typed:
            return Expression(f"np.{array.dtype.type.__name__}({text})", ATOM)
        return Expression(text, SIGN if text.startswith("-") else ATOM)
    return Expression(f"np.array({array.tolist()!r}, np.dtype({array.dtype.name!r}))", ATOM)


def _shortest(array: np.ndarray[Any, Any]) -> Any:
    """Return a number with the fewest digits that give the same value of its dtype."""
    return float(str(array[()])) if array.dtype.kind == "f" else array.item()
