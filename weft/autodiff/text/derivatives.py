"""Derivatives as source: `source` and `symbolic` write NumPy programs that stand alone.

A function is traced into a graph, the graph is extended by its adjoint, and that is written
(writer.py).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtype import float64, is_float
from ...core.errors import ArgumentTypeError
from ...core.tree import flatten, flatten_with_paths
from ...graph.frontend import placeholder
from ...graph.graph import Graph
from ...graph.node import Value
from ...graph.special import PLACEHOLDER, STATE
from ...graph.symbol import Symbol
from ...graph.text.expressions import Names
from ..arguments import Argnums, FlatFunction, as_value, check_callable, name_of
from ..gradient import grad
from ..pullback import or_zeros, pull_back_of
from .writer import NumpyBlock, NumpyText

READABLE = ("simplify", "fold", "cse", "simplify", "fold", "dce")


def source(fn: Callable[..., Any], *examples: Any) -> str:
    """Return a NumPy program that computes fn and its adjoint, for arguments like the examples.

    The text stands alone: running it defines a function of the same name. It takes the leaves of
    the arguments as arrays, then tensors that fn uses from outside, then for each result that is
    not one number its gradient, and returns the results and a tuple with the gradient of each
    floating-point leaf.

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
    return _function_text(_readable(graph, outputs), name, form)


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
    return _function_text(_readable(graph, outputs), "derivative", form, inline=True)


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


def _function_text(graph: Graph, name: str, form: str, *, inline: bool = False) -> str:
    """Return the program of a graph as a function; `form` says how its outputs are returned.

    Its parameters are what is fed, then what is read from outside.
    """
    program = NumpyText(name)
    block = NumpyBlock(program, graph, inline=inline)
    sources = [n for kind in (PLACEHOLDER, STATE) for n in graph.nodes if n.op is kind]
    parameters = [block.name(node.outputs[0], node.name) for node in sources]
    returned = form.format(*block.write(graph.outputs))
    body = "\n".join(f"    {line}" for line in (*block.lines, f"return {returned}"))
    return program.text(f"def {name}({', '.join(parameters)}):\n{body}")
