"""Write sorts of lines: stable, by merging runs that double in length.

Elements become keys, unsigned integers in the order in which elements come, downwards too: then all
sorts are the same. First each work item sorts a short run. Then runs are merged, two and two: an
element goes as far as there are elements before it in its own run, and in the other one, which is
searched for. No two work items write to one place, and none waits for another.

On processors a work item has a stretch of a run: it searches for the first of its elements, and
goes on from there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.dtype import DType
from ...core.ordering import Ordering
from ...core.shape import Shape, size_of
from ...lower.kernels import CallKernel, Kernel
from ...lower.kinds import DTYPES
from ...lower.storage import View
from .dialect import Dialect
from .elements import linear, write_counters
from .function import CFunction
from .launch import Launch, LaunchText, Room
from .scalars import c_type

SERIAL_RUN, GROUP_RUN = 512, 8  # elements that a work item sorts by itself
INSERTED = 8  # of them as many by insertion
_WORD = np.dtype(np.uint32)
_LONG = np.dtype(np.uint64)


def is_sort(kernel: Kernel) -> bool:
    """Tell whether a kernel is the call of an operator that sorts, for which there is code."""
    if not isinstance(kernel, CallKernel) or getattr(kernel.op, "ordering_rule", None) is None:
        return False
    return not kernel.is_dynamic and all(view.dtype in DTYPES for view in kernel.views)


def write_sort(kernel: CallKernel, dialect: Dialect) -> list[Launch]:
    """Return the launches of a sort: runs, merges, and what is taken of the sorted lines."""
    sort = _Sort(kernel, dialect)
    if not sort.rows * sort.size * sort.count:
        return []
    launches, width, now = [sort.sorted_runs()], sort.run, 0
    while width < sort.size:
        launches.append(sort.merged(width, now))
        width, now = 2 * width, 1 - now
    return [*launches, sort.given(now)]


class _Buffers(NamedTuple):
    """Keys, and the places that they came from."""

    keys: Room
    places: Room


class _Sort:
    """One sort: lines of `size` elements, `rows` of them, the first `count` of which are wanted."""

    def __init__(self, kernel: CallKernel, dialect: Dialect) -> None:
        self.ordering: Ordering = kernel.op.ordering_rule(*kernel.attrs)
        self.kernel = kernel
        self.dialect = dialect
        (self.x,) = (view for view in kernel.inputs if view is not None)
        axis, shape = self.ordering.axis, self.x.shape
        self.size = size_of(shape) if axis is None else int(shape[axis])
        self.rows = 1 if axis is None else size_of(_without(shape, axis))
        self.count = self.size if self.ordering.wanted is None else self.ordering.wanted
        self.run = SERIAL_RUN if dialect.serial else GROUP_RUN
        self.stretch = SERIAL_RUN if dialect.serial else 1
        self.buffers = self._rooms()

    def _rooms(self) -> tuple[_Buffers, _Buffers]:
        total, end = self.rows * self.size, 0
        key = _WORD if self.x.dtype.itemsize <= _WORD.itemsize else _LONG
        place = _WORD if self.size < 1 << 32 else _LONG
        made = []
        for dtype in (key, place, key, place):
            made.append(Room(dtype, total, end))
            end = made[-1].end
        return _Buffers(*made[:2]), _Buffers(*made[2:])

    # -- where elements lie ------------------------------------------------------------------------

    def offset(self, f: CFunction, view: View, row: str, place: str) -> str:
        """Write where an element of a line lies in a view; return its offset."""
        axis = self.ordering.axis
        if axis is None:
            return linear(view.strides, write_counters(f, place, view.shape))
        counters = write_counters(f, row, _without(view.shape, axis))
        return linear(view.strides, [*counters[:axis], place, *counters[axis:]])

    def work(self, f: CFunction, length: int, each: int) -> int:
        """Write which part of which line a work item has: `row`, from `first` to `last`.

        Return how many work items there are.
        """
        parts = -(-length // each)
        total = self.rows * parts
        item = "GROUP(0)" if self.dialect.serial else "THREAD"
        if not self.dialect.serial:
            f.write(f"if (THREAD >= {total}) return;")
        f.write(f"const i64 row = {item} / {parts};")
        f.write(f"const i64 first = {item} % {parts} * {each};")
        f.write(f"const i64 last = first + {each} < {length} ? first + {each} : {length};")
        return total

    def finished(self, text: LaunchText, total: int) -> Launch:
        """Return the function, run by so many work items."""
        if self.dialect.serial:
            return text.finished((total,))
        items = self.dialect.group
        return text.finished((-(-total // items),), items)

    # -- runs --------------------------------------------------------------------------------------

    def sorted_runs(self) -> Launch:
        """Return the function that makes keys of elements, and sorts runs of them."""
        text = LaunchText("sort_runs", self.dialect)
        f, x = text.f, text.take(self.x)
        names = [text.take(room) for buffers in self.buffers for room in buffers]
        key, place = (c_type(room.dtype) for room in self.buffers[0])
        total = self.work(f, self.size, self.run)
        f.write(f"const i64 base = row * {self.size} + first, count = last - first;")
        with f.block("for (i64 i = 0; i < count; ++i)"):
            at = self.offset(f, self.x, "row", "(first + i)")
            f.write(f"{names[0]}[base + i] = {self._key(f, f'{x}[{at}]', key)};")
            f.write(f"{names[1]}[base + i] = ({place})(first + i);")
        _insertions(f, names[0], names[1], key, place)
        if self.run > INSERTED:
            _merges(f, names, key, place)
        return self.finished(text, total)

    def _key(self, f: CFunction, element: str, key: str) -> str:
        """Write an element as a number in the order of elements; return its name."""
        dtype = self.x.dtype
        bits, name = 8 * dtype.itemsize, f.name("key")
        top = f"({key}){1 << (bits - 1):#x}"
        raw = f"({key})(u{bits}){element}"
        if dtype.kind == "f":
            raw = f"({key}){element}" if bits < 32 else f"({key})BITS{bits}({element})"
            f.write(f"const {key} raw = {raw};")
            f.write(f"const {key} size = raw & ({top} - 1);")
            infinite = _bits_of(np.inf, dtype)
            signed = f"raw & {top} ? ~raw & ({top} | ({top} - 1)) : raw | {top}"
            nan = f"{top} | ({top} - 1)"
            ordered = f"size > ({key}){infinite:#x} ? {nan} : size == 0 ? {top} : {signed}"
        else:
            ordered = f"{raw} ^ {top}" if dtype.kind == "i" else raw
        direction = "~" if self.ordering.descending else ""
        f.write(f"const {key} {name} = {direction}({key})({ordered});")
        return name

    # -- merges ------------------------------------------------------------------------------------

    def merged(self, width: int, now: int) -> Launch:
        """Return the function that merges runs of a width, two and two."""
        text = LaunchText("sort_merge", self.dialect)
        f = text.f
        (keys, places), (to_keys, to_places) = (
            [text.take(room) for room in self.buffers[i]] for i in (now, 1 - now)
        )
        key = c_type(self.buffers[0].keys.dtype)
        size = self.size
        total = self.work(f, size, self.stretch)
        f.write(f"const i64 base = row * {size};")
        f.write(f"const i64 pair = base + first / {2 * width} * {2 * width};")
        f.write(f"const i32 left = first % {2 * width} < {width};")
        f.write(f"const i64 own = left ? pair : pair + {width};")
        f.write(f"i64 low = left ? pair + {width} : pair, end = low + {width};")
        f.write(f"end = end < base + {size} ? end : base + {size};")
        f.write("low = low < end ? low : end;")
        f.write("const i64 other = low;")
        f.write(f"const {key} begin = {keys}[base + first];")
        f.write("i64 high = end;")
        with f.block("while (low < high)"):
            f.write("const i64 middle = (low + high) / 2;")
            _before(f, f"{keys}[middle]", "begin")
            f.write("if (before) low = middle + 1; else high = middle;")
        with f.block("for (i64 i = base + first; i < base + last; ++i)"):
            f.write(f"const {key} here = {keys}[i];")
            with f.block("while (low < end)"):
                _before(f, f"{keys}[low]", "here")
                f.write("if (!before) break;")
                f.write("++low;")
            f.write("const i64 to = pair + (i - own) + (low - other);")
            f.write(f"{to_keys}[to] = here; {to_places}[to] = {places}[i];")
        return self.finished(text, total)

    # -- results -----------------------------------------------------------------------------------

    def given(self, now: int) -> Launch:
        """Return the function that takes from sorted lines what is asked for."""
        text = LaunchText("sort_given", self.dialect)
        f, x = text.f, text.take(self.x)
        places = text.take(self.buffers[now].places)
        results = [text.take(view) for view in self.kernel.outputs]
        total = self.work(f, self.count, self.stretch)
        with f.block("for (i64 i = first; i < last; ++i)"):
            f.write(f"const i64 place = (i64){places}[row * {self.size} + i];")
            wanted = zip(results, self.kernel.outputs, self.ordering.gives, strict=True)
            for result, view, gives in wanted:
                value = "place"
                if gives == "values":
                    value = f"{x}[{self.offset(f, self.x, 'row', 'place')}]"
                f.write(f"{result}[{self.offset(f, view, 'row', 'i')}] = {value};")
        return self.finished(text, total)


def _insertions(f: CFunction, keys: str, places: str, key: str, place: str) -> None:
    """Write how a work item sorts short runs by insertion."""
    with f.block("for (i64 i = 1; i < count; ++i)"):
        f.write(f"const {key} moved = {keys}[base + i];")
        f.write(f"const {place} from = {places}[base + i];")
        f.write("i64 to = i;")
        with f.block(f"while (to % {INSERTED} && {keys}[base + to - 1] > moved)"):
            f.write(f"{keys}[base + to] = {keys}[base + to - 1];")
            f.write(f"{places}[base + to] = {places}[base + to - 1];")
            f.write("--to;")
        f.write(f"{keys}[base + to] = moved; {places}[base + to] = from;")


def _merges(f: CFunction, names: list[str], key: str, place: str) -> None:
    """Write how a work item merges short runs; they end where they began."""
    f.write(f"GLOBAL {key} *k = {names[0]} + base, *k2 = {names[2]} + base;")
    f.write(f"GLOBAL {place} *p = {names[1]} + base, *p2 = {names[3]} + base;")
    with f.block(f"for (i64 w = {INSERTED}; w < count; w *= 2)"):
        with f.block("for (i64 start = 0; start < count; start += 2 * w)"):
            f.write("const i64 middle = start + w < count ? start + w : count;")
            f.write("const i64 end = start + 2 * w < count ? start + 2 * w : count;")
            f.write("i64 a = start, b = middle;")
            with f.block("for (i64 to = start; to < end; ++to)"):
                f.write("const i32 left = b >= end || (a < middle && k[a] <= k[b]);")
                f.write("const i64 from = left ? a++ : b++;")
                f.write("k2[to] = k[from]; p2[to] = p[from];")
        f.write(f"GLOBAL {key} *k3 = k; k = k2; k2 = k3;")
        f.write(f"GLOBAL {place} *p3 = p; p = p2; p2 = p3;")
    with f.block(f"if (k != {names[0]} + base)"):
        f.write("for (i64 i = 0; i < count; ++i) { k2[i] = k[i]; p2[i] = p[i]; }")


def _before(f: CFunction, other: str, own: str) -> None:
    """Write whether an element of the other run comes before one: of equal ones the left one."""
    f.write(f"const i32 before = left ? {other} < {own} : {other} <= {own};")


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


def _bits_of(number: float, dtype: DType) -> int:
    return int(np.array(number, dtype).view(f"u{dtype.itemsize}"))
