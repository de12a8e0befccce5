"""Compile ahead of time: a function or a graph becomes machine code for one signature.

step = wf.compile(f, x, y)      # f is called once, on symbols like x and y
step(x, y)                      # as often as you like, on any values of those shapes and dtypes

What f read of Python's while it was called (whether a module trains, say) is looked at in each
call: where it has changed, f is called on symbols again, and both programs are kept.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..autodiff.arguments import check_examples
from ..autodiff.text.programs import PlacedValue
from ..compiler.exported import export_program
from ..compiler.saved import load_programs, save_programs
from ..compiler.stages import compile_program
from ..core.config import config
from ..core.device import AUTO, CPU, check_program_device, device
from ..core.device_array import is_placed
from ..core.dtype import Array
from ..core.errors import ArgumentError, ArgumentTypeError, GraphError
from ..core.modes import is_grad_enabled
from ..core.placing import common_device, place
from ..core.shape import Shape
from ..core.tensor import Tensor, wrap
from ..core.tree import Structure, TreeMismatchError, flatten, flatten_with_paths
from ..graph.call import ProgramCall
from ..graph.donation import Donated, Taking, donated_arguments, donated_feeds
from ..graph.feeds import as_feed
from ..graph.frontend import placeholder
from ..graph.graph import Graph
from ..graph.members import wanted_values
from ..graph.node import Value, type_text
from ..graph.placement import SEVERAL
from ..graph.run import Program
from ..graph.symbol import Symbol, make_number
from ..graph.update import Update
from .exported_call import named_results
from .source import program_source, program_states

MOST_VARIANTS = 16  # programs of one function, each with an arena


def compile(
    graph_or_function: Graph | Callable[..., Any],
    *example_args: Any,
    fetches: Any = None,
    device: Any = None,
    saved: Any = None,
    donate: Any = None,
) -> Compiled:
    """Return a function, or what a graph computes, as machine code.

    graph_or_function   a function of tensors, or a graph
    example_args        arguments of the shapes and dtypes to compile for, any nest of containers;
                        for a graph, values for its placeholders in their order, needed only if
                        some of their sizes are unknown
    fetches             of a graph: what to return, as for `Session.run`; all its outputs by default
    device              where to run; by default where the examples, or the graph's nodes, are
    saved               a file that `save` of what this returned has written, to be used instead of
                        compiling; one that is not for this machine and version is not used
    donate              arguments that each call is given for good, by position or name, of a graph
                        by placeholder: results may take their memory. A tensor has no elements any
                        more then; a NumPy array is written over

    A function is called once, on symbols. Tensors it uses from outside (parameters) are read anew
    in each call, as are learning rates; what it writes to them (running statistics, `assign`,
    `optimizer.minimize`) is written when a call ends. Numbers with a fraction may change from call
    to call; integers, truth values, strings and other objects are part of what is compiled.

    It is compiled anew, by itself, when a module it calls goes from `train()` to `eval()` or back,
    when parameters of its optimizers are frozen, unfrozen or added, when the default dtype changes,
    and, if it takes gradients, inside `no_grad`. Other things of Python's that it read, globals and
    attributes, are those of the first call: compile it again when they change.

    Results carry no history for `backward`: compile a function that returns the gradients too
    (`wf.gradients`).

    >>> import weft as wf
    >>> step = wf.compile(lambda x, y: (x * y).sum(), wf.ones(3), wf.ones(3))
    >>> step(wf.tensor([1.0, 2.0, 3.0]), wf.tensor([1.0, 1.0, 2.0]))
    tensor(9.)
    """
    if saved is not None:
        load_programs(saved, "compile")
    if isinstance(graph_or_function, Graph):
        return _compile_graph(graph_or_function, example_args, fetches, device, donate)
    if not callable(graph_or_function):
        raise ArgumentTypeError(
            "compile: expected a function or a wf.Graph. "
            f"Received: {type(graph_or_function).__name__} {graph_or_function!r:.60}"
        )
    if fetches is not None:
        raise ArgumentError("compile: fetches belong to graphs; a function returns its results")
    check_examples(graph_or_function, example_args, "compile")
    return _trace(graph_or_function, example_args, device, donate)


class Compiled:
    """Machine code that is called like the function it was made from.

    name         of the function or graph
    graph        what it computes
    executable   the machine code, to look inside
    """

    def __init__(
        self, name: str, signature: Signature, trace: Callable[..., Traced], on: Any = None
    ) -> None:
        self.name = name
        self._on = on  # the device to run on; None for that of the nodes
        self._signature = signature
        self._trace = trace
        self._variants: list[_Variant] = []
        self._now = self._made()

    @property
    def graph(self) -> Graph:
        """Return what the last call computed."""
        return self._now.call.program.graph

    @property
    def executable(self) -> Any:
        """Return the machine code of the last call."""
        return self._now.executable

    def __reduce__(self) -> NoReturn:
        raise GraphError(
            f"compile: {self.name} was compiled for the tensors that it uses, and cannot be copied "
            "or pickled; compile it again there, or use wf.jit, whose copies are compiled anew"
        )

    def _made(self) -> _Variant:
        """Return the program as things are now, as machine code."""
        traced = self._trace()
        call = ProgramCall(traced.program, self.name, self._on)
        shapes = tuple(self._signature.shapes)
        code = compile_program(traced.program, call.fed_shapes(shapes), device=call.device)
        executable = call.keep(shapes, code)
        if executable is None:
            raise GraphError(
                f"compile: {self.name} cannot be compiled: some shape in it depends on values; run "
                "it eagerly, or its graph by wf.Session"
            )
        made = _Variant(call, traced.results, executable, config.default_float, traced.guards)
        self._variants = [*self._variants[1 - MOST_VARIANTS :], made]
        return made

    def _suited(self) -> _Variant:
        """Return the program for how things are now, made if it is not known."""
        kind = config.default_float
        known = (v for v in self._variants if v.default_float == kind and v.holds())
        self._now = next(known, None) or self._made()
        return self._now

    def __call__(self, *args: Any) -> Any:
        """Return the results for arguments of the shapes and kinds that it was compiled for."""
        now = self._now
        if now.default_float != config.default_float or (now.guards and not now.holds()):
            now = self._suited()
        if now.call.program.donated:
            return now.results.filled(self._run_donating(now.call, args))
        fed = args if self._signature.plain else self._signature.fed(args)
        fetched = now.call.run_unchecked(fed)
        return now.results.filled(self._run(now.call, args) if fetched is None else fetched)

    def _run_donating(self, call: ProgramCall, args: tuple[Any, ...]) -> list[Array]:
        """Return the fetches, and let what is given away be taken."""
        fed, program = list(self._signature.fed(args)), call.program
        donated = [Donated(program.feeds[i].name, fed[i]) for i in program.donated]
        others = [given for i, given in enumerate(fed) if i not in program.donated]
        with Taking(self.name, donated, others, [state for _, state in program.states]):
            fetched = call.run_unchecked(fed)
            return self._run(call, args) if fetched is None else fetched

    def _run(self, call: ProgramCall, args: tuple[Any, ...]) -> list[Array]:
        """Return the fetches, after a look at all arguments."""
        arrays = call.arrays(self._signature.fed(args))
        if [array.shape for array in arrays] != self._signature.shapes:
            raise ArgumentError(self._mismatch(call, arrays))
        return call.run(arrays)

    def _mismatch(self, call: ProgramCall, arrays: list[Array]) -> str:
        feeds = zip(call.program.feeds, arrays, self._signature.shapes, strict=True)
        value, array, shape = next(f for f in feeds if f[1].shape != f[2])
        return (
            f"{self.name}: {value.name} was compiled for shape {shape}. "
            f"Received: shape {array.shape}; compile it for that shape too"
        )

    def source(self) -> str:
        """Return what the last call computed as a NumPy program that stands alone.

        It defines a function of arrays for what is fed, and of a dictionary of states as `states`
        gives it; that returns the result and a dictionary of the states that are written.
        """
        call, results = self._now.call, self._now.results
        shapes = call.fed_shapes(self._signature.shapes)
        result = results.nest([PlacedValue(i) for i in range(len(call.program.fetches))])
        return program_source(call.program, shapes, self.name, result)

    def states(self) -> dict[str, Any]:
        """Return the states that a call reads, by name, as arrays."""
        return program_states(self._now.call.program)

    def save(self, path: Any) -> None:
        """Write the machine code to a file, which `wf.compile(..., saved=path)` uses."""
        calls = [variant.call for variant in self._variants]
        save_programs(path, self.name, (code for call in calls for code in call.compiled()))

    def export(self, path: Any, **options: Any) -> list[Any]:
        """Write what a call would compute now to a shared library with a C header.

        With `batches=`, numbers, the first size of all inputs that share it may be each of them.
        For the other options see `wf.export`; the paths of the files are returned.

        >>> import tempfile, weft as wf
        >>> double = wf.compile(lambda x: 2 * x, wf.ones(3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [file.name for file in double.export(f"{folder}/double.so")]
        ['double.so', 'double.h']
        """
        now = self._suited()
        results, program = now.results, now.call.program
        if options.get("batches") is not None:
            traced = self._trace(batched=True)
            results, program = traced.results, traced.program
        places = results.nest(_Output() for _ in program.fetches)
        names = [name for leaf, name in named_results(places) if isinstance(leaf, _Output)]
        shapes = tuple(self._signature.shapes)
        return export_program(program, shapes, names, self.name, path, **options)

    def stats(self) -> dict[str, Any]:
        """Return how many kernels of each kind there are, and what runs in Python."""
        found: dict[str, Any] = self.executable.stats()
        return found

    def __repr__(self) -> str:
        types = ", ".join(type_text(value.type) for value in self._now.call.program.feeds)
        return f"<compiled {self.name}({types})>"


class _Output:
    """Stands for a result where those of a function are named."""


Guard = tuple[Callable[[], Any], Any]  # how to read something of Python's, and what it was


class Traced(NamedTuple):
    """What a function or a graph is: a program, its results, and what it depends on besides."""

    program: Program
    results: CapturedResults
    guards: Sequence[Guard]


class _Variant(NamedTuple):
    """The machine code of a program, and when it is what the function would do."""

    call: ProgramCall
    results: CapturedResults
    executable: Any
    default_float: str
    guards: Sequence[Guard]

    def holds(self) -> bool:
        """Tell whether everything that it depends on is as it was."""
        return all(read() == value for read, value in self.guards)


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


class CapturedResults:
    """What a call returns: fetches in their places, as tensors or arrays, and what is no symbol."""

    def __init__(
        self, structure: Structure, leaves: list[Any], make: Callable[[Array], Any]
    ) -> None:
        self.structure = structure
        self.leaves = leaves
        self.alone = structure.kind is None and leaves[0] is FED  # a result without a nest
        self.make = make

    def filled(self, fetched: Sequence[Array]) -> Any:
        """Return the nest of results."""
        make = self.make
        return make(fetched[0]) if self.alone else self.nest(map(make, fetched))

    def nest(self, values: Iterable[Any]) -> Any:
        """Return the nest of results with values in the places of fetches."""
        found = iter(values)
        leaves = [next(found) if leaf is FED else leaf for leaf in self.leaves]
        return self.structure.unflatten(leaves)


# -- functions -------------------------------------------------------------------------------------


def _trace(
    function: Callable[..., Any], args: tuple[Any, ...], on: Any, donate: Any = None
) -> Compiled:
    """Return what calls a function on symbols, and compiles what it did."""
    name = getattr(function, "__name__", type(function).__name__)
    leaves, structure = flatten(args)
    signature = Signature(name, structure, [FED if _is_fed(x) else x for x in leaves])
    named = zip(_paths(function, args), leaves, strict=True)
    where = _device_for(leaves, on)
    donated = _donated_feeds(function, args, donate)
    makers = [_maker_like(x, path) if _is_fed(x) else partial(_same, x) for path, x in named]
    shapes = [tuple(getattr(x, "shape", ())) for x in leaves if _is_fed(x)]
    batch = next((shape[0] for shape in shapes if shape), None)

    def trace(*, batched: bool = False) -> Traced:
        """Call the function; `batched` leaves the first size of inputs that share it open."""
        with Graph(name) as graph, where or nullcontext():
            graph.tracer.sequential = True
            symbols = [make(batch) if batched else make() for make in makers]
            signature.shapes = shapes
            returned, nest = flatten(function(*structure.unflatten(symbols)))
            fetches, places = _results_of(graph, returned)
            targets = [graph.tracer.commit(*pair) for pair in graph.pending_updates()]
        program = Program(graph, fetches, list(graph.inputs), targets, donated=donated)
        return Traced(
            program, CapturedResults(nest, places, _maker(where, program)), _guards(graph)
        )

    return Compiled(name, signature, trace, where)


def _donated_feeds(function: Callable[..., Any], args: tuple[Any, ...], donate: Any) -> list[int]:
    """Return which of the leaves that are fed belong to arguments that are given away."""
    if donate is None:
        return []
    chosen = donated_arguments("compile", function, donate, len(args))
    owners = [i for i, arg in enumerate(args) for leaf in flatten(arg)[0] if _is_fed(leaf)]
    for i in chosen - set(owners):
        raise ArgumentError(
            f"compile: argument {i} is donated, and there is no tensor or array in it. "
            f"Received: {type(args[i]).__name__}"
        )
    return [place for place, i in enumerate(owners) if i in chosen]


def _device_for(leaves: Sequence[Any], on: Any) -> device | None:
    """Return where to run: as asked for, or where the examples are; None: where the nodes are."""
    found = {x.device for x in leaves if isinstance(x, Tensor)} - {CPU}
    if on is not None:
        return check_program_device(on)
    return common_device("compile", found) if found else None


def _maker(where: device | None, program: Program) -> Callable[[Array], Any]:
    """Return what makes tensors of results, on the device that a program runs on."""
    found = program.device if where is None else where
    if found in (CPU, SEVERAL, AUTO):  # of several, each result is on its own
        return wrap
    there = device(found)

    def made(value: Any) -> Tensor:
        tensor = wrap(value)
        return tensor if is_placed(value) and value.device == there else place(tensor, there)

    return made


def _guards(graph: Graph) -> list[Guard]:
    """Return what a traced program depends on, except for what it has changed itself."""
    found = [(read, value) for read, value in graph.tracer.observed.values() if read() == value]
    if graph.differentiated:
        found.append((is_grad_enabled, is_grad_enabled()))
    return found


def _same(leaf: Any, batch: int | None = None) -> Any:
    return leaf


def _paths(function: Callable[..., Any], args: tuple[Any, ...]) -> list[str]:
    """Return what the leaves of arguments are called: `batch['x']`."""
    called = getattr(function, "forward", function)  # of a module, whose own call takes anything
    try:
        parameters = list(inspect.signature(called).parameters.values())
    except (TypeError, ValueError):  # a function without a signature
        parameters = []
    named = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    names = [*named, *(f"argument_{i}" for i in range(len(named), len(args)))]
    return [
        name + path
        for name, arg in zip(names, args, strict=False)
        for path, _ in flatten_with_paths(arg)
    ]


def _maker_like(example: Any, name: str) -> Callable[..., Symbol]:
    """Return what makes a symbol of an example's type; the example itself is not kept."""
    if isinstance(example, float):
        return partial(_number, name)
    held: Any = example._value if isinstance(example, Tensor) else None
    array = held if is_placed(held) else np.asarray(example)  # which knows if its memory is gone
    return partial(_placeholder, name, array.shape, array.dtype)


def _placeholder(name: str, shape: Shape, dtype: Any, batch: int | None = None) -> Symbol:
    """Return a symbol; its first size is not known if it is that of the batch."""
    opened = bool(shape) and shape[0] == batch
    return placeholder((None, *shape[1:]) if opened else shape, dtype, name=name)


def _number(name: str, batch: int | None = None) -> Symbol:
    number = placeholder((), np.float64, name=name)
    return make_number(number.graph, number.value)


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


def _compile_graph(
    graph: Graph, args: tuple[Any, ...], fetches: Any, on: Any, donate: Any = None
) -> Compiled:
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
    donated = () if donate is None else donated_feeds("compile", graph, feeds, donate)
    program = Program(graph, wanted.fetches, feeds, wanted.targets, donated=donated)
    signature.shapes = [_shape_of(v, args[i] if args else None) for i, v in enumerate(feeds)]
    places = [FED if is_value else None for is_value in wanted.returned]
    results = CapturedResults(nest, places, lambda array: array)
    on = check_program_device(on)

    def trace(*, batched: bool = False) -> Traced:
        return Traced(program, results, ())

    return Compiled(name, signature, trace, on)


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
