"""What a back end needs to know to write a program to a file that runs without Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..core.dtype import DType
from ..core.shape import Shape

INSIDE, BESIDE = "inside", "beside"


class ExportedTensor(NamedTuple):
    """The name and dtype of an input or output, and its shape for each program.

    In `shape` a size that differs from program to program is -1.
    """

    name: str
    dtype: DType
    shapes: tuple[Shape, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape as far as it is the same for all programs."""
        sizes = zip(*self.shapes, strict=True)
        return tuple(some[0] if len(set(some)) == 1 else -1 for some in sizes)


@dataclass(frozen=True)
class ExportedModel:
    """What is to be exported.

    name       of the function or graph
    inputs     what each run is given
    outputs    what it returns
    states     names, by the keys of states
    programs   as the back end has prepared them, one for each combination of shapes
    """

    name: str
    inputs: Sequence[ExportedTensor]
    outputs: Sequence[str]
    states: Mapping[Any, str]
    programs: Sequence[Any]


@dataclass(frozen=True)
class ExportOptions:
    """How and where to export.

    path      of the library
    target    the kind of processor that the code is for, by name
    threads   for how many the work is divided
    weights   "inside" of the library, or "beside" it in a file of its own
    prefix    of the names of functions
    version   of Weft
    """

    path: Path
    target: str = "native"
    threads: int | None = None
    weights: str = INSIDE
    prefix: str = "weft"
    version: str = ""
