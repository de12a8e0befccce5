"""Kernel programs as text, for people: buffers by kind, then what each kernel stores.

    %7                       all of buffer 7, in order; %7.T: with its last two axes exchanged
    %7[64 x 10 : 10, 1 + 5]  elements of it by sizes, strides, and an offset
    %7{0, 1}                 an operand of loops, by a stride for each of them
    t0 = ...                 a value that is used more than once
    i, checked(x, n)         the place in a row, an index that must be less than n

A kernel that does what one before it does, on other memory, says so.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from ..core.dim import Dim
from ..core.scalar.builder import Expr, postorder
from ..core.shape import Shape
from .kernels import Kernel, LoopNest, buffers_of
from .storage import Buffer, View, contiguous_strides

if TYPE_CHECKING:
    from .program import KernelProgram

COLUMNS = 100
TOGETHER = 14  # names of buffers of one type
INLINE = 48  # characters of a value that stands within another
Stored = Sequence[tuple[str, Expr, str | None]]
_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=", "and": "&", "or": "|", "xor": "^",
}  # fmt: skip
_NAME = re.compile(r"%\d+")


def program_text(program: KernelProgram) -> str:
    """Return a program as text."""
    count = len(program.kernels)
    head = f"program of {count} kernel{'s' if count != 1 else ''}"
    text = Text()
    parts = [head, *_buffers(program), "", *text.inner(program.kernels, ""), ""]
    fetches = [text.view(view) for view in program.fetches]
    states = {b.slot: f"%{b.number}" for b in program.buffers if b.kind == "state"}
    names = [states.get(n) or program.states[n].name for n, _ in program.commits]
    views = [text.view(view) for _, view in program.commits]
    commits = [f"{name} = {view}" for name, view in zip(names, views, strict=True)]
    parts += _wrapped("fetches", fetches) + _wrapped("commits", commits)
    return "\n".join(parts)


def _buffers(program: KernelProgram) -> list[str]:
    """Return the buffers of each kind, those that are touched; of the arena, by their types."""
    touched = {buffer for kernel in program.kernels for buffer in buffers_of(kernel)}
    touched.update(view.buffer for view in program.outputs)
    found: dict[str, list[str]] = {}
    types: dict[str, list[str]] = {}
    for buffer in (b for b in program.buffers if b in touched):
        if buffer.kind == "arena":
            types.setdefault(_type(buffer), []).append(f"%{buffer.number}")
        else:
            found.setdefault(buffer.kind, []).append(_declared(buffer))
    arena = [f"{type} {' '.join(some)}" for type, names in types.items() for some in _few(names)]
    found = {**found, "arena": arena} if arena else found
    return [line for kind, items in found.items() for line in _wrapped(kind, items)]


def _few(names: list[str]) -> list[list[str]]:
    return [names[i : i + TOGETHER] for i in range(0, len(names), TOGETHER)]


def _type(buffer: Buffer) -> str:
    return f"{buffer.dtype}[{_sizes(buffer.shape, ', ')}]"


def _declared(buffer: Buffer) -> str:
    if buffer.window is None:
        return f"{_type(buffer)} %{buffer.number} {buffer.name}"
    moved, word = buffer.window.buffer.number, buffer.window.word.number
    where = f"%{moved} + {buffer.window.offset} + %{word} * {buffer.window.step}"
    return f"{_type(buffer)} %{buffer.number} = {where}"


def _wrapped(title: str, items: Sequence[str]) -> list[str]:
    shown = ", ".join(item.replace(" ", "\0") for item in items)  # no line ends within one
    lines = textwrap.wrap(
        f"{title:<10}{shown}", COLUMNS, subsequent_indent=" " * 10, break_long_words=False
    )
    return [line.replace("\0", " ") for line in lines] if items else []


def _sizes(sizes: Iterable[Any], between: str = " x ") -> str:
    return between.join(map(str, sizes))


class Text:
    """Writes kernels, numbered as they come."""

    def __init__(self) -> None:
        self._count = 0
        self._known: dict[str, int] = {}

    def inner(self, kernels: Iterable[Kernel], indent: str = "  ") -> list[str]:
        """Return the lines of kernels in a list."""
        return [indent + line for kernel in kernels for line in self._kernel(kernel)]

    def _kernel(self, kernel: Kernel) -> list[str]:
        number = self._count
        self._count += 1
        head, *body = kernel.lines(self)
        head = f"{number:>3} {head}"
        if not kernel.parts:
            body = self._shortened(number, body)
        if len(body) == 1 and len(head) + len(body[0]) + 2 <= COLUMNS:
            return [f"{head}: {body[0]}"]
        return [head, *(f"      {line}" for line in body)]

    def _shortened(self, number: int, body: list[str]) -> list[str]:
        """Return a body, or where one like it is and the names in it that differ."""
        names = list(dict.fromkeys(_NAME.findall("\n".join(body))))
        order = {name: f"#{i}" for i, name in enumerate(names)}
        key = _NAME.sub(lambda found: order[found.group()], "\n".join(body))
        same = self._known.setdefault(key, number)
        short = f"as {same}, with {' '.join(names)}"
        return body if same == number or len(short) >= len("".join(body)) else [short]

    def head(self, kernel: Kernel) -> str:
        """Return the kind, name and sizes of a kernel."""
        sizes = _sizes(kernel.shape)
        return f"{kernel.kind} {kernel.name}" + (f" [{sizes}]" if sizes else "")

    # -- memory ------------------------------------------------------------------------------------

    def view(self, view: View) -> str:
        """Return which elements of a buffer are meant."""
        name = f"%{view.buffer.number}"
        if view.whole:
            return name
        last = (*range(len(view.shape))[:-2], len(view.shape) - 1, len(view.shape) - 2)
        if len(view.shape) > 1 and view.permuted(last).whole:
            return f"{name}.T"
        offset = f" + {view.offset}" if view.offset != 0 else ""
        return f"{name}[{_sizes(view.shape)} : {_sizes(view.strides, ', ')}{offset}]"

    def operand(self, kernel: LoopNest, number: int) -> str:
        """Return which elements of a buffer the loops of a kernel go through."""
        operand = kernel.operands[number]
        name, offset = f"%{operand.view.buffer.number}", operand.view.offset
        moved = "" if offset == 0 else f"+{offset}"
        axes = [(n, s) for n, s in zip(kernel.loops, operand.strides, strict=True) if n != 1]
        in_order = contiguous_strides(tuple(n for n, _ in axes))
        if tuple(s for _, s in axes) == in_order:
            return name + moved
        return f"{name}{{{_sizes(operand.strides, ', ')}}}{moved}"

    # -- values ------------------------------------------------------------------------------------

    def stores(self, stored: Stored, kernel: LoopNest, iotas: Sequence[Shape] = ()) -> list[str]:
        """Return what goes where, in terms of the operands of loops."""
        names = [self.operand(kernel, i) for i in range(len(kernel.operands))]
        return self.named_stores(stored, names, iotas)

    def named_stores(
        self, stored: Stored, names: Sequence[str], iotas: Sequence[Shape] = ()
    ) -> list[str]:
        """Return what goes where, operands having names."""
        roots = [value for _, value, _ in stored]
        values = _Values(names, iotas, roots)
        names_read = {names[e.data] for e in postorder(roots) if e.kind == "load"}
        lines = []
        for target, value, way in stored:
            made = values.of(value, as_it_is=target not in names_read)
            shown = _bare(made) if way is None else f"{way}({_bare(made)})"
            lines += [*values.take(), f"{target} = {shown}"]
            if way is None and target not in names_read:
                values.stored(value, target)
        return lines

    def constant(self, expr: Expr) -> str:
        """Return a constant in as few digits as tell it."""
        if isinstance(expr.data, Dim):
            return f"({expr.data})"
        return str(expr.dtype.type(expr.data)) if expr.dtype.kind == "f" else str(expr.data)


def _bare(made: str) -> str:
    """Return a value without parentheses around the whole of it."""
    depths = list(accumulate((c == "(") - (c == ")") for c in made))
    return made[1:-1] if made[0] == "(" and 0 not in depths[:-1] else made


class _Values:
    """Writes expressions: what is used twice, or is long, has a line of its own."""

    def __init__(self, names: Sequence[str], iotas: Sequence[Shape], roots: list[Expr]) -> None:
        self.names = names
        self.iotas = iotas
        order = postorder(roots)
        self._used = Counter(id(arg) for expr in order for arg in expr.args)
        self._used.update(map(id, roots))
        self._made: dict[int, str] = {}
        self._lines: list[str] = []
        self._count = 0

    def take(self) -> list[str]:
        """Return the lines that what was written last needs."""
        lines, self._lines = self._lines, []
        return lines

    def of(self, root: Expr, *, as_it_is: bool) -> str:
        """Return an expression as text; as it is, even if others use it too."""
        for expr in postorder([root]):
            if id(expr) not in self._made:
                made = self._one(expr)
                kept = expr is root and as_it_is
                self._made[id(expr)] = made if kept else self._named(expr, made)
        return self._made[id(root)]

    def stored(self, root: Expr, target: str) -> None:
        """Call a value by the name of the memory that has it."""
        if root.args:
            self._made[id(root)] = target

    def _named(self, expr: Expr, made: str) -> str:
        if not expr.args or (self._used[id(expr)] == 1 and len(made) <= INLINE):
            return made
        name = f"t{self._count}"
        self._count += 1
        self._lines.append(f"{name} = {_bare(made)}")
        return name

    def _one(self, expr: Expr) -> str:
        args = [self._made[id(arg)] for arg in expr.args]
        if expr.kind in _INFIX:
            return f"({args[0]} {_INFIX[expr.kind]} {args[1]})"
        args = [_bare(arg) for arg in args]
        leaf = _LEAVES.get(expr.kind)
        return leaf(self, expr, args) if leaf else f"{expr.kind}({', '.join(args)})"

    def _load_at(self, expr: Expr, args: list[str]) -> str:
        operand, has_offset, has_guard = expr.data
        offset = args[0] if has_offset else "0"
        guard = f" if {args[-1]} else 0" if has_guard else ""
        return f"{self.names[operand]}[{offset}{guard}]"


_LEAVES: dict[str, Callable[[_Values, Expr, list[str]], str]] = {
    "load": lambda v, e, _: v.names[e.data],
    "const": lambda _v, e, _: Text().constant(e),
    "iota": lambda v, e, _: f"loops{{{_sizes(v.iotas[e.data], ', ')}}}",
    "carry": lambda _v, e, _: f"c{e.data}",
    "cast": lambda _v, e, args: f"{e.dtype}({args[0]})",
    "bits": lambda _v, e, args: f"bits_{e.dtype}({args[0]})",
    "reduce": lambda _v, e, args: f"{e.data}({args[0]})",
    "index": lambda _v, _e, _: "i",
    "checked": lambda _v, e, args: f"checked({args[0]}, {e.data[0]})",
    "load_at": _Values._load_at,
}
