"""Saving and loading graphs: one safetensors file, with the nodes as JSON among its arrays.

Nothing in the file is code. Operators are named and must be known; a file made by a newer version
of the format is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ..core.errors import ArgumentTypeError, GraphError
from ..graph.graph import Graph
from ..graph.serial.decode import decode_graph
from ..graph.serial.encode import encode_graph
from .disk import StrPath, replace_file, sweep
from .encode import dump, parse
from .foreign import checked_path, checked_target
from .tensorfile import Array, as_array, read_tensors, read_text, write_tensors

_FORMAT: Final = "weft-graph"
_VERSION: Final = "1"
# Not in the metadata of the file, which the format limits to 100 MB.
_NODES: Final = "graph.json"


def save_graph(graph: Graph, path: StrPath) -> None:
    """Write a graph with its constants and the present values of its states to one file.

    The file appears complete or not at all.

    >>> import os, tempfile
    >>> import weft as wf
    >>> with wf.Graph() as graph:
    ...     x = wf.placeholder((None,), wf.float32, name="x")
    ...     y = (x * 2.0).sum()
    >>> path = os.path.join(tempfile.mkdtemp(), "double.weft")
    >>> save_graph(graph, path)
    >>> float(wf.Session(load_graph(path)).run("sum", {"x": [1.0, 2.0]}))
    6.0
    """
    if not isinstance(graph, Graph):
        raise ArgumentTypeError(
            f"save_graph: expected a wf.Graph, then a path. Received: {type(graph).__name__}"
        )
    target = checked_target("save_graph", path)
    encoded = encode_graph(graph)
    arrays = {name: as_array(name, array) for name, array in encoded.arrays.items()}
    arrays[_NODES] = np.frombuffer(dump(encoded.data), np.uint8)
    text = {"format": _FORMAT, "version": _VERSION}
    replace_file(target, lambda temporary: write_tensors(temporary, arrays, text))
    sweep(target.parent)


def load_graph(path: StrPath, *, states: Mapping[str, Any] | None = None) -> Graph:
    """Return a graph that `save_graph` wrote.

    Its states are new tensors with the values they had when it was saved; random numbers come from
    the default generator if they did before. `states` gives tensors and generators to use instead,
    by the names of the states: {state.name: state for state in graph.states()} shows them.
    """
    source = checked_path(path)
    if states is not None and not isinstance(states, Mapping):
        raise ArgumentTypeError(
            "load_graph: states must be a dictionary from names to tensors. "
            f"Received: {type(states).__name__}"
        )
    text, arrays = read_text(source), read_tensors(source)
    if text.get("format") != _FORMAT or _NODES not in arrays:
        raise GraphError(f"{source} is not a graph that save_graph wrote")
    if text.get("version") != _VERSION:
        raise GraphError(
            f"{source} has version {text.get('version')!r:.20} of the format, and this Weft reads "
            f"version {_VERSION}; use the Weft that wrote it, or a newer one"
        )
    try:
        return decode_graph(parse(_bytes(arrays.pop(_NODES)), str(source)), arrays, states)
    except GraphError as error:
        raise GraphError(f"{source} cannot be loaded: {error}") from error


def _bytes(array: Array) -> bytes:
    if array.dtype != np.uint8 or array.ndim != 1:
        raise GraphError(f"its nodes are stored as {array.dtype}{list(array.shape)}")
    return array.tobytes()
