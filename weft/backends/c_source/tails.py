"""Let small kernels run behind others, in the same launch, on processors.

Between two launches the threads of a processor fall asleep and are woken, which takes 10 us: long
enough for one of them to compute 10^5 elements. So a kernel that takes no longer is run by whoever
is the last to be done with the launch before. Who that is, a word tells that all count up: it is
zero before and afterwards.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from ...core.scalar.builder import Expr, postorder
from ...core.scalar.functions import FUNCTIONS
from ...core.shape import size_of
from ...lower.kernels import Kernel, walk
from ...lower.kernels.base import FREE, LoopNest
from .launch import CountingWord, Launch

MOST_WORK = 1 << 16  # of a tail, in simple operations
MOST_TAILS = 8  # of a launch: compilers take longer for long functions
MOST_ARGUMENTS = 60  # of a launch: of 16 bytes each, and every device takes 1,024 bytes
MOST_GROUPS = 1 << 12  # that count up one word


@dataclass
class _Head:
    """A kernel, and those that run behind its last launch, which have so many arguments by then."""

    kernel: Kernel
    arguments: int
    tails: list[Kernel] = field(default_factory=list)

    def takes(self, kernel: Kernel, made: Sequence[Launch]) -> bool:
        """Let a kernel run behind the others if it can; tell whether it does."""
        if len(self.tails) == MOST_TAILS or not _is_small(kernel, made):
            return False
        self.arguments += len(made[0].arguments)
        if self.arguments <= MOST_ARGUMENTS:
            self.tails.append(kernel)
            return True
        return False


Launches = dict[int, list[Launch]]  # by the identity of kernels


def with_tails(kernels: Sequence[Kernel], launches: Launches) -> Launches:
    """Return what kernels are launched as; small ones run behind others and have no launches."""
    times = Counter(map(id, walk(kernels)))
    own = {number: made for number, made in launches.items() if times[number] == 1}
    found = dict(launches)
    for head in [head for part in _lists(kernels) for head in _heads(part, own)]:
        *before, last = launches[id(head.kernel)]
        tails = [launch for tail in head.tails for launch in launches[id(tail)]]
        found |= {id(head.kernel): [*before, _joined(last, tails)]}
        found |= {id(tail): [] for tail in head.tails}
    return found


def _lists(kernels: Sequence[Kernel]) -> Iterable[Sequence[Kernel]]:
    """Yield the lists of kernels that run one after another, those inside of others too."""
    yield kernels
    for kernel in walk(kernels):
        yield from kernel.parts


def _heads(kernels: Sequence[Kernel], launches: Launches) -> Iterable[_Head]:
    """Yield those behind which others can run, with these."""
    head: _Head | None = None
    heads: list[_Head] = []
    for kernel in kernels:
        made = launches.get(id(kernel))
        if made is None:  # the host's turn
            head = None
        elif not made:
            continue
        elif head is None or not head.takes(kernel, made):
            head = _Head(kernel, len(made[-1].arguments)) if _can_lead(made[-1]) else None
            heads += [] if head is None else [head]
    return [head for head in heads if head.tails]


def _can_lead(launch: Launch) -> bool:
    return launch.items == 1 and size_of(launch.groups) <= MOST_GROUPS


def _is_small(kernel: Kernel, made: Sequence[Launch]) -> bool:
    """Tell whether one thread runs a kernel sooner than several are woken."""
    if not isinstance(kernel, LoopNest) or len(made) != 1 or made[0].items != 1:
        return False
    costs = [FUNCTIONS[e.kind].cost if e.kind in FUNCTIONS else 1.0 for e in _steps(kernel)]
    return int(size_of(kernel.loops)) * max(2.0, sum(costs)) <= MOST_WORK


def _steps(kernel: LoopNest) -> list[Expr]:
    return [e for e in postorder(kernel.roots) if e.kind not in FREE]


def _joined(head: Launch, tails: Sequence[Launch]) -> Launch:
    """Return a launch behind which others run."""
    parts = [head, *tails]
    arguments = [a for part in parts for a in part.arguments]
    begins = [sum(len(part.arguments) for part in parts[:i]) for i in range(len(parts))]
    word = f"b{len(arguments)}[o{len(arguments)}]"
    count = size_of(head.groups)
    last = [f"if (ARRIVED(&{word}) < {count}) return;", f"{word} = 0;"]
    lines = [
        _call(head, 0, ["GROUP(0)", "GROUP(1)", "GROUP(2)"]),
        *(last if count > 1 else []),
        *[_in_turn(tail, begin) for tail, begin in zip(tails, begins[1:], strict=True)],
    ]
    helpers = {name: text for part in parts for name, text in part.helpers.items()}
    functions = {_name(part): _definition(part) for part in parts}
    body = "\n".join(f"  {line}" for line in lines)
    key = sha256("\n".join([body, *functions]).encode()).hexdigest()[:16]
    given = (*arguments, CountingWord())
    return Launch(f"weft_joined_{key}", body, helpers, given, head.groups, parts=functions)


def _name(part: Launch) -> str:
    return f"{part.name}_part"


def _definition(part: Launch) -> str:
    """Return a launch as a function that is told which group of work items it is."""
    body = re.sub(r"\bGROUP\((\d)\)", r"g\1", part.body)
    groups = ", ".join(f"const i64 g{axis}" for axis in range(3))
    return f"FUNCTION void {_name(part)}({part.taken}, {groups}) {{\n{body}\n}}"


def _call(part: Launch, begin: int, groups: Sequence[str]) -> str:
    given = [f"b{i}, o{i}" for i in range(begin, begin + len(part.arguments))]
    return f"{_name(part)}({', '.join([*given, *groups])});"


def _in_turn(part: Launch, begin: int) -> str:
    """Return a statement that runs all groups of a launch, one after another."""
    sizes = [*part.groups, 1, 1][:3]
    loops = [f"for (i64 g{a} = 0; g{a} < {n}; ++g{a})" for a, n in enumerate(sizes) if n != 1]
    groups = [f"g{axis}" if n != 1 else "0" for axis, n in enumerate(sizes)]
    return " ".join([*reversed(loops), _call(part, begin, groups)])
