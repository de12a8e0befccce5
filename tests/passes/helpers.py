"""What the tests of passes share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import weft as wf
from weft.graph.graph import Graph
from weft.graph.run import run_function
from weft.graph.verify import verify
from weft.passes import remove_dead

SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-40, -1e-40, 3e38, -3e38, 0.5, -2.5, 7.0]
)


def trace(fn: Callable[..., Any], *arrays: np.ndarray, unknown: bool = False) -> Graph:
    """Return fn as a graph of the arrays, with its result as output."""
    with wf.Graph() as graph:
        shapes = [tuple(f"n{s}" if unknown and s > 1 else s for s in a.shape) for a in arrays]
        symbols = [
            wf.placeholder(shape, a.dtype, name=f"x{i}")
            for i, (shape, a) in enumerate(zip(shapes, arrays, strict=True))
        ]
        made = fn(*symbols)
    return remove_dead(graph, [made.value])


def run(graph: Graph, *arrays: np.ndarray) -> np.ndarray:
    """Return the output of a graph."""
    verify(graph)
    with np.errstate(all="ignore"):
        (found,) = run_function(graph, arrays)
    return found


def ops(graph: Graph) -> list[str]:
    """Return the operators of a graph in order, without where values come from."""
    sources = ("placeholder", "constant", "state")
    return [node.op.name for node in graph if node.op.name not in sources]
