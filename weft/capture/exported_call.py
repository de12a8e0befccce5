"""Export recorded calls, and name what functions return."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..compiler.exported import export_program
from ..core.errors import ArgumentTypeError, GraphError
from ..core.tree import flatten_with_paths
from ..graph.size_patterns import Shapes


def export_recorded(
    recorded: Any, shapes: Shapes, name: str, path: Any, **options: Any
) -> list[Path]:
    """Write what a recorded call of a jitted function computes to a library.

    shapes   of what it is fed: `shapes_of_call` or `shapes_of_last` tell

    Gradients that it leaves behind in tensors are left out: a step that an optimizer takes is in
    its states.
    """
    if "batches" in options:
        raise ArgumentTypeError(
            "export: a jitted function is recorded for the sizes of a call; for batches, give "
            f"wf.export the function itself, {name}"
        )
    splits = recorded.split_run if not callable(recorded.split_run) else recorded.split_run()
    if splits is not None:
        raise GraphError(f"export: {name} has shapes that depend on values; libraries have none")
    recording = getattr(recorded, "recording", recorded)
    found = [_Fetch(leaf.fetch) for leaf in recorded.escaped]
    result = recorded.result(found, _NoArguments(name), {})
    names = {v.number: path for v, path in named_results(result) if isinstance(v, _Fetch)}
    program, checks = recording.program_of_fetches(list(names))
    outputs = [*names.values(), *(f"check_{i}" for i in range(checks))]
    return export_program(program, shapes, outputs, name, path, **options)


def shapes_of_call(recorded: Any, leaves: Sequence[Any]) -> Shapes:
    """Return the shapes of what is fed in a call with arguments of given leaves."""
    given = recorded.held.extended(leaves)
    return tuple(_shape_of(get(given)) for get in recorded.feeds)


def shapes_of_last(recorded: Any, name: str) -> Shapes:
    """Return the shapes that a trace was compiled for last."""
    known = () if len(recorded.paths) > 1 else recorded.call.compiled()
    found = [tuple(shapes.values()) for _, shapes, _ in known if shapes is not None]
    if not found:
        raise GraphError(
            f"export: {name} has several paths or sizes; give arguments that say which to export"
        )
    return found[-1]


def named_results(nest: Any) -> list[tuple[Any, str]]:
    """Return the results of a function with their names, by where in its nest they are."""
    return [(leaf, _spelled(path)) for path, leaf in flatten_with_paths(nest)]


def _spelled(path: str) -> str:
    """Return a path as a name: `['loss']` is loss, `[1]` output_1."""
    name = "_".join(re.findall(r"\w+", path))
    return f"output_{name}".rstrip("_") if not name or name[0].isdigit() else name


def _shape_of(value: Any) -> tuple[int, ...]:
    return tuple(getattr(value, "shape", ()))


class _Fetch:
    """Stands for a value that is fetched."""

    def __init__(self, number: int) -> None:
        self.number = number


class _NoArguments:
    """Stands for the arguments of a call where its result is looked at."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, position: int) -> Any:
        raise GraphError(
            f"export: {self.name} returns its argument {position} itself; return a result of it"
        )
