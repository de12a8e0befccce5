"""`caffe.draw`: pictures of nets, by Weft's own drawings of graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ..core.dtype import float32
from ..graph.frontend import placeholder
from ..graph.graph import Graph
from ..viz.draw import draw
from .message import TEST
from .network import Network


class NetGraph(NamedTuple):
    """The graph that a net computes, and the names of the nodes that are its outputs."""

    graph: Graph
    outputs: list[str]


def net_graph(net: Network) -> NetGraph:
    """Return the graph that a net computes, with a placeholder for each input."""
    with Graph() as graph:
        given = {
            name: placeholder(net.shapes[name], float32, name=_plain(name))
            for name in net.input_names
        }
        found = net(**given)  # as a call, so that nodes have the names of layers
    outputs = list(found.values()) if isinstance(found, dict) else [found]
    return NetGraph(graph, [str(y.name) for y in outputs])


def draw_net_to_file(
    caffe_net: Any, filename: str | Path, rankdir: str = "LR", phase: int | None = None
) -> None:
    """Draw a NetParameter to a .svg, .png or .dot file; layers are scopes. `rankdir` is ignored."""
    net = Network(caffe_net, TEST if phase is None else phase)
    draw(net_graph(net).graph, filename, depth=1)


def _plain(name: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name)
