"""What a kernel becomes: functions to be launched, and what each is given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from ...core.dtype import DType, int32
from ...lower.storage import View
from .dialect import Dialect
from .function import CFunction
from .scalars import stored_type

Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Room:
    """Memory that a kernel needs while it runs, and no longer: so many elements from a byte on."""

    dtype: DType
    size: int
    start: int = 0

    @property
    def end(self) -> int:
        """Return the byte behind it, where other memory may begin."""
        return self.start + -(-self.size * self.dtype.itemsize // 64) * 64


@dataclass(frozen=True, slots=True)
class CountingWord:
    """The word of a program's own that counts who is done with a launch; zero between launches."""

    dtype: DType = int32


Argument = View | Room | CountingWord


@dataclass(frozen=True, slots=True)
class Launch:
    """A function of a device, and how it is run.

    name        of the function, which follows from its text
    body        the statements of its definition
    helpers     definitions of functions that it calls, by their names
    arguments   what its pointers are to
    groups      how many groups of work items run, along one to three axes
    items       work items of a group
    parts       definitions of the kernels that run in it one after another, if there are several
    """

    name: str
    body: str
    helpers: Mapping[str, str]
    arguments: tuple[Argument, ...]
    groups: Sizes
    items: int = 1
    parts: Mapping[str, str] = field(default_factory=dict)

    @property
    def taken(self) -> str:
        """Return its parameters: for each argument a pointer, and how many elements lie before."""
        return _parameters(self.arguments)

    @property
    def definition(self) -> str:
        """Return its text without that of its parts."""
        return f"KERNEL void {self.name}({self.taken}) {{\n{self.body}\n}}"

    @property
    def text(self) -> str:
        """Return all that it does, without helpers."""
        return "\n\n".join([*self.parts.values(), self.definition])

    @property
    def needs_double(self) -> bool:
        """Tell whether it computes in double precision."""
        return "f64" in self.text


@dataclass
class LaunchText:
    """A function under construction: its parameters are pointers, one for each argument."""

    kind: str
    dialect: Dialect
    arguments: list[Argument] = field(default_factory=list)
    f: CFunction = field(default_factory=CFunction)

    def __post_init__(self) -> None:
        self.f.branches = not self.dialect.serial
        self.f.vector_bytes = self.dialect.vector_bytes

    def take(self, argument: Argument) -> str:
        """Return the name of the pointer to an argument."""
        self.arguments.append(argument)
        return f"b{len(self.arguments) - 1}"

    def finished(self, groups: Sizes, items: int = 1) -> Launch:
        """Return the function, to be run by so many groups of work items."""
        taken = _parameters(self.arguments)
        moved = [f"  b{i} += o{i};" for i in range(len(self.arguments))]
        body = "\n".join([*moved, *without_unused(self.f.lines)])
        helpers = dict(self.f.helpers)
        key = sha256("\n".join([taken, body, *helpers.values()]).encode()).hexdigest()[:16]
        return Launch(
            f"weft_{self.kind}_{key}", body, helpers, tuple(self.arguments), groups, items
        )


def _parameters(arguments: Sequence[Argument]) -> str:
    types = [stored_type(a.dtype) for a in arguments]
    return ", ".join(f"GLOBAL {t} *b{i}, const i64 o{i}" for i, t in enumerate(types))


_DEFINITION = re.compile(r"\s*const \w+ (\w+) = [^;]*;")
_NAME = re.compile(r"[A-Za-z_]\w*")


def without_unused(lines: Sequence[str]) -> list[str]:
    """Return lines without definitions of values that no later line has: compilers warn of them."""
    used: set[str] = set()
    kept = []
    for line in reversed(lines):
        defined = _DEFINITION.fullmatch(line)
        if defined is None or defined[1] in used:
            used.update(_NAME.findall(line))
            kept.append(line)
    return kept[::-1]


def program_source(dialect: Dialect, launches: Sequence[Launch]) -> str:
    """Return the text of a program with the functions of launches, each of them once."""
    helpers: dict[str, str] = {}
    parts: dict[str, str] = {}
    for launch in launches:
        helpers |= launch.helpers
        parts |= launch.parts
    functions = helpers | parts | {launch.name: launch.definition for launch in launches}
    return "\n\n".join([dialect.prelude.strip(), *functions.values()]) + "\n"
