"""Decide how many vectors of a value, and how many rows, a row kernel treats at a time.

Instructions that wait for one another leave a machine idle unless it finds others. It looks ahead
over a window of instructions: in short loops that reaches over several turns, in long ones not even
to the end of the current one. There the kernel itself brings the chains of several vectors
together. In short loops more vectors are only more code.

    busy      cycles that the machine computes for one vector of results, whatever the order
    latency   cycles from an operand to the result, along the longest chain
    length    instructions
"""

from __future__ import annotations

from collections.abc import Iterator

from ....core.dim import typical
from ....core.scalar.builder import PLACED, Expr, postorder
from ....lower.kernels import RowKernel
from .cost import is_function, weight_of
from .phases import Phases
from .target import Target

WINDOW = 150  # instructions on vectors that wait or run at a time in a usual machine
FEW, MANY = 2, 4  # vectors
TOGETHER = 2  # rows
MANY_ROWS = 64
SHORT_ROW = 16  # registers; in longer rows what is done once matters less than what caches hold
BY_LANES = PLACED - {"iota"}  # these are written lane by lane: long code as it is
SIMPLE_LATENCY = 3.5
LATENCIES = {"div": 11.0, "reciprocal": 11.0, "rsqrt": 25.0, "sqrt": 15.0}
FUNCTION_LATENCY = 55.0  # of a mathematical function
FUNCTION_LENGTH = 40.0


def vectors_of(phases: Phases, *, short: bool) -> int:
    """Return how many vectors of a value to compute side by side, of short rows or others."""
    if any(phases.is_full(expr) and expr.kind in BY_LANES for expr in phases.order):
        return FEW
    waits = any(_waits(body) for body in _bodies(phases))
    return MANY if waits and not short else FEW


def rows_together(kernel: RowKernel, phases: Phases, register: int) -> int:
    """Return how many rows are best treated at a time: several if they are many and short."""
    many = is_short(kernel, phases, register) and typical(kernel.rows) >= MANY_ROWS
    return TOGETHER if many else 1


def is_short(kernel: RowKernel, phases: Phases, register: int) -> bool:
    """Tell whether rows that are reduced are so short that two of them are best taken together."""
    if register == 1 or len(kernel.loops) == 1 or not phases.reductions:
        return False
    return bool(typical(kernel.columns) <= SHORT_ROW * register)


def register_lanes(kernel: RowKernel, target: Target) -> int:
    """Return how many elements of the narrowest numbers of a kernel one register holds."""
    order = postorder([output.value for output in kernel.outputs])
    sizes = {e.dtype.itemsize for e in order if e.dtype.kind != "b"}
    return target.vector_bytes // max(4, min(sizes, default=4))


def _bodies(phases: Phases) -> Iterator[list[Expr]]:
    """Yield what each pass computes for an element, arguments first."""
    for phase in range(phases.count):
        yield [e for e in phases.order if phases.is_full(e) and phases.phase[id(e)] == phase]


def _waits(body: list[Expr]) -> bool:
    """Tell whether a window holds fewer vectors than it takes to keep the machine busy."""
    busy = sum(weight_of(expr) for expr in body)
    length = sum(_length(expr) for expr in body)
    return _latency(body) * length > WINDOW * busy


def _latency(body: list[Expr]) -> float:
    done: dict[int, float] = {}
    for expr in body:
        start = max((done.get(id(arg), 0.0) for arg in expr.args), default=0.0)
        done[id(expr)] = start + _latency_of(expr)
    return max(done.values(), default=0.0)


def _latency_of(expr: Expr) -> float:
    if weight_of(expr) == 0.0:
        return 0.0
    return LATENCIES.get(expr.kind, FUNCTION_LATENCY if is_function(expr) else SIMPLE_LATENCY)


def _length(expr: Expr) -> float:
    wide = max(1.0, expr.dtype.itemsize / 4)  # as weights count it: beside numbers of four bytes
    return wide * (FUNCTION_LENGTH if is_function(expr) else 1.0)
