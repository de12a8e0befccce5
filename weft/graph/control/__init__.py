"""Control flow: `cond`, `while_loop` and `scan`, as nodes with subgraphs and eagerly.

A body is a Python function of tensors. Without a graph it just runs. In a graph it is traced once
into a subgraph, a closed function: what it uses from outside enters as an input, and states that it
writes are threaded through as carries of their own.
"""

from .branch import cond
from .loop import while_loop
from .ops import CONTROL
from .scanning import scan

__all__ = ["CONTROL", "cond", "scan", "while_loop"]
