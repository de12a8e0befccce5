"""The compiler: all stages in order. Nobody else calls one.

program       what a session would run, for given fetches and feeds
specialise    unknown sizes become numbers, or words that every run is told
expand        for devices, operators in those that they have kernels for
ON_GRAPHS     fold, share, simplify, stabilise, take reductions apart, split scans, multiply tables
overlap       exchanges with other processes begin early and end late
lower         kernels over buffers
ON_PROGRAMS   what products compute, memory to pack into, fetches, rows of states, what is kept,
              memory, threads, branches
code          text, object code, an executable: the back end's
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

from ..backends import backend_named, device_names
from ..backends.protocol import Backend, KeepingBackend, PreparingBackend, Restorable, SizedBackend
from ..core.device import AUTO, CPU
from ..core.dim import SizeVar, deciding
from ..core.shape import Shape
from ..graph.graph import Graph
from ..graph.node import Value
from ..graph.placement import SEVERAL, placed_nodes
from ..graph.run import Program
from ..lower.lowering import lower
from ..lower.program import KernelProgram
from ..lower.reductions import split_reductions
from ..lower.verify import verified
from ..passes.dce import remove_dead
from ..passes.dividing.divide import divide
from ..passes.expand import expand
from ..passes.overlap import overlap_exchanges
from ..passes.pipeline import canonicalize, in_stable_forms
from ..passes.rewrite import same_nodes
from ..passes.scan_split import split_scans
from ..passes.simplify import simplify_finally
from ..passes.specialize import NotStaticError, specialize
from ..passes.tables import multiply_tables
from ..passes.trap import with_trap
from ..plan.branches import with_branches
from ..plan.device import Device
from ..plan.fetching import with_own_memory
from ..plan.memory import with_memory
from ..plan.products import with_prologues, with_scratch
from ..plan.repetition import with_repetition
from ..plan.row_commits import with_rows_last
from ..plan.run_plan import Planned
from ..plan.threads import with_schedule
from .auto_placement import choose_devices
from .cache.programs import known_program
from .host_states import WithHostStates, host_commits
from .partition import DevicePart, PartedRun, compiled_parts, split


def _canonical(graph: Graph) -> Graph:
    return canonicalize(graph, simplify_finally)


def _then_canonical(*passes: Callable[[Graph], Graph]) -> Callable[[Graph], Graph]:
    """Return passes one after another, and then canonical form if they changed anything."""

    def run(graph: Graph) -> Graph:
        made = graph
        for change in passes:
            made = change(made)
        return graph if same_nodes(made, graph) else _canonical(made)

    return run


ON_GRAPHS: dict[str, Callable[[Graph], Graph]] = {
    "remove what nobody needs": remove_dead,
    "parts of this process": divide,
    "canonical form": _canonical,
    "stable forms, reductions in parts": _then_canonical(in_stable_forms, split_reductions),
    "scans in parts": _then_canonical(split_scans),
    "tables multiplied rather than their rows": _then_canonical(multiply_tables),
}
ON_PROGRAMS: dict[str, Callable[[KernelProgram, Device], KernelProgram]] = {
    "operands computed by products": with_prologues,
    "memory that products pack into": with_scratch,
    "memory of fetches": lambda program, device: with_own_memory(program, parts=device.own_memory),
    "rows of states written last": lambda program, device: with_rows_last(program),
    "what is kept to be repeated": lambda program, device: with_repetition(program),
    "memory": lambda program, device: with_memory(program),
    "threads": with_schedule,
    "branches at the same time": with_branches,
}


def plan_program(
    program: Program, shapes: Mapping[Value, Shape], device: Device | None = None
) -> Planned | None:
    """Return a program planned for feeds of given shapes; None if it cannot be compiled.

    That is if some shape depends on values, so that memory cannot be laid out before it runs, or if
    a state would be given a value that does not fit it. The device is this one by default.
    """
    static = specialized(program, shapes)
    return None if static is None else plan_static(program, static, device)


def plan_static(program: Program, static: Graph, device: Device | None = None) -> Planned | None:
    """Return a program, given with all sizes known, planned for a device."""
    states = [state for state, _ in program.commits]
    fetches = len(program.fetches)
    written = static.outputs[fetches + program.trapped :]
    if any(value.type != state.type for value, state in zip(written, states, strict=True)):
        return None
    device = backend_named(CPU).describe() if device is None else device
    expanded = expand(static) if device.own_memory else static
    graph = optimize_static(expanded, committed=len(states))
    flag = graph.outputs[fetches : fetches + program.trapped]
    made, sources = lower(graph, states, flag)
    made = replace(made, donated=program.donated)
    verified(made, sources)
    for stage in ON_PROGRAMS.values():
        before, made = made, stage(made, device)
        if made is not before:
            verified(made, sources)
    return Planned(graph, made, sources, device)


def specialized(program: Program, shapes: Mapping[Value, Shape]) -> Graph | None:
    """Return what a program runs with all sizes known; None if some depend on values."""
    try:
        static = specialize(program, shapes)
    except NotStaticError:
        return None
    if not program.trapped:
        return static
    return with_trap(static, len(program.fetches), [state for state, _ in program.commits])


def optimize_static(graph: Graph, committed: int = 0) -> Graph:
    """Return a graph whose sizes are known in the form that lowering starts from.

    The last outputs, so many as are `committed`, are new values of states.
    """
    for stage in ON_GRAPHS.values():
        graph = stage(graph)
    return overlap_exchanges(graph, committed)


def compile_for_sizes(
    program: Program,
    shapes: Mapping[Value, Shape],
    sizes: Mapping[SizeVar, int],
    *,
    device: str = CPU,
) -> Any:
    """Return what a program runs on a device for many sizes, those in the shapes of its feeds.

    None if it cannot be compiled, or if the device takes no such programs. UnknownSizeError says
    what of a program needs a number.
    """
    if device in (SEVERAL, AUTO):
        return None
    backend = backend_named(device)
    if not isinstance(backend, SizedBackend):
        return None
    with _ready(backend, program), deciding(sizes) as decisions:
        planned = plan_program(program, shapes, backend.describe())
        return None if planned is None else backend.prepare_for_sizes(planned, decisions)


def compile_program(
    program: Program, shapes: Mapping[Value, Shape], *, device: str = CPU, **options: Any
) -> Any:
    """Return what a program runs on a device, ready for feeds of given shapes.

    None if it cannot be compiled. The options are those of the device's back end.
    """
    if device in (SEVERAL, AUTO):
        return compile_parts(program, shapes, auto=device == AUTO)
    backend = backend_named(device)
    if isinstance(backend, KeepingBackend):
        return _restored_or_built(backend, program, shapes, options)
    device_here = backend.describe()
    if device_here.own_memory:
        return _placed(backend, program, shapes, device_here)
    planned = plan_program(program, shapes, device_here)
    return None if planned is None else backend.prepare(planned.program, planned.sources)


def _placed(
    backend: Backend, program: Program, shapes: Mapping[Value, Shape], device: Device
) -> Any:
    """Return a program for a device with its own memory: states of the host stay the host's."""
    static = specialized(program, shapes)
    if static is None:
        return None
    first = len(program.fetches) + program.trapped
    pairs = zip((state for state, _ in program.commits), static.outputs[first:], strict=True)
    host = host_commits(static, list(pairs))
    ours = {state for state, _ in host.commits}
    made = copy(program)
    made.commits = [pair for pair in program.commits if pair[0] not in ours]
    written = zip(program.commits, static.outputs[first:], strict=True)
    kept = [value for (state, _), value in written if state not in ours]
    static.outputs = [*static.outputs[:first], *kept]
    planned = plan_static(made, static, device)
    if planned is None:
        return None
    inner = backend.prepare(planned.program, planned.sources)
    return WithHostStates(inner, host) if host.commits else inner


def compile_parts(program: Program, shapes: Mapping[Value, Shape], *, auto: bool = False) -> Any:
    """Return a program whose nodes are on several devices; None if it cannot be compiled.

    auto   whether nodes that were placed nowhere go where it takes least time
    """
    static = specialized(program, shapes)
    if static is None:
        return None
    if auto or any(node.device == AUTO for node in static.nodes):
        static = optimize_static(static)
        placed = choose_devices(static, _choosable(), everything=auto)
    else:
        placed = placed_nodes(static.nodes)
    found = compiled_parts(split(static, placed), _compile_part)
    states = [state for state, _ in program.commits]
    return None if found is None else PartedRun(static, states, found, placed)


def _choosable() -> dict[str, Device]:
    """Return the devices that may be chosen: the CPU first, then those with their own memory."""
    found = {name: backend_named(name).describe() for name in device_names()}
    others = {name: device for name, device in found.items() if device.own_memory}
    return {CPU: found[CPU], **others}


def _compile_part(part: DevicePart) -> Any:
    """Return what runs a part: a program of its device without states to write."""
    backend = backend_named(part.device)
    whole = Program(part.graph, part.graph.outputs, part.graph.inputs, commits=False)
    planned = plan_static(whole, part.graph, backend.describe())
    return None if planned is None else backend.prepare(planned.program, planned.sources)


def _restored_or_built(
    backend: KeepingBackend,
    program: Program,
    shapes: Mapping[Value, Shape],
    options: Mapping[str, Any],
) -> Restorable | None:
    """Return a program by what some process kept of it, else by all stages; keep it then."""
    device = backend.describe()
    planner = partial(plan_program, program, shapes, device)
    known = known_program(program, shapes, device)
    plan = None if known is None else known.find()
    restored = None if plan is None else backend.restore(plan, **options)
    if restored is not None:
        restored.explain_by(planner)
        return restored
    with _ready(backend, program):
        planned = planner()
        built = None if planned is None else backend.build(planned, **options)
    if known is not None and built is not None:
        known.keep(built.plan)
    return built


def _ready(backend: object, program: Program) -> AbstractContextManager[None]:
    """Let a back end know, before a program is planned, that its code will be made."""
    if not isinstance(backend, PreparingBackend):
        return nullcontext()
    return backend.ready_for(len(program.order))
