"""Where the nodes of a program run.

A node runs where it was placed: by the context it was built in, or with its operands (tracer.py).
One that was placed nowhere goes where its results are needed, if that is one device, else the CPU.
So sources, and what is made of nothing but sources, cost no copy more than they must.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .node import Node, Value

CPU = "cpu"
SEVERAL = "several"  # in the place of a device's name: a program of parts, each on its own

Resolve = Callable[[Value], Value]


def placed_nodes(nodes: Sequence[Node], resolved: Resolve = lambda value: value) -> dict[Node, str]:
    """Return where each of some nodes runs, given in an order in which they can run.

    resolved   gives the value that stands for another
    """
    wanted: dict[Node, set[str]] = {}
    found: dict[Node, str] = {}
    for node in reversed(nodes):
        found[node] = where = _place(node, wanted.get(node, ()))
        for x in node.inputs:
            if x is not None:
                wanted.setdefault(resolved(x).node, set()).add(where)
    return found


def _place(node: Node, wanted: Iterable[str]) -> str:
    if node.device != CPU or node.pinned:
        return node.device
    others = set(wanted)
    return others.pop() if len(others) == 1 else CPU


def devices_of(nodes: Sequence[Node], resolved: Resolve = lambda value: value) -> list[str]:
    """Return the devices that nodes run on, the first one first; the CPU if there are none.

    Where one device is named, and nothing was placed on another, that runs all of it.
    """
    named = dict.fromkeys(node.device for node in nodes if node.device != CPU or node.pinned)
    if len(named) < 2:
        return list(named) or [CPU]
    placed = placed_nodes(nodes, resolved)
    # A source is read by those who need it, and a constant is made there: it needs no device.
    found = dict.fromkeys(placed[node] for node in nodes if node.inputs or node.device != CPU)
    return list(found) or [CPU]
