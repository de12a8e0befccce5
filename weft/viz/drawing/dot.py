"""A picture as DOT text, and the dot program of Graphviz, if it is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

from .picture import Box, Item, Picture, PictureGroup
from .style import EDGE, FAINT, FAINT_EDGE, GROUPS, LOOKS, SMALL, SOURCES, TITLE

SECONDS = 60.0  # for the dot program: it is slow on large graphs, and the built-in layout is not
_FONT = 'fontname="DejaVu Sans,Verdana,Helvetica"'


def dot_text(picture: Picture) -> str:
    """Return a picture in the language of Graphviz."""
    writer = _Writer(picture)
    return "\n".join(writer.lines()) + "\n"


def run_dot(text: str, format: str) -> bytes | None:
    """Return a picture by the dot program; None if there is none, or if it fails."""
    program = shutil.which("dot")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, f"-T{format}"],
            input=text.encode(),
            capture_output=True,
            timeout=SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout or None


class _Writer:
    """Gives each box and group an identifier. Edges of a group end at a point inside it."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.names: dict[Item, str] = {}
        self.ends = {item for edge in picture.edges for item in edge}

    def lines(self) -> Iterator[str]:
        yield f"digraph {_quoted(self.picture.root.title)} {{"
        yield f"  graph [compound=true, rankdir=TB, ranksep=0.4, nodesep=0.25, {_FONT}];"
        yield f'  node [shape=box, style="filled,rounded", fontsize={TITLE:g}, {_FONT}];'
        yield f'  edge [color="{EDGE}", arrowsize=0.6];'
        for child in self.picture.root.children:
            yield from self._item(child, "  ")
        for source, target in self.picture.edges:
            yield f"  {self._edge(source, target)};"
        yield "}"

    def _item(self, item: Item, indent: str) -> Iterator[str]:
        name = self.names[item] = f"n{len(self.names)}"
        if isinstance(item, Box):
            yield f"{indent}{name} [{_box_attributes(item)}];"
            return
        yield f"{indent}subgraph cluster_{name} {{"
        yield f"{indent}  {_group_attributes(item)}"
        if item in self.ends:
            yield f'{indent}  {name} [shape=point, width=0.05, color="{EDGE}"];'
        for child in item.children:
            yield from self._item(child, indent + "  ")
        yield f"{indent}}}"

    def _edge(self, source: Item, target: Item) -> str:
        attributes = []
        if isinstance(source, PictureGroup):
            attributes.append(f"ltail=cluster_{self.names[source]}")
        if isinstance(target, PictureGroup):
            attributes.append(f"lhead=cluster_{self.names[target]}")
        if isinstance(source, Box) and source.kind in SOURCES:
            attributes.append(f'color="{FAINT_EDGE}"')
        shown = f" [{', '.join(attributes)}]" if attributes else ""
        return f"{self.names[source]} -> {self.names[target]}{shown}"


def _box_attributes(box: Box) -> str:
    look = LOOKS[box.kind]
    label = _quoted("\n".join((box.title, *box.details)))
    return (
        f'label={label}, fillcolor="{look.fill}", color="{look.border}", '
        f"tooltip={_quoted(box.tooltip)}"
    )


def _group_attributes(group: PictureGroup) -> str:
    look = GROUPS[group.kind]
    return (
        f'label={_quoted(group.title)}; labeljust=l; style="filled,rounded"; fontsize={SMALL:g}; '
        f'fillcolor="{look.fill}"; color="{look.border}"; fontcolor="{FAINT}"; '
        f"tooltip={_quoted(group.tooltip)};"
    )


def _quoted(text: str) -> str:
    r"""Return a text as a string of DOT.

    >>> print(_quoted('a "b" \\ c'))
    "a \"b\" \\ c"
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + "".join(c for c in escaped if c.isprintable()) + '"'
