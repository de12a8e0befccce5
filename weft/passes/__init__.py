"""Passes: from a graph to another one that gives the same results.

Each pass is a function of a graph and the values that must survive (all results by default) and
returns a new graph; nodes that do not change are shared. Enters: `weft.graph`. Leaves: a Graph.
"""

from __future__ import annotations

from .cse import share_common
from .dce import remove_dead
from .fold import fold_constants
from .pipeline import PASSES, canonicalize, optimize
from .roll import roll
from .scan_split import split_scans
from .simplify import simplify, simplify_finally
from .stabilize import stabilize
from .tables import multiply_tables

__all__ = [
    "PASSES",
    "canonicalize",
    "fold_constants",
    "multiply_tables",
    "optimize",
    "remove_dead",
    "roll",
    "share_common",
    "simplify",
    "simplify_finally",
    "split_scans",
    "stabilize",
]
