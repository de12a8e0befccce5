"""The graph: nodes, the tracer that builds them, and the interpreter that runs them.

Operations enter (as calls inside `with graph:`), nodes and arrays leave. Imports core and ops.
"""

from .control import cond, scan, while_loop
from .frontend import placeholder
from .graph import Graph
from .node import Node, Value
from .scope import name_scope
from .session import Session
from .symbol import Symbol
from .update import Update

__all__ = [
    "Graph",
    "Node",
    "Session",
    "Symbol",
    "Update",
    "Value",
    "cond",
    "name_scope",
    "placeholder",
    "scan",
    "while_loop",
]
