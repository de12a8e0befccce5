"""Compile ahead of time: a function or a graph becomes machine code for one signature.

step = wf.compile(f, x, y)      # f is called once, on symbols like x and y
step(x, y)                      # as often as you like, on any values of those shapes and dtypes
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError, GraphError
from ..core.shape import Shape
from ..core.tensor import Tensor, wrap
from ..core.tree import Structure, TreeMismatchError, flatten, flatten_with_paths
from ..graph.call import Call, as_feed
from ..graph.frontend import placeholder
from ..graph.graph import Graph
from ..graph.members import wanted_values
from ..graph.node import Value, type_text
from ..graph.run import Program
from ..graph.symbol import Symbol, make_number
from ..graph.update import Update

Array = np.ndarray[Any, Any]


def compile(
    graph_or_function: Graph | Callable[..., Any], *example_args: Any, fetches: Any = None
) -> Compiled:
    """Return a function, or what a graph computes, as machine code.

    graph_or_function   a function of tensors, or a graph
    example_args        arguments of the shapes and dtypes to compile for, any nest of containers;
                        for a graph, values for its placeholders in their order, needed only if
                        some of their sizes are unknown
    fetches             of a graph: what to return, as for `Session.run`; all its outputs by default

    A function is called once, on symbols. Tensors it uses from outside (parameters) are read anew
    in each call; what it writes to them (running statistics, `assign`, `optimizer.minimize`) is
    written when a call ends. Numbers with a fraction may change from call to call; integers, truth
    values, strings and other objects are part of what is compiled. Results carry no history for
    `backward`: compile a function that returns the gradients too (`wf.gradients`).

    >>> import weft as wf
    >>> step = wf.compile(lambda x, y: (x * y).sum(), wf.ones(3), wf.ones(3))
    >>> step(wf.tensor([1.0, 2.0, 3.0]), wf.tensor([1.0, 1.0, 2.0]))
    tensor(9.)
    """
    if isinstance(graph_or_function, Graph):
        return _compile_graph(graph_or_function, example_args, fetches)
    if not callable(graph_or_function):
        raise ArgumentTypeError(
            "compile: expected a function or a wf.Graph. "
            f"Received: {type(graph_or_function).__name__} {graph_or_function!r:.60}"
        )
    if fetches is not None:
        raise ArgumentError("compile: fetches belong to graphs; a function returns its results")
    return _trace(graph_or_function, example_args)


class Compiled:
    """Machine code that is called like the function it was made from.

    name         of the function or graph
    graph        what it computes
    executable   the machine code, to look inside
    """

    def __init__(self, name: str, signature: Signature, results: Results, program: Program) -> None:
        self.name = name
        self.graph = program.graph
        self._signature = signature
        self._results = results
        self._call = Call(program, name)
        self.executable = self._call.executable(self._stand_ins())
        if self.executable is None:
            raise GraphError(
                f"compile: {name} cannot be compiled: some shape in it depends on values; run it "
                "eagerly, or its graph by wf.Session"
            )

    def _stand_ins(self) -> list[Array]:
        """Return arrays of the feeds' types, at no cost."""
        types = zip(self._call.program.feeds, self._signature.shapes, strict=True)
        return [np.broadcast_to(np.zeros((), value.dtype), shape) for value, shape in types]

    def __call__(self, *args: Any) -> Any:
        """Return the results for arguments of the shapes and dtypes it was compiled for."""
        fed = args if self._signature.plain else self._signature.fed(args)
        fetched = self._call.run_unchecked(fed)
        return self._results.filled(self._run(args) if fetched is None else fetched)

    def _run(self, args: tuple[Any, ...]) -> list[Array]:
        """Return the fetches, after a look at all arguments."""
        arrays = self._call.arrays(self._signature.fed(args))
        if [array.shape for array in arrays] != self._signature.shapes:
            raise ArgumentError(self._mismatch(arrays))
        return self._call.run(arrays)

    def _mismatch(self, arrays: list[Array]) -> str:
        feeds = zip(self._call.program.feeds, arrays, self._signature.shapes, strict=True)
        value, array, shape = next(f for f in feeds if f[1].shape != f[2])
        return (
            f"{self.name}: {value.name} was compiled for shape {shape}. "
            f"Received: shape {array.shape}; compile it for that shape too"
        )

    def stats(self) -> dict[str, Any]:
        """Return how many kernels of each kind there are, and what runs in Python."""
        found: dict[str, Any] = self.executable.stats()
        return found

    def __repr__(self) -> str:
        types = ", ".join(type_text(value.type) for value in self._call.program.feeds)
        return f"<compiled {self.name}({types})>"


# -- arguments and results -------------------------------------------------------------------------


class Signature:
    """What a call must look like.

    structure   the nest of the arguments
    fixed       for each leaf the value that is part of what is compiled, or FED
    plain       whether the arguments are what is fed, with no containers around it
    shapes      of what is fed
    """

    def __init__(self, name: str, structure: Structure, fixed: list[Any]) -> None:
        self.name = name
        self.structure = structure
        self.fixed = fixed
        self.all_fed = all(value is FED for value in fixed)
        self.plain = self.all_fed and all(child.kind is None for child in structure.children)
        self.shapes: list[Shape] = []

    def fed(self, args: tuple[Any, ...]) -> list[Any]:
        """Return what is to be fed; raise if the arguments are not those compiled for."""
        try:
            leaves = self.structure.flatten_like(args, "the arguments")
        except TreeMismatchError as error:
            raise ArgumentTypeError(f"{self.name}: {error}") from None
        if self.all_fed:
            return leaves
        given = []
        for leaf, fixed in zip(leaves, self.fixed, strict=True):
            if fixed is FED:
                given.append(leaf)
            elif leaf is not fixed and not _equal(leaf, fixed):
                raise ArgumentError(
                    f"{self.name}: {fixed!r:.60} is part of what was compiled. "
                    f"Received: {leaf!r:.60} in its place; compile it for that too"
                )
        return given


FED = object()


def _is_fed(leaf: Any) -> bool:
    return isinstance(leaf, (Tensor, np.ndarray, np.generic, float))


def _equal(leaf: Any, fixed: Any) -> bool:
    return type(leaf) is type(fixed) and bool(leaf == fixed)


class Results:
    """What a call returns: fetches in their places, as tensors or arrays, and what is no symbol."""

    def __init__(self, structure: Structure, leaves: list[Any], as_tensors: bool) -> None:
        self.structure = structure
        self.leaves = leaves
        self.alone = structure.kind is None and leaves[0] is FED  # a result without a nest
        self.make: Callable[[Any], Any] = wrap if as_tensors else (lambda array: array)

    def filled(self, fetched: Sequence[Array]) -> Any:
        """Return the nest of results."""
        make, found = self.make, iter(fetched)
        if self.alone:
            return make(fetched[0])
        leaves = [make(next(found)) if leaf is FED else leaf for leaf in self.leaves]
        return self.structure.unflatten(leaves)


# -- functions -------------------------------------------------------------------------------------


def _trace(function: Callable[..., Any], args: tuple[Any, ...]) -> Compiled:
    """Call a function on symbols, and compile what it did."""
    name = getattr(function, "__name__", type(function).__name__)
    leaves, structure = flatten(args)
    signature = Signature(name, structure, [FED if _is_fed(x) else x for x in leaves])
    with Graph(name) as graph:
        graph.tracer.sequential = True
        named = zip(_paths(function, args), leaves, strict=True)
        symbols = [_symbol_like(x, path) if _is_fed(x) else x for path, x in named]
        returned, nest = flatten(function(*structure.unflatten(symbols)))
        fetches, places = _results_of(graph, returned)
        targets = [graph.tracer.commit(*pair) for pair in graph.pending_updates()]
    signature.shapes = [value.shape for value in graph.inputs]
    program = Program(graph, fetches, list(graph.inputs), targets)
    return Compiled(name, signature, Results(nest, places, as_tensors=True), program)


def _paths(function: Callable[..., Any], args: tuple[Any, ...]) -> list[str]:
    """Return what the leaves of arguments are called: `batch['x']`."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a function without a signature
        parameters = []
    named = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]
    names = [*named, *(f"argument_{i}" for i in range(len(named), len(args)))]
    return [
        name + path
        for name, arg in zip(names, args, strict=False)
        for path, _ in flatten_with_paths(arg)
    ]


def _symbol_like(example: Any, name: str) -> Symbol:
    if isinstance(example, float):
        number = placeholder((), np.float64, name=name)
        return make_number(number.graph, number.value)
    array = example.numpy() if isinstance(example, Tensor) else np.asarray(example)
    return placeholder(array.shape, array.dtype, name=name)


def _results_of(graph: Graph, returned: list[Any]) -> tuple[list[Value], list[Any]]:
    """Return what to fetch, and for each result FED or what it is; updates are made anyway."""
    fetches: list[Value] = []
    places: list[Any] = []
    for leaf in returned:
        if isinstance(leaf, Tensor):
            fetches.append(graph.tracer.value_of(leaf))
            places.append(FED)
        else:
            places.append(None if isinstance(leaf, Update) else leaf)
    return fetches, places


# -- graphs ----------------------------------------------------------------------------------------


def _compile_graph(graph: Graph, args: tuple[Any, ...], fetches: Any) -> Compiled:
    """Compile what a graph computes from its placeholders."""
    name = f"graph {graph.name!r}"
    leaves, nest = flatten(list(graph.outputs) if fetches is None else fetches)
    if not leaves:
        raise ArgumentError("compile: say what to compute of the graph: fetches=...")
    wanted = wanted_values(graph, leaves, "compile")
    feeds = _needed(graph, [*wanted.fetches, *wanted.targets])
    if args and len(args) != len(feeds):
        names = ", ".join(value.name for value in feeds)
        raise ArgumentError(
            f"compile: the fetches need {len(feeds)} placeholder(s): {names}. "
            f"Received: {len(args)} example(s)"
        )
    structure = flatten((0,) * len(feeds))[1]
    signature = Signature(name, structure, [FED] * len(feeds))
    program = Program(graph, wanted.fetches, feeds, wanted.targets)
    signature.shapes = [_shape_of(v, args[i] if args else None) for i, v in enumerate(feeds)]
    places = [FED if is_value else None for is_value in wanted.returned]
    return Compiled(name, signature, Results(nest, places, as_tensors=False), program)


def _needed(graph: Graph, values: list[Value]) -> list[Value]:
    run = set(graph.ancestors(values))
    return [value for value in graph.inputs if value.node in run]


def _shape_of(value: Value, example: Any) -> Shape:
    if example is not None:
        shape: Shape = as_feed(value, example, "compile").shape
        return shape
    if any(not isinstance(size, int) for size in value.shape):
        raise ArgumentError(
            f"compile: {value.name} is {type_text(value.type)}: give examples for the "
            "placeholders, so that all sizes are known"
        )
    return value.shape
