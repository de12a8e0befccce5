"""The compiler: the only module that names every stage, in order.

program      what a session would run, for given fetches and feeds
specialize   unknown sizes become numbers
optimise     fold, share, simplify, stabilise, take reductions apart, split scans
lower        kernels over buffers
codegen      LLVM IR
runtime      object code, memory, an executable
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ..backends import backend_named
from ..backends.cpu.codegen.target import Target
from ..backends.cpu.runtime.analysis import Analysis, Arranged
from ..backends.cpu.runtime.executable import Executable
from ..backends.cpu.runtime.plans import Code, known_program
from ..backends.execution import Execution
from ..core.shape import Shape
from ..graph.graph import Graph
from ..graph.node import Value
from ..graph.run import Program
from ..graph.state import State
from ..lower.fetches import with_own_memory
from ..lower.lowering import lower
from ..lower.reductions import split_reductions
from ..passes.dce import remove_dead
from ..passes.pipeline import canonicalize, same_nodes
from ..passes.scan_split import has_scans, split_scans
from ..passes.simplify import simplify_finally
from ..passes.specialize import NotStaticError, specialize
from ..passes.stabilize import stabilize


def compile_program(
    program: Program,
    shapes: Mapping[Value, Shape],
    *,
    own_arena: bool = True,
    device: str = "cpu",
) -> Any:
    """Return machine code for what a program runs, with feeds of given shapes.

    None if some shape depends on values, so that memory cannot be laid out before it runs, or if a
    state would be given a value that does not fit it. Without an arena of its own it is lent one
    for each call.
    """
    if device != "cpu":
        return _elsewhere(program, shapes, device)
    known = known_program(program, shapes)
    code = None if known is None else known.find()
    if code is not None:
        return Executable(code, partial(analyse, program, shapes), own_arena=own_arena)
    analysis = analyse(program, shapes)
    if analysis is None:
        return None
    code = Code(analysis.plan, analysis.objects())
    if known is not None:
        known.keep(code.plan)
    return Executable(code, lambda: analysis, own_arena=own_arena)


def analyse(
    program: Program, shapes: Mapping[Value, Shape], target: Target | None = None
) -> Analysis | None:
    """Return what a program becomes, up to the text of its code; None if it cannot be compiled.

    The code is for another machine than this one if a target is given.
    """
    static = _static(program, shapes)
    return None if static is None else Analysis(static, _states(program), target)


def _elsewhere(program: Program, shapes: Mapping[Value, Shape], device: str) -> Execution | None:
    """Return what a program runs on another device."""
    static = _static(program, shapes)
    if static is None:
        return None
    lowered, sources = lower(static, _states(program))
    return Execution(backend_named(device), with_own_memory(lowered), sources)


def _states(program: Program) -> list[State]:
    return [state for state, _ in program.commits]


def _static(program: Program, shapes: Mapping[Value, Shape]) -> Graph | None:
    """Return what is to be lowered; None if a size depends on values, or a state does not fit."""
    static = specialized(program, shapes)
    if static is None:
        return None
    written = static.outputs[len(program.fetches) :]
    if any(y.type != state.type for y, state in zip(written, _states(program), strict=True)):
        return None
    return optimize_static(static)


def arrange(program: Program, static: Graph) -> Arranged:
    """Return the kernels of a program and where everything lies, without their text."""
    return Arranged(optimize_static(static), _states(program))


def specialized(program: Program, shapes: Mapping[Value, Shape]) -> Graph | None:
    """Return what a program runs with all sizes known; None if some depend on values."""
    try:
        return specialize(program, shapes)
    except NotStaticError:
        return None


def optimize_static(graph: Graph) -> Graph:
    """Return a graph whose sizes are known in the form that lowering starts from."""
    made = canonicalize(remove_dead(graph, graph.outputs), simplify_finally)
    ready = split_reductions(stabilize(made, None))
    made = made if same_nodes(made, ready) else canonicalize(ready, simplify_finally)
    return canonicalize(split_scans(made), simplify_finally) if has_scans(made) else made
