"""Derivatives as source: `source` and `symbolic` write NumPy programs that stand alone.

A function is traced into a graph, the graph is extended by its adjoint, and each node becomes an
expression: an operator or a NumPy function where there is one, else a call of the kernel, which is
written out beside it.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...core.dtype import float64, is_float
from ...core.errors import ArgumentError, ArgumentTypeError
from ...core.tree import flatten, flatten_with_paths
from ...graph.custom import CustomGradient
from ...graph.frontend import placeholder
from ...graph.graph import Graph
from ...graph.node import Node, Value
from ...graph.special import CONSTANT, PLACEHOLDER, STATE
from ...graph.symbol import Symbol
from ...graph.text.expressions import Names
from ...ops.elementwise.filling import fill_like
from ..arguments import Argnums, FlatFunction, as_value, check_callable, name_of
from ..gradient import grad
from ..pullback import or_zeros, pull_back_of
from .kernels import KernelText, literal

READABLE = ("simplify", "fold", "cse", "simplify", "fold", "dce")


def source(fn: Callable[..., Any], *examples: Any) -> str:
    """Return a NumPy program that computes fn and its adjoint, for arguments like the examples.

    The text stands alone: running it defines a function of the same name. It takes the leaves of
    the arguments as arrays, then tensors that fn uses from outside, then for each result that is
    not one number its gradient, and returns the results and a tuple with the gradient of each
    floating-point leaf. Loops and branches of graphs have no such text.

    >>> import weft as wf
    >>> text = wf.autodiff.source(lambda x: (x * x).sum(), wf.tensor([1.0, 2.0]))
    >>> scope = {}
    >>> exec(text, scope)
    >>> scope["program"](np.array([1.0, 2.0]))
    (np.float64(5.0), (array([2., 4.]),))
    """
    check_callable(fn, "source")
    name = _function_name(fn)
    with Graph(name) as graph:
        xs, structure = _placeholders(fn, examples)
        ys, pull, _ = pull_back_of(FlatFunction(fn, structure, f"source of {name}"), xs)
        seeds = [_seed(y, i) for i, y in enumerate(ys)]
        pairs = [(g, x) for g, x in zip(pull(seeds), xs, strict=True) if is_float(x.dtype)]
        grads = [or_zeros(g, x) for g, x in pairs]
        outputs = [graph.tracer.value_of(y) for y in (*ys, *grads)]
    form = f"{'{}, ' * len(ys)}({'{}, ' * len(grads)}".rstrip() + ")"
    return _Writer(_readable(graph, outputs), name, form, inline=False).text()


def symbolic(fn: Callable[..., Any], argnums: Argnums = 0) -> str:
    """Return the derivative of a function of numbers as readable Python.

    Several argnums give a tuple of derivatives, as in `grad`.

    >>> import weft as wf
    >>> print(wf.autodiff.symbolic(lambda x: wf.sin(x) * x))
    import numpy as np
    <BLANKLINE>
    def derivative(x):
        return np.sin(x) + x * np.cos(x)
    <BLANKLINE>
    """
    check_callable(fn, "symbolic")
    with Graph("derivative") as graph:
        xs = [placeholder((), float64, name=name) for name in _parameters(fn)]
        found = grad(fn, argnums)(*xs)
        several = isinstance(found, tuple)
        outputs = [graph.tracer.value_of(g) for g in (found if several else (found,))]
    form = f"({', '.join(['{}'] * len(outputs))}{',' * (len(outputs) == 1)})" if several else "{}"
    return _Writer(_readable(graph, outputs), "derivative", form, inline=True).text()


def _function_name(fn: Callable[..., Any]) -> str:
    name = name_of(fn)
    return name if name.isidentifier() else "program"


def _parameters(fn: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"symbolic: the parameters of {fn!r:.60} are not known; wrap it in a lambda"
        ) from None
    return [p.name for p in parameters if p.default is p.empty and p.kind < p.VAR_POSITIONAL]


def _placeholders(fn: Callable[..., Any], examples: tuple[Any, ...]) -> tuple[list[Any], Any]:
    leaves, structure = flatten(examples)
    paths = [path for path, _ in flatten_with_paths(examples)]
    values = [as_value(x, f"source of {name_of(fn)}: an example") for x in leaves]
    names = _leaf_names(fn, paths)
    return [
        placeholder(x.shape, x.dtype, name=name) for x, name in zip(values, names, strict=True)
    ], structure


def _leaf_names(fn: Callable[..., Any], paths: Sequence[str]) -> list[str]:
    """Return what to call the leaves of arguments: `[0]['w']` is `params_w`."""
    try:
        parameters = list(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        parameters = []
    names = Names(set())
    found = []
    for path in paths:
        position, _, rest = path[1:].partition("]")
        first = parameters[int(position)] if int(position) < len(parameters) else f"x{position}"
        found.append(names.give("_".join([first, *re.findall(r"\w+", rest)])))
    return found


def _seed(y: Any, position: int) -> Any:
    if not is_float(y.dtype):
        return None
    if y.shape == ():
        return as_value(np.ones((), y.dtype), "one")
    return placeholder(y.shape, y.dtype, name=f"g{position}")


def _readable(graph: Graph, outputs: list[Value]) -> Graph:
    """Return a graph without what readers need not see."""
    symbols = [_symbol(graph, value) for value in outputs]
    return graph.optimize(symbols, passes=READABLE)


def _symbol(graph: Graph, value: Value) -> Symbol:
    symbol: Symbol = object.__new__(Symbol)
    symbol.graph, symbol.value = graph, value
    return symbol


# -- text ------------------------------------------------------------------------------------------


class Expression(NamedTuple):
    """An expression, and how tightly it binds: operands that bind less are put in parentheses."""

    text: str
    binding: int


ATOM, POWER, SIGN, PRODUCT, SUM, COMPARISON = 6, 5, 4, 3, 2, 1
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


def within(part: Expression, binding: int) -> str:
    """Return an expression as an operand of one that binds so tightly."""
    return part.text if part.binding >= binding else f"({part.text})"


class Spelling(NamedTuple):
    """An expression with places for others, how tightly it binds, and they must at the least."""

    text: str
    binding: int
    places: dict[str, int]

    def fits(self, attrs: Mapping[str, str]) -> bool:
        """Tell whether it says all that the attributes do."""
        return all(text == "None" for name, text in attrs.items() if name not in self.places)

    def filled(self, parts: Mapping[str, Expression]) -> Expression:
        """Return the expression of some others."""
        texts = {name: within(parts[name], binding) for name, binding in self.places.items()}
        return Expression(self.text.format(**texts), self.binding)


def spelling_of(op: Any) -> Spelling | None:
    """Return how an operator is written in NumPy's terms, None if only as a call of its kernel."""
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
    least = ATOM if isinstance(node, ast.Attribute) else 0
    return [(child, least) for child in ast.iter_child_nodes(node)]


def _binding(node: ast.AST) -> int:
    if isinstance(node, ast.BinOp):
        return _BINDING.get(type(node.op), PRODUCT)
    if isinstance(node, ast.UnaryOp):
        return SIGN
    return COMPARISON if isinstance(node, ast.Compare) else ATOM


_BINDING: dict[type[ast.operator], int] = {ast.Add: SUM, ast.Sub: SUM, ast.Pow: POWER}


class _Writer:
    """Writes the function of one graph; `form` says how its outputs are returned."""

    def __init__(self, graph: Graph, name: str, form: str, *, inline: bool) -> None:
        self.graph, self.name, self.form, self.inline = graph, name, form, inline
        self.names = Names({"np", name})
        self.kernels = KernelText(self.names)
        self.known: dict[Value, Expression] = {}
        self.lines: list[str] = []
        self.users = graph.users()

    def text(self) -> str:
        """Return the program."""
        parameters = self._parameters()
        for node in self.graph.ancestors(self.graph.outputs):
            self._write(node)
        returned = self.form.format(*(self.known[value].text for value in self.graph.outputs))
        body = "\n".join(f"    {line}" for line in (*self.lines, f"return {returned}"))
        program = f"def {self.name}({', '.join(parameters)}):\n{body}"
        imports = "\n".join(sorted(self.kernels.imports))
        return "\n\n".join([imports, *self.kernels.parts, program]) + "\n"

    def _parameters(self) -> list[str]:
        """Return the arguments: what is fed, then what is read from outside."""
        sources = [n for n in self.graph.nodes if n.op is PLACEHOLDER]
        sources += [n for n in self.graph.nodes if n.op is STATE]
        found = []
        for node in sources:
            name = self.names.give(node.name)
            self.known[node.outputs[0]] = Expression(name, ATOM)
            found.append(name)
        return found

    def _write(self, node: Node) -> None:
        if node.op in (PLACEHOLDER, STATE):
            return
        if node.op is CONSTANT:
            self.known[node.outputs[0]] = _constant(node.attrs[0].array)
        elif node.op.identity:
            self.known[node.outputs[0]] = self._operand(node.inputs[0])
        elif isinstance(node.op, CustomGradient):
            _, first, count = node.attrs
            for value, given in zip(node.outputs, node.inputs[first : first + count], strict=True):
                self.known[value] = self._operand(given)
        else:
            self._assign(node, self._expression(node))

    def _assign(self, node: Node, made: Expression) -> None:
        if len(node.outputs) == 1 and self.inline and len(self.users[node.outputs[0]]) <= 1:
            self.known[node.outputs[0]] = made
            return
        names = [self.names.give(value.name.rpartition("/")[2]) for value in node.outputs]
        self.lines.append(f"{', '.join(names)} = {made.text}")
        self.known.update(
            (v, Expression(n, ATOM)) for v, n in zip(node.outputs, names, strict=True)
        )

    def _operand(self, value: Value | None) -> Expression:
        return Expression("None", ATOM) if value is None else self.known[value]

    def _expression(self, node: Node) -> Expression:
        op = node.op
        if op.kernel is None or op.kind == "control":
            raise ArgumentError(
                f"{op.name} at {node.where or 'an unknown line'} cannot be written as NumPy; write "
                "it as plain Python, which is traced step by step"
            )
        operands = [self._operand(x) for x in node.inputs]
        attrs = {
            name: self._attr(node, value) for name, value in zip(op.attrs, node.attrs, strict=True)
        }
        form = spelling_of(op)
        if form is not None and form.fits(attrs):
            named = {name: Expression(text, ATOM) for name, text in attrs.items()}
            return form.filled({**named, **dict(zip(op.inputs, operands, strict=True))})
        if op is fill_like and node.outputs[0].shape == ():
            return _constant(np.array(node.attr("value"), node.outputs[0].dtype))
        return self._kernel_call(node, operands, attrs)

    def _kernel_call(
        self, node: Node, operands: list[Expression], attrs: dict[str, str]
    ) -> Expression:
        op = node.op
        dtypes = [None if x is None else x.dtype for x in node.inputs]
        kernel = self.kernels.call(op, dtypes, node.attrs)
        args = [part.text for part in operands]
        if op.variadic:
            fixed = len(op.inputs) - 1
            args = [*args[:fixed], f"[{', '.join(args[fixed:])}]"]
        return Expression(f"{kernel}({', '.join((*args, *attrs.values()))})", ATOM)

    def _attr(self, node: Node, value: Any) -> str:
        text = literal(value)
        if text is None:
            raise ArgumentError(
                f"{node.op.name}: its attribute {value!r:.60} cannot be written as NumPy"
            )
        return text


def _constant(array: np.ndarray[Any, Any]) -> Expression:
    """Return a constant; a number of the common types is written as Python's."""
    if array.ndim == 0 and array.dtype.kind in "bif":
        text = literal(_shortest(array)) or ""
        return Expression(text, SIGN if text.startswith("-") else ATOM)
    return Expression(f"np.array({array.tolist()!r}, np.dtype({array.dtype.name!r}))", ATOM)


def _shortest(array: np.ndarray[Any, Any]) -> Any:
    """Return a number with the fewest digits that give the same value of its dtype."""
    return float(str(array[()])) if array.dtype.kind == "f" else array.item()
