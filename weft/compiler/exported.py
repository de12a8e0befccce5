"""Export a program as a library: planned for its machine, for all shapes that it is to take."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..backends import backend_named
from ..backends.exporting import ExportedModel, ExportedTensor, ExportOptions
from ..backends.protocol import ExportingBackend
from ..core.device import CPU
from ..core.dim import Dim, SizeVar, deciding
from ..core.errors import ArgumentError, ArgumentTypeError, GraphError
from ..core.shape import Shape, as_int
from ..graph.node import Value
from ..graph.run import Program
from ..graph.size_patterns import Shapes
from ..graph.sized_code import SizedCode
from ..graph.text.printer import state_names
from .stages import plan_program


def export_program(
    program: Program,
    shapes: Shapes,
    outputs: Sequence[str],
    name: str,
    path: str | os.PathLike[str],
    *,
    batches: Iterable[int] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    **options: Any,
) -> list[Path]:
    """Write a program for feeds of given shapes to a library; return the paths of its files.

    outputs   what its fetches are called
    name      of the model
    batches   numbers that the first size of feeds may be, where that is not known
    options   see ExportOptions; `input_names` and `output_names` are used in place of others

    Where sizes differ, one code is for all of them that it can be, as when a session runs with
    them.
    """
    backend = backend_named(CPU)
    assert isinstance(backend, ExportingBackend), "the CPU's code can be exported"
    if program.device != CPU:
        raise ArgumentError(f"export: {name} runs on {program.device!r}; libraries are for the CPU")
    if not outputs and not program.commits:
        raise ArgumentError(
            f"export: {name} computes nothing: it returns no tensor and changes no state"
        )
    checked = _options(path, options)
    names = _names("input_names", input_names, [value.name for value in program.feeds])
    outputs = _names("output_names", output_names, outputs)
    many = [shapes] if batches is None else _with_batches(program, shapes, batches)
    programs = list(_Planner(backend, _keeping_inputs(program), name, checked).programs(many))
    inputs = [
        ExportedTensor(names[i], value.dtype, tuple(some[i] for some in many))
        for i, value in enumerate(program.feeds)
    ]
    model = ExportedModel(name, inputs, outputs, state_names(program.graph), programs)
    return backend.export(model, checked)


def _keeping_inputs(program: Program) -> Program:
    """Return a program that writes over none of its feeds: those of a library are its caller's."""
    kept = copy(program)
    vars(kept)["donated"] = ()
    return kept


def _names(what: str, given: Sequence[str] | None, usual: Sequence[str]) -> list[str]:
    """Return the names to use; those given must be as many as there are usual ones."""
    if given is None:
        return list(usual)
    if isinstance(given, str) or not all(isinstance(name, str) for name in given):
        raise ArgumentTypeError(f"export: {what} must be a list of names. Received: {given!r:.60}")
    if len(given) != len(usual) or len(set(given)) != len(given):
        raise ArgumentError(
            f"export: {what} must be {len(usual)} different names (as {', '.join(usual)}). "
            f"Received: {', '.join(given)}"
        )
    return list(given)


def _options(path: str | os.PathLike[str], options: Mapping[str, Any]) -> ExportOptions:
    """Return options in their own types."""
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentTypeError(f"export: path must be a path. Received: {path!r:.60}")
    known = {field.name for field in fields(ExportOptions)} - {"path", "version"}
    for key in options:
        if key not in known:
            names = ", ".join(sorted({*known, "batches", "input_names", "output_names"}))
            raise ArgumentTypeError(f"export: there is no option {key}; there are {names}")
    given = dict(options)
    for key in ("target", "weights", "prefix"):
        if not isinstance(given.get(key, ""), str):
            raise ArgumentTypeError(f"export: {key} must be a text. Received: {given[key]!r:.60}")
    if given.get("threads") is not None:
        given["threads"] = as_int(given["threads"], "export: threads")
        if given["threads"] < 1:
            raise ArgumentError(f"export: threads must be at least 1. Received: {given['threads']}")
    version = getattr(sys.modules.get("weft"), "__version__", "")
    return ExportOptions(Path(path), version=version, **given)


def _with_batches(program: Program, shapes: Shapes, batches: Any) -> list[Shapes]:
    """Return shapes with each of the numbers as the first size of those feeds that have it open."""
    if not isinstance(batches, Iterable) or isinstance(batches, str | bytes):
        raise ArgumentTypeError(
            "export: batches must be several sizes, such as range(1, 65). "
            f"Received: {batches!r:.60}"
        )
    numbers = list(dict.fromkeys(as_int(n, "export: batches") for n in batches))
    if not numbers or min(numbers) < 0:
        raise ArgumentError(f"export: batches must be sizes. Received: {numbers}")
    opened = [bool(v.shape) and isinstance(v.shape[0], Dim) for v in program.feeds]
    if not any(opened):
        raise ArgumentError(
            "export: batches are for inputs whose first size is not known; all of these have one"
        )
    return [
        tuple((n, *s[1:]) if is_open else s for s, is_open in zip(shapes, opened, strict=True))
        for n in numbers
    ]


class _Planner:
    """Plans a program for shapes: each has its own code, or shares that for many sizes."""

    def __init__(
        self, backend: ExportingBackend, program: Program, name: str, options: ExportOptions
    ) -> None:
        self.backend, self.program, self.name = backend, program, name
        self.device = backend.export_device(options)
        self.codes = SizedCode([value.type.shape for value in program.feeds])

    def programs(self, shapes: Sequence[Shapes]) -> Iterator[Any]:
        """Yield what is to be run for each combination of shapes."""
        if len(shapes) > 1:
            for some in (shapes[0], shapes[-1]):  # so that it is seen what changes
                self.codes.find(some, self._for_sizes)
        for some in shapes:
            yield self.codes.find(some, self._for_sizes) or self._fixed(some)

    def _fixed(self, shapes: Shapes) -> Any:
        planned = plan_program(self.program, self._fed(shapes), self.device)
        if planned is None:
            raise GraphError(
                f"export: {self.name} cannot be compiled: some shape in it depends on values"
            )
        return self.backend.exportable(planned)

    def _for_sizes(self, pattern: Shapes, sizes: Mapping[SizeVar, int]) -> Any:
        with deciding(sizes) as decisions:
            planned = plan_program(self.program, self._fed(pattern), self.device)
            return planned and self.backend.exportable_for_sizes(planned, decisions)

    def _fed(self, shapes: Shapes) -> dict[Value, Shape]:
        return dict(zip(self.program.feeds, shapes, strict=True))
