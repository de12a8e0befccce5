"""Read vectors of elements that do not lie one behind another: backwards, or with gaps.

A kernel whose other operands lie in sequence stays a kernel of vectors: only the loads of this one
differ.
"""

from __future__ import annotations

from ....core.shape import Size
from ....lower.kernels import RowKernel
from .text import FunctionText
from .values import IRValue, bits_of, lanes_of, scalar_of, vector_of

LEAST_COLUMNS = 16  # rows this short do not fill vectors, which are dear to collect
SHUFFLED = range(2, 5)  # strides of elements that are picked out of vectors of all that lie there
SHUFFLED_COLUMNS = 8  # such vectors need not be full


def by_vectors(kernel: RowKernel) -> bool:
    """Tell whether a kernel treats its elements by vectors: if it stores several in sequence."""
    if _is_single(kernel):
        return False
    stored = {kernel.operands[output.operand].strides[-1] for output in kernel.outputs}
    strides = {operand.strides[-1] for operand in kernel.operands}
    apart = strides - {0, 1}
    least = SHUFFLED_COLUMNS if all(map(_is_shuffled, apart)) else LEAST_COLUMNS
    return stored <= {0, 1} and (not apart or kernel.columns >= least)


def _is_shuffled(stride: Size) -> bool:
    return isinstance(stride, int) and stride in SHUFFLED


def _is_single(kernel: RowKernel) -> bool:
    """Tell whether there is one element, of which vectors would only be longer code."""
    return len(kernel.loops) == 1 and isinstance(kernel.columns, int) and kernel.columns == 1


def load_strided(
    f: FunctionText, type: str, base: IRValue, first: IRValue, stride: int, count: IRValue | None
) -> IRValue:
    """Return the elements number `first` and following of a row that begins at `base`.

    With `count` only so many of them exist; what the lanes behind them hold is of no account.
    """
    if lanes_of(type) == 1:
        return f.load(type, f.gep(base, f.mul(first, stride), scalar_of(type)))
    if scalar_of(type) == "i1":
        bytes = vector_of("i8", lanes_of(type))
        return f.icmp("ne", load_strided(f, bytes, base, first, stride, count), 0)
    if stride == -1:
        return _load_backwards(f, type, base, first, count)
    if _is_shuffled(stride):
        return _picked(f, type, f.gep(base, f.mul(first, stride), scalar_of(type)), stride, count)
    return _collected(f, type, base, first, stride, count)


def _load_backwards(
    f: FunctionText, type: str, base: IRValue, first: IRValue, count: IRValue | None
) -> IRValue:
    """Return a vector of a row that runs backwards in memory: loaded as it lies, then reversed."""
    lanes = lanes_of(type)
    order = list(reversed(range(lanes)))
    back = f.sub(1 - lanes, first)
    if count is None:
        found = f.load(type, f.gep(base, back, scalar_of(type)))
    else:
        live = f.first_lanes(count, lanes, bits_of(type))
        place = f.gep_beyond(base, back, scalar_of(type))
        found = f.load_where(type, place, f.shuffle(live, live, order))
    return f.shuffle(found, found, order)


def _picked(
    f: FunctionText, type: str, start: IRValue, stride: int, count: IRValue | None
) -> IRValue:
    """Return every so many-th element: all that lie there are loaded, up to the last wanted."""
    lanes = lanes_of(type)
    span = (lanes - 1) * stride + 1
    starts = [min(part * lanes, span - lanes) for part in range(stride)]
    live = None if count is None else f.add(f.mul(f.sub(count, 1), stride), 1)
    parts = [_part(f, type, start, at, live) for at in starts]
    stops = [-(-(part + 1) * lanes // stride) for part in range(stride - 1)] + [lanes]
    found, kept = parts[0], [lane * stride for lane in range(stops[0])]
    for at, loaded, stop in zip(starts[1:], parts[1:], stops[1:], strict=True):
        taken = [lanes + lane * stride - at for lane in range(len(kept), stop)]
        found = f.shuffle(found, loaded, [*kept, *taken, *[0] * (lanes - stop)])
        kept = list(range(stop))
    return found


def _part(f: FunctionText, type: str, start: IRValue, at: int, live: IRValue | None) -> IRValue:
    """Return the elements from one on, if so many from the start on exist."""
    place = f.gep_beyond(start, at, scalar_of(type))
    return f.load(type, place, count=None if live is None else f.sub(live, at))


def _collected(
    f: FunctionText, type: str, base: IRValue, first: IRValue, stride: int, count: IRValue | None
) -> IRValue:
    """Return a vector whose elements are loaded one by one."""
    element, result = scalar_of(type), f.constant(type, 0)
    start = f.gep(base, f.mul(first, stride), element)
    for lane in range(lanes_of(type)):
        # Behind the end the last element is loaded again: it exists.
        number = f.constant("i64", lane)
        if count is not None:
            number = f.minimum(f.sub(count, 1), number)
        place = f.gep(start, f.mul(number, stride), element)
        result = f.insert(result, f.load(element, place), lane)
    return result
