"""Values of a program that runs, for those who stop in the middle of it."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.effects import muted
from ..run import Array, Program


def found_in_run(program: Program, feeds: Sequence[Array], name: str) -> Array:
    """Return a value of the graph by its name, computed node by node on what the run was given.

    States are still those of before the run, so that it is the value which the run has.
    """
    value = program.graph.find(name)
    part = Program(program.graph, [value], program.feeds, commits=False)
    with muted():
        (array,) = part.run(feeds).fetched
    return array
