"""The source lines of many nodes as text: finding a line number is slow, and lines repeat."""

from __future__ import annotations

from typing import Any

from ..node import Node


class SourceLines:
    """Remembers the text of each place in the source."""

    def __init__(self) -> None:
        self._known: dict[Any, str | None] = {}

    def of(self, node: Node) -> str | None:
        """Return where a node was built, as `file.py:12`, if it is known."""
        site = node.site
        if site is None or isinstance(site, str):
            return site
        key = (id(site[0]), site[1])  # the node keeps the code object, and so its id
        if key not in self._known:
            self._known[key] = node.where
        return self._known[key]
