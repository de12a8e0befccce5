"""Derivatives as source: `source` and `symbolic` write NumPy programs that stand alone.

A function is traced into a graph, the graph is extended by its adjoint, and that is written
(writer.py).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ...core.dtype import float64, is_float
from ...core.errors import ArgumentError, ArgumentTypeError, GraphError
from ...core.tree import flatten, flatten_with_paths
from ...graph.frontend import placeholder
from ...graph.graph import Graph
from ...graph.node import Value
from ...graph.special import PLACEHOLDER, STATE
from ...graph.symbol import Symbol
from ...graph.text.expressions import Names
from ..arguments import Argnums, FlatFunction, as_value, check_callable, check_examples, name_of
from ..forward import jvp
from ..gradient import grad
from ..pullback import or_zeros, pull_back_of
from ..python_flow.rewriting import rewritten
from .checking import WrittenProgram, check_program
from .graphs import function_of_graph
from .joining import joined
from .loops import CONTROL
from .writer import WIDTH, NumpyBlock, NumpyText

UNLIMITED = 10_000  # an expression of any width
READABLE = ("simplify", "fold", "cse", "simplify", "fold", "dce")


def source(fn: Any, *examples: Any, mode: str = "reverse", check: bool = True) -> str:
    """Return a NumPy program that computes fn and its derivative, for arguments like the examples.

    fn      a function, also with Python's `if`, `while` and `for`, or with `wf.cond`,
            `wf.while_loop` and `wf.scan`; a graph, which is a function of its placeholders; or
            symbols of a graph
    mode    "reverse": the results, and a tuple with the gradient of each floating-point argument;
            "forward": the results and their derivatives along directions that are given behind
            the arguments; "value": the results alone
    check   run the program on the examples, and raise unless it gives what fn gives

    The text stands alone: running it defines a function of the same name, with loops and branches
    as Python's own. It takes the leaves of the arguments as arrays, then tensors that fn uses from
    outside, then in reverse mode for each result that is not one number its gradient, in forward
    mode for each floating-point argument its direction. In reverse mode what a loop must remember
    is pushed on a stack and popped by the loop that runs back.

    >>> import weft as wf
    >>> text = wf.autodiff.source(lambda x: (x * x).sum(), wf.tensor([1.0, 2.0]))
    >>> scope = {}
    >>> exec(text, scope)
    >>> scope["program"](np.array([1.0, 2.0]))
    (np.float64(5.0), (array([2., 4.]),))
    """
    if mode not in _MODES:
        raise ArgumentError(
            f"source: mode must be one of {', '.join(map(repr, _MODES))}. Received: {mode!r:.60}"
        )
    if isinstance(fn, Graph | Symbol | list | tuple | dict):
        fn, examples = function_of_graph(fn, examples)
    check_callable(fn, "source")
    check_examples(fn, examples, "source")
    written = _written(fn, examples, mode)
    if check:
        check_program(written, fn, examples)
    return written.text


def _written(fn: Callable[..., Any], examples: tuple[Any, ...], mode: str) -> WrittenProgram:
    name = _function_name(fn)
    with Graph(name) as graph:
        graph.tracer.accompanied = {}
        xs, structure = _placeholders(fn, examples)
        flat = FlatFunction(rewritten(fn), structure, f"source of {name}")
        with _explaining(fn, flat.fn):
            traced = _MODES[mode](flat, xs)
        outputs = [graph.tracer.value_of(y) for y in (*traced.results, *traced.derivatives)]
    made = _readable(*joined(graph, outputs, graph.tracer.accompanied or {}))
    text = _function_text(made, name, traced.form(), arguments=len(xs))
    outside = [node.attrs[0] for node in made.nodes if node.op is STATE]
    return WrittenProgram(text, name, mode, outside, len(traced.results))


@contextmanager
def _explaining(fn: Callable[..., Any], traced: Callable[..., Any]) -> Iterator[None]:
    """Say why the control flow of a function was not kept, where it should have been."""
    try:
        yield
    except GraphError as error:
        if traced is not fn or not inspect.isfunction(fn):
            raise
        raise GraphError(
            f"{error} [the branches and loops of {name_of(fn)} could not be kept: its text is not "
            "known, or has try, match, yield, global or the else of a loop; define it in a file]"
        ) from error


class _Traced(NamedTuple):
    """What a program returns: results, and derivatives as a tuple behind them."""

    results: list[Any]
    derivatives: list[Any]
    nested: bool = True

    def form(self) -> str:
        """Return how they are returned."""
        plain = "{}, " * len(self.results)
        if not self.nested:
            return plain.rstrip(", ")
        inside = ", ".join(["{}"] * len(self.derivatives))
        return f"{plain}({inside}{',' * (len(self.derivatives) == 1)})"


def _reverse(fn: FlatFunction, xs: list[Any]) -> _Traced:
    ys, pull, _ = pull_back_of(fn, xs)
    pulled = pull([_seed(y, i) for i, y in enumerate(ys)])
    pairs = [(g, x) for g, x in zip(pulled, xs, strict=True) if is_float(x.dtype)]
    return _Traced(list(ys), [or_zeros(g, x) for g, x in pairs])


def _forward(fn: FlatFunction, xs: list[Any]) -> _Traced:
    directions = [_direction(x) if is_float(x.dtype) else None for x in xs]
    ys, tangents = jvp(lambda *leaves: fn(leaves), xs, directions)
    pairs = [(t, y) for t, y in zip(tangents, ys, strict=True) if is_float(y.dtype)]
    return _Traced(list(ys), [or_zeros(t, y) for t, y in pairs])


def _value(fn: FlatFunction, xs: list[Any]) -> _Traced:
    return _Traced(list(fn(xs)), [], nested=False)


_MODES = {"reverse": _reverse, "forward": _forward, "value": _value}


def _direction(x: Any) -> Any:
    return placeholder(x.shape, x.dtype, name=f"d_{x.value.node.name}")


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
    return _function_text(_readable(graph, outputs), "derivative", form, width=UNLIMITED)


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


def _function_text(
    graph: Graph, name: str, form: str, *, width: int = WIDTH, arguments: int | None = None
) -> str:
    """Return the program of a graph as a function; `form` says how its outputs are returned.

    Its parameters are the arguments, what is read from outside, and what else is fed.
    """
    program = NumpyText(CONTROL, name)
    block = NumpyBlock(program, graph, width=width)
    fed = [n for n in graph.nodes if n.op is PLACEHOLDER]
    outside = [n for n in graph.nodes if n.op is STATE]
    count = len(fed) if arguments is None else arguments
    sources = [*fed[:count], *outside, *fed[count:]]
    parameters = [block.name(node.outputs[0], node.name) for node in sources]
    returned = form.format(*block.write(graph.outputs))
    body = "\n".join(f"    {line}" for line in (*block.lines, f"return {returned}"))
    return program.text(f"def {name}({', '.join(parameters)}):\n{body}")
