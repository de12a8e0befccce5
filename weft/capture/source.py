"""What a call of a compiled function computes, as a NumPy program that stands alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..autodiff.text.programs import PlacedValue, StepText
from ..core.errors import GraphError
from ..core.shape import Shape
from ..graph.node import Value
from ..graph.run import Program
from ..graph.state import tensor_state
from ..graph.text.printer import state_names
from ..passes.specialize import specialize
from .outside import ArgumentWrite, GradientWrite, Outside, RowGradWrite
from .recorded_call import RecordedCall, as_array
from .trace import Trace

NUMBER = "{}.item()"


def program_source(
    program: Program,
    shapes: Mapping[Value, Shape],
    name: str,
    result: Any,
    more: Mapping[str, PlacedValue | None] | None = None,
) -> str:
    """Return a program for feeds of given shapes as text; `result` is what it returns."""
    names = state_names(program.graph)
    first = len(program.fetches)
    written = {names[s.key]: PlacedValue(first + i) for i, (s, _) in enumerate(program.commits)}
    graph = specialize(program, shapes)
    return StepText(name, graph, names, result, {**written, **(more or {})}).source()


def program_states(program: Program) -> dict[str, np.ndarray[Any, Any]]:
    """Return what the states of a program hold, by the names that its text knows them by."""
    names = state_names(program.graph)
    return {names[state.key]: np.array(state.read()) for _, state in program.states}


def program_of(recorded: Trace | RecordedCall) -> Program:
    """Return the program of a trace, or of a finished recording."""
    return recorded.program if isinstance(recorded, Trace) else recorded.program()


def call_source(
    recorded: Trace | RecordedCall, program: Program, name: str, leaves: Sequence[Any]
) -> str:
    """Return what a recorded call computes as text, for arguments with the given leaves.

    recorded   a trace or a finished recording: how it is fed, what it returns and writes
    """
    splits = recorded.split_run if isinstance(recorded, Trace) else recorded.split_run()
    if splits is not None:
        raise GraphError(f"{name} has shapes that depend on values, which have no text")
    given = recorded.held.extended(leaves)
    shapes = [as_array(get(given)).shape for get in recorded.feeds]
    found = [
        PlacedValue(leaf.fetch, NUMBER if leaf.make is np.ndarray.item else "{}")
        for leaf in recorded.escaped
    ]
    result = recorded.result(found, _Arguments(name), {})
    names = state_names(program.graph)
    more = dict(pair for write in recorded.writes for pair in _written(write, found, names))
    return program_source(
        program, dict(zip(program.feeds, shapes, strict=True)), name, result, more
    )


class _Arguments:
    """Stands for the arguments of a call where its result is written."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, position: int) -> Any:
        raise GraphError(f"{self.name} returns its argument {position}, which has no text")


def _written(
    write: GradientWrite | ArgumentWrite, found: Sequence[PlacedValue], names: Mapping[Any, str]
) -> Iterator[tuple[str, PlacedValue | None]]:
    """Yield what is written to a tensor besides states, and under which name."""
    name = _name(write.owner, names)
    if isinstance(write, ArgumentWrite):
        yield name, PlacedValue(write.fetch)
    elif isinstance(write, RowGradWrite):
        yield f"{name}.grad.rows", found[write.rows]
        yield f"{name}.grad.values", found[write.values]
    else:
        yield f"{name}.grad", None if write.number < 0 else found[write.number]


def _name(owner: Outside, names: Mapping[Any, str]) -> str:
    if owner.position is not None:
        return f"argument_{owner.position}"
    return names.get(tensor_state(owner.thing, "tensor").key, "tensor")
