"""Write loads and stores: of scalars, of whole vectors, of the first lanes of vectors."""

from __future__ import annotations

from .instructions import Instructions, bytes_of_vector
from .lines import Operand
from .values import (
    IRValue,
    bits_of,
    bytes_of,
    constant,
    is_constant,
    is_float,
    lanes_of,
    scalar_of,
    suffix_of,
    vector_of,
)

CACHE_LINE = 64  # bytes


class MemoryInstructions(Instructions):
    """Instructions that go to memory."""

    def gep(self, pointer: IRValue, index: Operand, element: str = "i8") -> IRValue:
        """Return the address of an element at an index (of bytes, unless a type is given)."""
        element = "i8" if element == "i1" else element
        offset = self._like(index, "i64")
        return self.define(
            "ptr", f"getelementptr inbounds {element}, {pointer.typed}, {offset.typed}"
        )

    def gep_beyond(self, pointer: IRValue, index: Operand, element: str = "i8") -> IRValue:
        """Return an address that may lie outside of the array that the pointer belongs to."""
        element = "i8" if element == "i1" else element
        offset = self._like(index, "i64")
        return self.define("ptr", f"getelementptr {element}, {pointer.typed}, {offset.typed}")

    def number_of(self, pointer: IRValue) -> IRValue:
        """Return an address as a number."""
        return self.define("i64", f"ptrtoint {pointer.typed} to i64")

    def load(
        self,
        type: str,
        pointer: IRValue,
        *,
        aligned: bool = False,
        count: IRValue | None = None,
        flags: str = "",
        apart: bool = False,
    ) -> IRValue:
        """Read a scalar or a vector; with `count` only the first lanes, the others being zero.

        `aligned` promises a multiple of the whole vector's size. A bool is read as a byte. `apart`
        keeps a selection from what is read, stored at the same place, from becoming a masked store,
        which some processors do lane by lane.
        """
        if scalar_of(type) == "i1":
            byte = self.load(vector_of("i8", lanes_of(type)), pointer, aligned=aligned, count=count)
            return self.icmp("ne", byte, 0)
        align = bytes_of_vector(type) if aligned else bytes_of(type)
        if count is None:
            metadata = f", {flags}" if flags else ""
            how = "load volatile" if apart else "load"
            return self.define(type, f"{how} {type}, {pointer.typed}, align {align}{metadata}")
        mask = self.first_lanes(count, lanes_of(type), bits_of(type))
        return self._masked_load(type, pointer, align, mask)

    def store(
        self,
        value: IRValue,
        pointer: IRValue,
        *,
        aligned: bool = False,
        count: IRValue | None = None,
        streamed: bool = False,
    ) -> None:
        """Write a scalar or a vector; with `count` only the first lanes.

        `streamed` writes whole vectors past the caches, to a multiple of a register's size.
        """
        if scalar_of(value.type) == "i1":
            value = self.zext(value, "i8")
        align = bytes_of_vector(value.type) if aligned else bytes_of(value.type)
        if streamed:
            align = self.target.vector_bytes
        if count is None:
            metadata = ", !nontemporal !{i32 1}" if streamed else ""
            self.write(f"store {value.typed}, {pointer.typed}, align {align}{metadata}")
            return
        if is_float(value.type):
            self._masked_store(value, pointer, align, count)
        elif is_constant(count):
            self._store_parts(value, pointer, align, int(count))
        else:
            self._masked_store(value, pointer, align, self.hidden(count))

    def _masked_store(self, value: IRValue, pointer: IRValue, align: int, count: IRValue) -> None:
        """Write the first lanes by an instruction of the machine.

        LLVM makes a store of one lane, if the mask is a constant, a plain store; of lanes cut from
        wider integers it then stores the wide one, and overwrites what lies behind. (LLVM 22.1,
        where registers hold masks.) So integers have no mask that it can compute, in whatever
        parts it divides the vector; floats are never made by cutting.
        """
        mask = self.first_lanes(count, lanes_of(value.type), bits_of(value.type))
        name = f"llvm.masked.store.{suffix_of(value.type)}.p0"
        self.call(name, "void", value, pointer, constant("i32", align), mask, declare=True)

    def _store_parts(self, value: IRValue, pointer: IRValue, align: int, count: int) -> None:
        """Write a known number of first lanes by plain stores, whose sizes are powers of two."""
        first = 0
        for size in (1 << bit for bit in reversed(range(count.bit_length()))):
            if count & size:
                lanes = range(first, first + size)
                part = self.shuffle(value, value, lanes) if size > 1 else self.extract(value, first)
                place = self.gep(pointer, first, scalar_of(value.type))
                fits = min(align, size * bytes_of(value.type))
                self.write(f"store {part.typed}, {place.typed}, align {fits}")
                first += size

    def load_where(self, type: str, pointer: IRValue, mask: IRValue) -> IRValue:
        """Read the lanes of a vector for which a mask holds, the others being zero."""
        if scalar_of(type) == "i1":
            byte = self.load_where(vector_of("i8", lanes_of(type)), pointer, mask)
            return self.icmp("ne", byte, 0)
        return self._masked_load(type, pointer, bytes_of(type), mask)

    def _masked_load(self, type: str, pointer: IRValue, align: int, mask: IRValue) -> IRValue:
        name = f"llvm.masked.load.{suffix_of(type)}.p0"
        zeros = constant(type, 0)
        return self.call(name, type, pointer, constant("i32", align), mask, zeros, declare=True)

    def read_ahead(self, pointer: IRValue, size: int, ahead: int) -> None:
        """Ask for the cache lines of `size` bytes that lie so far ahead, existing or not."""
        for offset in range(ahead, ahead + size, CACHE_LINE):
            self.prefetch(self.gep_beyond(pointer, offset))

    def prefetch(self, pointer: IRValue, *, write: bool = False) -> None:
        """Ask for the cache line at an address."""
        arguments = [constant("i32", number) for number in (int(write), 3, 1)]
        self.call("llvm.prefetch.p0", "void", pointer, *arguments, declare=True)
