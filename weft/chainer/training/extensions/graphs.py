"""A picture of what was computed for a loss, as text for Graphviz."""

from __future__ import annotations

from typing import Any

from ...computational_graph import build_computational_graph
from ...configuration import config
from ...variable import Variable
from ..extension import Extension


class DumpGraph(Extension):
    """Write the graph of an observed variable after the first iteration."""

    trigger = (1, "iteration")

    def __init__(
        self,
        root_name: str,
        filename: str | None = None,
        variable_style: Any = None,
        function_style: Any = None,
        **options: Any,
    ) -> None:
        self._root, self._filename = root_name, filename or options.get("out_name", "cg.dot")
        self._done = False
        self._before: Any = None

    def initialize(self, trainer: Any) -> None:
        """Let reported variables keep what they were computed from, and steps run eagerly."""
        if not self._done:
            self._before = config.keep_graph_on_report
            config.keep_graph_on_report = True

    def __call__(self, trainer: Any) -> None:
        """Write the graph, once."""
        if self._done:
            return
        self._done = True
        config.keep_graph_on_report = self._before
        found = trainer.observation.get(self._root)
        if isinstance(found, Variable):
            text = build_computational_graph([found]).dump()
            trainer.out_path(self._filename).write_text(text, encoding="utf-8")

    def serialize(self, serializer: Any) -> None:
        """Write whether it is done to a serializer, or read it from one."""
        self._done = bool(serializer("_done", self._done))


dump_graph = DumpGraph
