"""Files that say which graph a checkpoint belongs to.

The operations of a graph are functions of Weft's, so a file can name a graph but not hold it. It is
found again while the process lives; beyond that the program that built it must.
"""

from __future__ import annotations

import json
import os
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from .errors import NotFoundError, UnimplementedError
from .graph import Graph, get_default_graph

__all__ = ["MetaGraph", "export_meta_graph", "read_meta_graph"]

_FORMAT = "weft tf1 graph"
_MOST_BYTES = 100_000_000
_MOST_GRAPHS = 8
_graphs: OrderedDict[str, Graph] = OrderedDict()  # those that files name, the newest last


class MetaGraph:
    """What a file says of a graph: its number, its operations, what savers call its variables."""

    def __init__(self, number: str, operations: list[str], saved: Mapping[str, str]) -> None:
        self.number = number
        self.operations = operations
        self.saved = dict(saved)

    def text(self) -> str:
        """Return it as JSON."""
        return json.dumps(
            {
                "format": _FORMAT,
                "graph": self.number,
                "saved": self.saved,
                "operations": self.operations,
            },
            indent=1,
        )


def export_meta_graph(
    filename: str | None = None,
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Any = None,
    as_text: bool = False,
    graph: Graph | None = None,
    saved: Mapping[str, str] | None = None,
    **others: Any,
) -> MetaGraph:
    """Write down which graph this is; see `import_meta_graph`."""
    found = get_default_graph() if graph is None else graph
    number = next((key for key, value in _graphs.items() if value is found), None)
    if number is None:
        number = uuid.uuid4().hex
        _graphs[number] = found
        if len(_graphs) > _MOST_GRAPHS:
            _graphs.popitem(last=False)
    made = MetaGraph(number, [op.name for op in found.get_operations()], saved or {})
    if filename is not None:
        with open(filename, "w", encoding="utf-8") as file:
            file.write(made.text())
    return made


def read_meta_graph(given: Any, scope: str | None) -> tuple[Graph, dict[str, str]]:
    """Return the graph that a file names, as the default one, and the names of what was saved."""
    if scope:
        raise UnimplementedError(
            None, None, "import_meta_graph: import_scope is not served; import without it"
        )
    meta = given if isinstance(given, MetaGraph) else _parsed(os.fspath(given))
    found = _graphs.get(meta.number)
    if found is None:
        raise UnimplementedError(
            None,
            None,
            "import_meta_graph: the process that built this graph has ended, and operations are "
            "functions that files do not hold. Build the graph by the program that made it, and "
            "restore with tf.train.Saver().restore(sess, prefix)",
        )
    here = get_default_graph()
    if here is not found:
        if here.operations:
            raise UnimplementedError(
                None,
                None,
                "import_meta_graph: the default graph has operations already; import into an empty "
                "one (tf.reset_default_graph())",
            )
        _move(found, here)
        _graphs[meta.number] = here
    return here, meta.saved


def _move(source: Graph, target: Graph) -> None:
    """Let the operations of a graph belong to another one, which is empty."""
    for operation in source.operations:
        operation.graph = target
        variable = getattr(operation, "variable", None)
        if variable is not None:
            variable.graph = target
    target.__dict__.update(source.__dict__)


def _parsed(path: str) -> MetaGraph:
    if not os.path.isfile(path):
        raise NotFoundError(None, None, f"File {path} does not exist.")
    with open(path, "rb") as file:
        content = file.read(_MOST_BYTES)
    try:
        found = json.loads(content)
        if found["format"] != _FORMAT:
            raise ValueError("another format")
        saved = {str(key): str(value) for key, value in found["saved"].items()}
        return MetaGraph(str(found["graph"]), list(found["operations"]), saved)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UnimplementedError(
            None,
            None,
            f"import_meta_graph: {path} is no file of Weft's; graphs of TensorFlow's own files are "
            "not read. Build the graph by the program that made it, and restore the values with "
            "tf.train.Saver().restore(sess, prefix), which reads TensorFlow's checkpoints",
        ) from None
