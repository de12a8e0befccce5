"""Loops as Python's own, with explicit stacks between a loop and its adjoint.

What a loop keeps for a scan that runs back over its trips is pushed in each trip and popped by that
scan; what others need of all trips is stacked into an array.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ...core.dim import variables
from ...graph.control.ops import COND, SCAN, WHILE
from ...graph.control.shapes import loop_of
from ...graph.node import Node, Value
from .branches import assignments, write_branch
from .spelling import ATOM, NOT, Expression, within
from .writer import (
    INDENT,
    TEMPORARY,
    NumpyBlock,
    counting,
    own_name,
)


class Popped(NamedTuple):
    """What a scan takes from a stack: which of its columns, in the order of an entry.

    pushed   what the loop before calls the parts of an entry
    """

    stack: str
    columns: list[int]
    pushed: dict[int, str]


def write_while(block: NumpyBlock, node: Node) -> None:
    """Write a while_loop."""
    test, graph, carries, _ = node.attrs
    loop = _Loop(block, node)
    operands = [*loop.carried, *map(block.operand, node.inputs[carries:])]
    tested = block.body(test, operands)
    (holds,) = tested.write(test.outputs)
    body = block.body(graph, operands, graph.inputs[:carries])
    body.wanted.update(loop.ends())
    found = body.write(loop.outputs)
    lines = [*body.lines, *loop.turned(found)]
    if tested.lines:
        stop = within(Expression(holds, tested.known[test.outputs[0]].binding), NOT)
        lines = [*tested.lines, f"if not {stop}:", INDENT + "break", *lines]
    loop.end(f"while {'True' if tested.lines else holds}:", lines)


def write_scan(block: NumpyBlock, node: Node) -> None:
    """Write a scan."""
    graph, carries, xs, _, _, until, _ = node.attrs
    loop = _Loop(block, node)
    columns = _Columns(block, node)
    rows = [Expression(name, ATOM) for name in columns.names]
    operands = [*loop.carried, *rows, *map(block.operand, node.inputs[carries + xs :])]
    body = block.body(graph, operands, graph.inputs[: carries + xs])
    body.wanted.update(loop.ends())
    found = body.write([*graph.outputs[:until], *loop.outputs])
    stop = found.pop(0) if until else None
    lines = [*columns.pops(), *body.lines, *loop.turned(found, stop)]
    loop.end(columns.head(), lines)


class _Columns:
    """What a scan takes apart, or pops."""

    def __init__(self, block: NumpyBlock, node: Node) -> None:
        graph, carries, xs, self.length, self.reverse, _, _ = node.attrs
        self.block, self.node = block, node
        self.values = node.inputs[carries : carries + xs]
        self.popped: list[Popped] = block.stacks.get(node, [])
        from_stacks = {k for entry in self.popped for k in entry.columns}
        places = graph.inputs[carries : carries + xs]
        used = {x for n in graph.ancestors(graph.outputs) for x in (*n.inputs, *graph.outputs)}
        pushed = {k: text for entry in self.popped for k, text in entry.pushed.items()}
        self.names = [
            _row_name(block, place, x, pushed.get(k, ""))
            for k, (place, x) in enumerate(zip(places, self.values, strict=True))
        ]
        self.read = [k for k in range(xs) if k not in from_stacks and places[k] in used]
        self.spare = [k for k in range(xs) if k not in from_stacks]

    def pops(self) -> list[str]:
        """Return the lines that take entries from stacks."""
        return [
            f"{', '.join(self.names[k] for k in entry.columns)} = {entry.stack}.pop()"
            for entry in self.popped
        ]

    def head(self) -> str:
        """Return the line that begins the loop."""
        if not self.read and self.popped:
            return f"while {self.popped[0].stack}:"
        if not self.read:
            count = self.block.attr(self.node, self.length) if not self.spare else self._count()
            return f"for _ in range({count}):"
        names = ", ".join(self.names[k] for k in self.read)
        parts = [self._column(k) for k in self.read]
        over = parts[0] if len(parts) == 1 else f"zip({', '.join(parts)})"
        return f"for {names} in {over}:"

    def _count(self) -> str:
        value = self.values[self.spare[0]]
        counted = None if value is None else counting(value)
        return str(len(counted)) if counted else f"len({self.block.operand(value).text})"

    def _column(self, k: int) -> str:
        value = self.values[k]
        assert value is not None  # columns are never left out
        counted = counting(value)
        if counted is None:
            text = within(self.block.operand(value), ATOM)
            return f"{text}[::-1]" if self.reverse else text
        plain = counted.start == 0 and counted.step == 1
        shown = (
            f"range({counted.stop})"
            if plain
            else f"range({counted.start}, {counted.stop}, {counted.step})".replace(", 1)", ")")
        )
        return f"reversed({shown})" if self.reverse else shown


class _Loop:
    """The carried values and the kept results of a loop that is being written."""

    def __init__(self, block: NumpyBlock, node: Node) -> None:
        self.block, self.node = block, node
        self.view = view = loop_of(node)
        self.rows = [
            k for k in range(view.carries, len(node.outputs)) if block.uses[node.outputs[k]]
        ]
        self.outputs = [*view.results[: view.carries], *(view.results[k] for k in self.rows)]
        self.before: list[str] = []
        self.carried = [Expression(self._start(i), ATOM) for i in range(view.carries)]
        self.stacks: dict[str, list[int]] = {}
        self.arrays: dict[int, str] = {}
        self.popped: dict[int, tuple[Popped, int]] = {}
        for k in self.rows:
            self._keep(k)
        self.counter = self._count()

    def _count(self) -> str:
        """Return the variable that counts the trips, if their number is used; else nothing."""
        rows = self.node.outputs[self.view.carries :]
        told = {v for value in rows for v in variables(value.shape[0])} if rows else set()
        if self.view.length is not None or not told & self.block.needed:
            return ""
        name = self.block.names.give("trips")
        self.block.sizes.update(dict.fromkeys(told, name))
        return name

    def _start(self, i: int) -> str:
        """Return the variable that carries a value, and write what it starts with."""
        block, value = self.block, self.node.inputs[i]
        start = block.operand(value)
        label = own_name(self.view.body.inputs[i].node)
        same = not label or start.text == label or start.text.startswith(f"{label}_")
        if same and block.gives_up(self.node, value):
            assert value is not None
            block.owned.discard(value)
            return start.text
        plain = start.text if start.text.isidentifier() else TEMPORARY
        name = block.names.give(label or plain)
        self.before.append(f"{name} = {start.text}")
        return name

    def ends(self) -> dict[Value, str]:
        """Return the variables that results of the body go to at the end of a trip."""
        pairs = zip(self.view.results, self.carried, strict=False)
        return {value: part.text for value, part in pairs}

    def _keep(self, k: int) -> None:
        """Say where a result of each trip goes."""
        block, value = self.block, self.node.outputs[k]
        reader = self._runs_back(value)
        if reader is None:
            self.arrays[k] = block.name(value)
            return
        scan, column = reader
        entries: list[Popped] = block.stacks.setdefault(scan, [])
        own = next((e for e in entries if e.stack in self.stacks), None)
        if own is None:
            own = Popped(block.names.give("stack"), [], {})
            entries.append(own)
            self.stacks[own.stack] = []
        own.columns.append(column)
        self.stacks[own.stack].append(k)
        self.popped[k] = own, column

    def _runs_back(self, value: Value) -> tuple[Node, int] | None:
        """Return the one scan that takes a result apart in the opposite direction."""
        users = self.block.users.get(value, [])
        if self.block.uses[value] != 1 or not users or users[0].op is not SCAN:
            return None
        scan = users[0]
        _, carries, xs, _, reverse, _, _ = scan.attrs
        column = scan.inputs.index(value) - carries
        back = 0 <= column < xs and reverse is not self.view.reverse
        return (scan, column) if back else None

    def turned(self, found: Sequence[str], stop: str | None = None) -> list[str]:
        """Return the lines at the end of a turn, for what the body gives."""
        count = self.view.carries
        rows = dict(zip(self.rows, found[count:], strict=True))
        lines = [f"{self.counter} += 1"] if self.counter else []
        lines += [f"{name}.append({rows[k]})" for k, name in self.arrays.items()]
        for k, (entry_of, column) in self.popped.items():
            entry_of.pushed[column] = rows[k]
        for stack, entry in self.stacks.items():
            items = [rows[k] for k in entry]
            shown = items[0] if len(items) == 1 else f"({', '.join(items)})"
            lines.append(f"{stack}.append({shown})")
        pairs = list(zip((x.text for x in self.carried), found[:count], strict=True))
        if stop is None:
            return [*lines, *assignments(pairs)]
        known = {text: name for name, text in pairs}
        last = known.get(stop) or self.block.names.give("last")
        extra = [] if stop in known else [(last, stop)]
        return [*lines, *assignments([*pairs, *extra]), f"if {last}:", INDENT + "break"]

    def end(self, head: str, lines: Sequence[str]) -> None:
        """Write all of it, and what becomes of the results."""
        block, node = self.block, self.node
        empty = [f"{name} = []" for name in (*self.arrays.values(), *self.stacks)]
        empty += [f"{self.counter} = 0"] if self.counter else []
        block.lines += [*self.before, *empty, head, *(INDENT + x for x in lines or ["pass"])]
        for k, name in self.arrays.items():
            block.lines.append(f"{name} = {self._stacked(name, k)}")
        for value, part in zip(node.outputs, self.carried, strict=False):
            block.known[value] = part
            block.owned.add(value)

    def _stacked(self, name: str, k: int) -> str:
        """Return the array of what all trips gave."""
        value = self.node.outputs[k]
        turned = f"{name}[::-1]" if self.view.reverse else name
        if isinstance(self.view.length, int) and self.view.length:
            return f"np.stack({turned})"
        shape = ", ".join(map(str, (-1, *value.shape[1:])))
        return f"np.array({turned}, np.dtype({value.dtype.name!r})).reshape({shape})"


def _row_name(block: NumpyBlock, place: Value, value: Value | None, pushed: str) -> str:
    if pushed.isidentifier():
        return block.names.give(re.sub(r"(_\d+)+$", "", pushed))
    wanted = "" if pushed else own_name(place.node)
    if not wanted and value is not None:
        wanted = "i" if counting(value) else "row"
    return block.names.give(wanted or TEMPORARY)


CONTROL = {COND: write_branch, WHILE: write_while, SCAN: write_scan}
