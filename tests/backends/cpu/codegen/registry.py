"""Programs of every operator, made for a machine without running them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import weft as wf
from tests.ops import conformance as c
from weft.backends.cpu.codegen import Target
from weft.backends.cpu.device import cpu_device
from weft.backends.cpu.runtime.analysis import Analysis, analyse
from weft.compiler.stages import plan_program
from weft.core.tensor import Tensor
from weft.core.tree import tree_leaves
from weft.graph.run import Program

Feed = Callable[[np.ndarray], Any]


def samples() -> dict[str, list[c.Case]]:
    """Return the samples of each operator and composite, those with most axes first."""
    found: dict[str, list[c.Case]] = {}
    for case in c.cases():
        if not isinstance(case.sample, Exception):
            found.setdefault(case.name, []).append(case)
    return {name: sorted(cases, key=_axes, reverse=True) for name, cases in found.items()}


def code_of(
    case: c.Case, target: Target, feed: Feed, dtypes: Sequence[Any] = (None,)
) -> Analysis | None:
    """Return the code of one sample for a machine, or None if no program can be made of it.

    feed     gives a symbol for each array of the sample
    dtypes   what the results are converted to; None leaves them as they are
    """
    with wf.Graph() as graph:
        try:
            result = c.Arguments.of(case.drawn()).map(feed).call(case.function)
            fetches = [_converted(y, dtype) for y in _symbols(result) for dtype in dtypes]
        except (wf.WeftError, TypeError, ValueError, IndexError):  # not with such operands
            return None
    if not fetches:
        return None
    shapes = {value: value.shape for value in graph.inputs}
    program = Program(graph, [y.value for y in fetches], list(shapes))
    planned = plan_program(program, shapes, cpu_device(target))
    return None if planned is None else analyse(planned)


def _axes(case: c.Case) -> int:
    return max((array.ndim for array in c.Arguments.of(case.drawn()).arrays()), default=0)


def _symbols(result: Any) -> list[Tensor]:
    return [y for y in tree_leaves(result) if isinstance(y, Tensor) and y.symbolic]


def _converted(y: Tensor, dtype: Any) -> Tensor:
    return y if dtype is None else y.astype(dtype)
