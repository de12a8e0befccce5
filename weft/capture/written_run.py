"""The run of a trace written out: Python text from arguments to the result.

It does what `Trace.run` does for exactly the feeds, results and `.grad`s of one trace. What it has
no text for it calls. There are two such texts: `write_run` gives a function of the leaves of a call
that leaves everything to the general way when the compiled program does not run on what it is fed
as it is, and entry.py writes one that tests the arguments too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..core.anomaly import detecting_anomaly
from ..core.config import config
from ..core.errors import note_commit
from ..core.generated import ObjectNames, define
from ..core.large import LARGE
from ..core.modes import modes
from ..core.specialize import function, indent
from ..core.tape import FREED, Leaf, TapeNode, next_order
from ..core.tensor import new_tensor, wrap
from ..graph.node import Node
from .history import site_of
from .outside import (
    ArgumentWrite,
    Escaped,
    Getter,
    GradientWrite,
    KeptGrad,
    Leaves,
    Outside,
    Rebuilt,
    ResultLinks,
    RowGradWrite,
    TensorArgument,
)

if TYPE_CHECKING:
    from .recorded_call import EscapedLeaf
    from .trace import Trace

WrittenRun = Callable[["Trace", Leaves], Any]

SCOPE: dict[str, Any] = {
    "FREED": FREED,
    "Leaf": Leaf,
    "TapeNode": TapeNode,
    "config": config,
    "detecting_anomaly": detecting_anomaly,
    "modes": modes,
    "note_commit": note_commit,
    "new_tensor": new_tensor,
    "next_order": next_order,
}


def write_run(trace: Trace) -> WrittenRun:
    """Return a function that runs a trace on the leaves of a call's arguments."""
    names = ObjectNames()
    writer = RunWriter(trace, names, lambda position: f"leaves[{position}]")
    lines = [
        # Of a trace for many sizes each size has a call of its own.
        "call = trace.call",
        "latest = call._latest_trapped if config.nan_trap else call._latest",
        "if latest is None or config.debug_interpret:",
        "    return trace.run_generally(leaves)",
        "if modes.interpreters and detecting_anomaly():",
        "    return trace.run_generally(leaves)",
        f"fetched = latest({writer.feeds()})",
        "if fetched is None:",
        "    return trace.run_generally(leaves)",
        *writer.after("trace.counter"),
    ]
    text = function("run", "trace, leaves", lines) + "\n"
    return define("run", text, {**SCOPE, **names.scope}, "trace")


class RunWriter:
    """Writes the text for one trace.

    leaf      gives the text of a leaf of the call, by its position; `leaves` are all
    nodes     the names of variables that hold the leaf nodes of tensors, by `Outside.key`
    flagged   whether the flag of the NaN trap stands behind the fetches
    """

    def __init__(
        self,
        trace: Trace,
        names: ObjectNames,
        leaf: Callable[[int], str],
        nodes: dict[tuple[int | None, int], str] | None = None,
        *,
        flagged: bool = False,
    ) -> None:
        self.trace = trace
        self.names = names
        self.leaf = leaf
        self.nodes = {} if nodes is None else nodes
        self.flagged = flagged
        self.found = [f"found{i}" for i in range(len(trace.escaped))]

    def feeds(self) -> str:
        """Return the expression for what is fed: a tuple."""
        return f"({''.join(f'{self._feed(get)}, ' for get in self.trace.feeds)})"

    def after(self, counter: str) -> list[str]:
        """Return what is to be done with `fetched`, to the end; `counter` counts runs."""
        lines = [
            f"{counter}[0] += 1",
            *self._made(),
            *self._linked(),
            *(line for write in self.trace.writes for line in self._write(write)),
            *self._result(),
        ]
        final = ["except Exception as error:", "    note_commit(error)", "    raise"]
        return ["try:", *indent(lines), *final]

    def _feed(self, get: Getter) -> str:
        """Return the expression for what is fed: an array, where that is known."""
        match get:
            case TensorArgument(position):
                return f"{self.leaf(position)}._value"
            case KeptGrad(owner):
                node = self.nodes.get(owner.key)
                grad = f"{self._outside(owner)}._kept_grad()" if node is None else f"{node}.grad"
                return f"{grad}._value"
            case Outside():
                return self._outside(get)
        return f"{self.names.of(get, 'get')}(leaves)"

    def _outside(self, thing: Outside) -> str:
        return self.names.of(thing.thing) if thing.position is None else self.leaf(thing.position)

    def _made(self) -> Iterator[str]:
        """Yield what makes tensors and numbers of the fetches."""
        count = len(self.trace.program.fetches)
        if self.trace.escaped:
            flag = "flag, " if self.flagged else ""
            yield f"{', '.join(f'array{i}' for i in range(count))}, {flag}= fetched"
        for name, leaf in zip(self.found, self.trace.escaped, strict=True):
            array = f"array{leaf.fetch}"
            if leaf.make is not wrap or self._is_large(leaf):
                yield f"{name} = {self.names.of(leaf.make)}({array})"
            else:
                yield from (f"{name} = new_tensor()", f"{name}._value = {array}")
                yield f"{name}._node = None"

    def _is_large(self, leaf: EscapedLeaf) -> bool:
        """Tell whether a tensor may be so large that eager mode turns to machine code."""
        shape: Sequence[Any] = self.trace.program.fetches[leaf.fetch].type.shape
        return not all(type(size) is int for size in shape) or math.prod(shape) >= LARGE

    def _linked(self) -> Iterator[str]:
        """Yield what puts results on the tape."""
        links: ResultLinks | None = self.trace.links
        if links is None:
            return
        if links.history is not None or links.made:
            yield f"{self.names.of(links, 'link')}({self._all_found()}, fetched, leaves)"
            return
        for i, node in links.freed.items():
            yield from self._freed(self.found[i], node)

    def _freed(self, found: str, node: Node) -> Iterator[str]:
        """Yield what `history.mark_freed` does."""
        code, offset = site_of(node) or (None, 0)
        yield f"node = {found}._node = TapeNode()"
        yield "node.order = next_order()"
        yield f"node.op = {self.names.of(node.op, 'op')}"
        yield "node.parents = (None,)"
        yield "node.saved = FREED"
        yield "node.attrs = ()"
        yield "node.shapes = node.watch = None"
        yield f"node.code = {'None' if code is None else self.names.of(code, 'code')}"
        yield f"node.offset = {offset}"

    def _write(self, write: GradientWrite | ArgumentWrite) -> Iterator[str]:
        """Yield what the function did to tensors besides."""
        owner = self._outside(write.owner)
        if isinstance(write, ArgumentWrite):
            yield f"{owner}._value = fetched[{write.fetch}]"
            return
        grad = self._written_grad(write)
        known = self.nodes.get(write.owner.key)
        if known is not None:
            yield f"{known}.grad = {grad}"
            return
        yield f"node = {owner}._node"
        yield "if node.__class__ is Leaf:"
        yield f"    node.grad = {grad}"
        yield "else:"
        yield f"    {owner}._keep_grad({grad})"

    def _written_grad(self, write: GradientWrite) -> str:
        """Return the expression for a gradient."""
        if isinstance(write, RowGradWrite):
            parts = f"{self.found[write.rows]}, {self.found[write.values]}"
            return f"{self.names.of(write.made, 'row_gradient')}({parts})"
        return "None" if write.number < 0 else self.found[write.number]

    def _result(self) -> Iterator[str]:
        """Yield what makes the result, and what the call did to objects of Python."""
        trace, result = self.trace, self.trace.result
        if isinstance(result, Escaped) and not trace.effects:
            yield f"return {'None' if result.number < 0 else self.found[result.number]}"
            return
        written = self._written_result()
        if written is not None:
            yield f"return {written}"
            return
        yield f"found = {self._all_found()}"
        yield "made = {}"
        yield f"result = {self.names.of(result, 'result')}(found, leaves, made)"
        if trace.effects:
            resolving, effects = self.names.of(trace.resolving), self.names.of(trace.effects)
            yield f"{effects}.apply({resolving}(found, leaves), made)"
        yield "return result"

    def _written_result(self) -> str | None:
        """Return the expression for a nest of results, where nothing else refers to its parts."""
        result = self.trace.result
        if self.trace.effects or not isinstance(result, Rebuilt):
            return None
        return result.text(self.found, self.leaf, self.names)

    def _all_found(self) -> str:
        return f"[{', '.join(self.found)}]"
