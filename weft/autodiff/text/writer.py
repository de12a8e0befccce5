"""Write the nodes of a graph as statements of NumPy; control flow becomes Python's own.

Each node is an expression: an operator or a NumPy function where there is one, else a call of the
kernel, which is written out beside it. What is used once is written where it is used. Control flow
is written in branches.py and loops.py.
"""

from __future__ import annotations

import builtins
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.dim import Dim, SizeVar, variables
from ...core.errors import ArgumentError
from ...graph.custom import CustomGradient
from ...graph.graph import Graph
from ...graph.node import Node, Value, size_variables
from ...graph.special import CONSTANT, PARAMETER, PLACEHOLDER, STATE
from ...graph.text.expressions import Expressions, Names
from ...ops.elementwise.filling import fill_like
from .kernels import KernelText, literal
from .spelling import ATOM, LOWEST, SIGN, Expression, spelling_of, within

INDENT = "    "
WIDTH = 68  # of an expression that is written where it is used
TEMPORARY = "t"


class NumpyText:
    """A program that is being written: its imports, kernels, and names that are taken.

    control   what writes nodes with bodies, by their operators: that of loops.py
    """

    def __init__(self, control: Mapping[Any, Any], *taken: str) -> None:
        self.control = control
        self.names = Names({"np", *dir(builtins), *taken})
        self.kernels = KernelText(self.names)

    def text(self, definition: str) -> str:
        """Return all of it, with a definition at the end."""
        imports = "\n".join(sorted(self.kernels.imports))
        return "\n\n".join([imports, *self.kernels.parts, definition]) + "\n"


class NumpyBlock:
    """Writes the nodes of a graph, or of a body of control flow.

    width    of expressions that are written where they are used, if that is one place
    typed    whether constants say their dtype, which they need not beside arrays
    known    what values are written as
    owned    values whose names are their own: a loop that starts from one may go on with its name
    stacks   what scans take from stacks, by the scan: see loops.py
    """

    def __init__(
        self, program: NumpyText, graph: Graph, *, width: int = WIDTH, typed: bool = False
    ) -> None:
        self.program, self.graph, self.width, self.typed = program, graph, width, typed
        self.names = program.names
        self.known: dict[Value, Expression] = {}
        self.owned: set[Value] = set()
        self.stacks: dict[Node, Any] = {}
        self.lines: list[str] = []
        self.uses: Counter[Value | None] = Counter()
        self.wanted: dict[Value, str] = {}  # variables that values go to at the end
        self.left: Counter[Value | None] = Counter()  # uses by nodes that are not written yet
        self.users: dict[Value, list[Node]] = {}
        self.pinned: set[Value] = set()
        self.needed: set[SizeVar] = set()  # sizes that are only known when the program runs
        self.sizes: dict[SizeVar, str] = {}

    def name(self, value: Value, wanted: str = "") -> str:
        """Give a value a name, and return it."""
        name = self.names.give(wanted or own_name(value.node) or TEMPORARY)
        self.known[value] = Expression(name, ATOM)
        self.owned.add(value)
        return name

    def write(self, outputs: Sequence[Value]) -> list[str]:
        """Write what some values need; return what they are written as."""
        nodes = self.graph.ancestors(outputs)
        self._count(nodes, outputs)
        self.left = Counter(self.uses)
        for node in nodes:
            self.left.subtract(node.inputs)
            self._write(node)
        return [self.known[value].text for value in outputs]

    def _count(self, nodes: Sequence[Node], outputs: Sequence[Value]) -> None:
        """Count where values are used, and note those that a body takes: they need a name."""
        self.uses.update(outputs)
        for node in nodes:
            self.uses.update(node.inputs)
            for x in node.inputs:
                if x is not None:
                    self.users.setdefault(x, []).append(node)
            if node.op in self.program.control:
                self.pinned.update(x for x in taken_inside(node) if x is not None)
            if not node.op.attrs or "xs" not in node.op.attrs or not node.attr("xs"):
                self.needed |= size_variables(node)
            else:  # a scan over columns is told its length by them
                self.needed |= node.attrs[0].free_sizes()

    def _write(self, node: Node) -> None:
        if node.op in (PLACEHOLDER, PARAMETER, STATE):
            return
        if node.op is CONSTANT:
            self._constant(node)
        elif node.op.identity:
            self._alias(node.outputs[0], node.inputs[0])
        elif isinstance(node.op, CustomGradient):
            _, first, count = node.attrs
            for value, given in zip(node.outputs, node.inputs[first : first + count], strict=True):
                self._alias(value, given)
        elif node.op in self.program.control:
            self.program.control[node.op](self, node)
        else:
            self.assign(node, self._expression(node))

    def _constant(self, node: Node) -> None:
        value = node.outputs[0]
        made = constant(node.attrs[0].array, typed=self.typed)
        self.known[value] = made
        if node.attrs[0].array.ndim and self.uses[value] > 1 and counting(value) is None:
            self.lines.append(f"{self.name(value)} = {made.text}")

    def _alias(self, value: Value, given: Value | None) -> None:
        """Let a value be written as another, which has a name if it would be computed twice."""
        self.known[value] = self.operand(given)
        if self.known[value].text.isidentifier() or given is None:
            return
        if self.uses[value] > 1 or value in self.pinned:
            text = self.known[value].text
            self.lines.append(f"{self.name(value)} = {text}")

    def assign(self, node: Node, made: Expression) -> None:
        """Write what a node computes: where it is used, or as a statement."""
        value = node.outputs[0] if len(node.outputs) == 1 else None
        once = value is not None and self.uses[value] <= 1 and value not in self.pinned
        if value is not None and once and len(made.text) <= self.width:
            self.known[value] = made
            return
        names = [self.name(value) for value in node.outputs]
        comma = "," if node.op.outputs != 1 and len(names) == 1 else ""
        self.lines.append(f"{', '.join(names)}{comma} = {made.text}")

    def gives_up(self, node: Node, value: Value | None) -> bool:
        """Tell whether a node that changes things may go on with the name of an operand.

        Nothing that is still to be written must read it.
        """
        if value is None or value not in self.owned or self.left[value] > 0:
            return False
        name = self.known[value].text
        if node.inputs.count(value) > 1 or not name.isidentifier():
            return False
        mention = re.compile(rf"\b{name}\b")
        later = (x for x, count in self.left.items() if x is not None and count > 0)
        return not any(mention.search(self.known[x].text) for x in later if x in self.known)

    def operand(self, value: Value | None) -> Expression:
        """Return what an operand is written as."""
        return Expression("None", ATOM) if value is None else self.known[value]

    def operands(self, node: Node) -> list[Expression]:
        """Return what the operands of a node are written as."""
        return [self.operand(x) for x in node.inputs]

    def body(
        self, graph: Graph, given: Sequence[Expression], owned: Sequence[Value] = ()
    ) -> NumpyBlock:
        """Return a block for a body whose inputs are written already."""
        block = NumpyBlock(self.program, graph, width=self.width, typed=self.typed)
        block.known.update(zip(graph.inputs, given, strict=True))
        block.owned.update(owned)
        block.sizes.update(self.sizes)
        return block

    def _expression(self, node: Node) -> Expression:
        op = node.op
        if op.kernel is None:
            raise ArgumentError(
                f"{op.name} at {node.where or 'an unknown line'} cannot be written as NumPy"
            )
        operands = self.operands(node)
        attrs = {name: self.attr(node, v) for name, v in zip(op.attrs, node.attrs, strict=True)}
        form = spelling_of(node)
        if form is not None and form.fits(attrs):
            named = {name: Expression(text, ATOM) for name, text in attrs.items()}
            helpers = {
                name: Expression(self.program.kernels.helper(function), ATOM)
                for name, function in form.helpers.items()
            }
            return form.filled({**named, **helpers, **_by_place(op, operands)})
        if op is fill_like and node.outputs[0].shape == ():
            made = np.array(node.attr("value"), node.outputs[0].dtype)
            return constant(made, typed=self.typed)
        return self._kernel_call(node, operands, attrs)

    def attr(self, node: Node, value: Any) -> str:
        """Return an attribute of a node as an expression."""
        return attr_text(node, value, self.sizes)

    def _kernel_call(
        self, node: Node, operands: list[Expression], attrs: dict[str, str]
    ) -> Expression:
        op = node.op
        dtypes = [None if x is None else x.dtype for x in node.inputs]
        kernel = self.program.kernels.call(op, dtypes, node.attrs)
        args = [within(part, LOWEST) for part in operands]
        if op.variadic:
            fixed = len(op.inputs) - 1
            args = [*args[:fixed], f"[{', '.join(args[fixed:])}]"]
        return Expression(f"{kernel}({', '.join((*args, *attrs.values()))})", ATOM)


def taken_inside(node: Node) -> Sequence[Value | None]:
    """Return what the bodies of a node take from outside, which is there before it runs."""
    if "carries" not in node.op.attrs:
        return node.inputs[1:]
    first = node.attr("carries")
    return node.inputs[first:]


def own_name(node: Node) -> str:
    """Return the name that a program gave a node, empty if only its operator did."""
    name = node.name.rpartition("/")[2]
    if re.fullmatch(rf"{node.op.name}(_\d+)*|{_GIVEN}(_\d+)*", name):
        return ""
    return re.sub(r"(_\d+)+$", "", name).lstrip("_")


_GIVEN = r"(d_)*(arg|captured|g|placeholder|constant|tick)"


def _by_place(op: Any, operands: Sequence[Expression]) -> dict[str, Expression]:
    """Return operands by the names of their places; those of a sequence are numbered."""
    if not op.variadic:
        return dict(zip(op.inputs, operands, strict=True))
    fixed = len(op.inputs) - 1
    found = dict(zip(op.inputs[:fixed], operands, strict=False))
    last = op.inputs[fixed]
    found.update((f"{last}_{i}", x) for i, x in enumerate(operands[fixed:]))
    return found


def counting(value: Value) -> range | None:
    """Return the range that a constant is, if it is one."""
    if value.node.op is not CONSTANT or len(value.shape) != 1 or value.dtype.kind != "i":
        return None
    array = value.node.attrs[0].array
    if len(array) < 2:
        return None
    step = int(array[1] - array[0])
    if not step:
        return None
    found = range(int(array[0]), int(array[0]) + step * len(array), step)
    return found if np.array_equal(array, np.asarray(found)) else None


def attr_text(node: Node, value: Any, sizes: Mapping[SizeVar, str]) -> str:
    """Return an attribute of a node as an expression, given what sizes are written as."""
    text = size_text(value, sizes) if isinstance(value, Dim) else literal(value)
    if type(value) is tuple and any(isinstance(item, Dim) for item in value):
        inside = ", ".join(attr_text(node, item, sizes) for item in value)
        text = f"({inside}{',' * (len(value) == 1)})"
    if text is None:
        raise ArgumentError(
            f"{node.op.name}: its attribute {value!r:.60} cannot be written as NumPy"
        )
    return text


def size_text(size: Dim, sizes: Mapping[SizeVar, str]) -> str | None:
    """Return a size as an expression; None if it depends on one that is not known."""
    if any(v not in sizes for v in variables(size)):
        return None
    text = Expressions(sizes).attr(size)
    return None if "F." in text else text


def constant(array: np.ndarray[Any, Any], *, typed: bool = False) -> Expression:
    """Return a constant; a number of the common types is written as Python's unless typed."""
    if array.ndim == 0 and array.dtype.kind in "bif":
        text = literal(_shortest(array)) or ""
        if typed:
            return Expression(f"np.{array.dtype.type.__name__}({text})", ATOM)
        return Expression(text, SIGN if text.startswith("-") else ATOM)
    usual = not typed and array.dtype in (np.float64, np.int64, np.bool_)
    dtype = "" if usual else f", np.dtype({array.dtype.name!r})"
    if array.size > 3 and _is_uniform(array):
        return Expression(f"np.full({array.shape}, {literal(array.flat[0].item())}{dtype})", ATOM)
    return Expression(f"np.array({_nested(array)}{dtype})", ATOM)


def _is_uniform(array: np.ndarray[Any, Any]) -> bool:
    first = array.flat[0]
    return (
        bool(np.all(array == first)) and array.dtype.kind in "bif" and bool(np.signbit(first) == 0)
    )


def _nested(array: np.ndarray[Any, Any]) -> str:
    if np.all(np.isfinite(array)) if array.dtype.kind == "f" else True:
        return repr(array.tolist())
    return repr(array.tolist()).replace("nan", "np.nan").replace("inf", "np.inf")


def _shortest(array: np.ndarray[Any, Any]) -> Any:
    """Return a number with the fewest digits that give the same value of its dtype."""
    return float(str(array[()])) if array.dtype.kind == "f" else array.item()
