"""Export a program as a library: planned for its machine, for all shapes that it is to take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..backends import backend_named
from ..backends.exporting import ExportedModel, ExportedTensor, ExportOptions
from ..backends.protocol import ExportingBackend
from ..core.device import CPU
from ..core.dim import SizeVar, deciding
from ..core.errors import ArgumentError, GraphError
from ..core.shape import Shape
from ..graph.node import Value
from ..graph.run import Program
from ..graph.size_patterns import Shapes
from ..graph.sized_code import SizedCode
from ..graph.text.printer import state_names
from .stages import plan_program


def export_program(
    program: Program,
    shapes: Sequence[Shapes],
    outputs: Sequence[str],
    name: str,
    options: ExportOptions,
) -> list[Path]:
    """Write a program for feeds of given shapes, one combination or several, to a library.

    outputs   what its fetches are called
    name      of the model

    Return the paths of the files. Where sizes differ, one code is for all of them that it can be,
    as it is when a session is run with them.
    """
    backend = backend_named(CPU)
    assert isinstance(backend, ExportingBackend), "the CPU's code can be exported"
    if program.device != CPU:
        raise ArgumentError(f"export: {name} runs on {program.device!r}; libraries are for the CPU")
    programs = list(_Planner(backend, program, name, options).programs(shapes))
    inputs = [
        ExportedTensor(value.name, value.dtype, tuple(some[i] for some in shapes))
        for i, value in enumerate(program.feeds)
    ]
    model = ExportedModel(name, inputs, outputs, state_names(program.graph), programs)
    return backend.export(model, options)


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
