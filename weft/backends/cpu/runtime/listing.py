"""List the kernels of an executable for people: what each computes, and from which lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....core.dim import is_known
from ....core.errors import ArgumentError, ArgumentTypeError
from ....graph.node import Node
from ....lower.kernels import CallKernel, Kernel, bytes_moved
from ....lower.program import Sources
from ....lower.schedule import BranchCalls, LoopCalls, Piece, TogetherCalls, flattened, inner_calls
from ..codegen.program import ProgramText
from .tables import aligned, shortened

SHOWN_NAMES = 48


@dataclass(frozen=True)
class KernelInfo:
    """One kernel of an executable.

    name        of the last node it computes
    kind        "row", "column", "gemm" ..., or "library" for a call of a reference kernel
    shape       of its loops, or of what it gives
    nodes       names of the graph's nodes that it computes, and `ops` their operators
    where       the lines of the program that made these nodes
    chunks      into how many parts its work is divided among threads
    function    the name of its code; equal kernels share one. Empty for a library kernel
    """

    number: int
    name: str
    kind: str
    shape: tuple[int, ...]
    nodes: tuple[str, ...]
    ops: tuple[str, ...]
    where: tuple[str, ...]
    chunks: int
    bytes: int
    flops: int
    function: str


class KernelList(tuple[KernelInfo, ...]):
    """The kernels of an executable in the order in which they run; printed as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        head = ("#", "kernel", "kind", "shape", "chunks", "computes", "from")
        return aligned([head, *map(_row, self)], right=(0, 4))

    def find(self, wanted: Any) -> KernelInfo:
        """Return a kernel by its number, its name, its code's name, or itself."""
        if isinstance(wanted, KernelInfo):
            return self.find(wanted.number)
        if isinstance(wanted, bool) or not isinstance(wanted, (int, str)):
            raise ArgumentTypeError(
                "a kernel is named by its number or name, as in executable.kernels. "
                f"Received: {type(wanted).__name__}"
            )
        for kernel in self:
            if wanted in (kernel.number, kernel.name, kernel.function):
                return kernel
        names = ", ".join(kernel.name for kernel in self[:10])
        raise ArgumentError(
            f"there is no kernel {wanted!r}; there are {len(self)}: {names}"
            + (" ..." if len(self) > 10 else "")
        )


def list_kernels(text: ProgramText, sources: Sources) -> KernelList:
    """Describe the kernels of a program in the order in which they run."""
    found: list[KernelInfo] = []
    stretches = iter(text.schedule.stretches)
    for step, times in flattened(text.schedule.steps):
        if isinstance(step, CallKernel):
            found.append(_call_info(len(found), step, times, sources.origins(step)))
        else:
            for region, repeated in flattened(next(stretches), times):
                for piece in region.pieces:
                    nodes = sources.origins(piece.kernel)
                    function = text.function_of(piece)
                    found.append(_piece_info(len(found), piece, repeated, nodes, function))
    return KernelList(found)


def kernels_in_order(text: ProgramText) -> list[Kernel]:
    """Return the kernels that `list_kernels` describes, in the same order."""
    found: list[Kernel] = []
    stretches = iter(text.schedule.stretches)
    for step, _ in flattened(text.schedule.steps):
        if isinstance(step, CallKernel):
            found.append(step)
        else:
            regions = flattened(next(stretches), 1)
            found += [piece.kernel for region, _ in regions for piece in region.pieces]
    return found


def count_control(text: ProgramText) -> Counter[str]:
    """Return how many loops and branches a program has."""
    return sum(map(_control_in, (text.schedule.steps, *text.schedule.stretches)), Counter())


def _control_in(calls: Sequence[Any]) -> Counter[str]:
    found: Counter[str] = Counter()
    for call in calls:
        if isinstance(call, LoopCalls):
            found += Counter(loop=1) + _control_in(call.test) + _control_in(call.body)
        elif isinstance(call, BranchCalls):
            found += Counter(branch=1) + _control_in(call.yes) + _control_in(call.no)
        elif isinstance(call, TogetherCalls):
            found += Counter(together=1) + _control_in(inner_calls(call))
    return found


def _piece_info(
    number: int, piece: Piece, times: int, nodes: Sequence[Node], function: str
) -> KernelInfo:
    kernel = piece.kernel
    return KernelInfo(
        number,
        piece.name,
        kernel.kind,
        kernel.shape,
        *_origin(nodes),
        piece.chunks,
        bytes_moved(piece.views) * times,
        kernel.operations * times,
        function,
    )


def _call_info(number: int, kernel: CallKernel, times: int, nodes: Sequence[Node]) -> KernelInfo:
    views = [view for view in kernel.views if is_known(view.shape)]
    return KernelInfo(
        number,
        kernel.name,
        kernel.kind,
        kernel.shape,
        *_origin(nodes),
        1,
        bytes_moved(views) * times,
        kernel.operations * times,
        "",
    )


def _origin(
    nodes: Sequence[Node],
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return names, operators and lines of nodes; a line once, however many nodes it made."""
    lines = dict.fromkeys(node.where for node in nodes if node.where)
    return tuple(node.name for node in nodes), tuple(node.op.name for node in nodes), tuple(lines)


def _row(kernel: KernelInfo) -> tuple[str, ...]:
    return (
        str(kernel.number),
        shortened(kernel.name, SHOWN_NAMES),
        kernel.kind,
        "x".join(map(str, kernel.shape)) or "1",
        str(kernel.chunks),
        shortened(" ".join(kernel.ops) or "copy", SHOWN_NAMES),
        shortened(", ".join(kernel.where), SHOWN_NAMES),
    )
