"""Write straight-line instructions: arithmetic, comparisons, casts, lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .lines import Lines, Operand
from .values import (
    IRValue,
    bits_of,
    bytes_of,
    constants,
    is_float,
    lanes_of,
    scalar_of,
    vector_of,
    with_element,
)

Combine = Callable[[IRValue, IRValue], IRValue]
MASKS_IN_VECTORS = 32  # bytes of vectors; machines with longer ones have registers for masks


class Instructions(Lines):
    """One method per instruction; each appends a line and returns the value it defines.

    has_blocks   whether text goes from block to block; else what is seldom needed is a call
    """

    has_blocks = True

    def huge_angle(
        self, x: IRValue, huge: IRValue, r: IRValue, quadrant: IRValue
    ) -> tuple[IRValue, IRValue]:
        """Return x modulo pi/2 and which multiple that is, as given where it is not huge."""
        raise NotImplementedError

    def long_division(self, long: IRValue, a: IRValue, b: IRValue, rest: IRValue) -> IRValue:
        """Return what a division leaves, as given where the quotient is not long."""
        raise NotImplementedError

    # Lanes

    def _in_lanes(self, x: IRValue, lanes: int) -> IRValue:
        return self.splat(x, lanes)

    def splat(self, x: IRValue, lanes: int) -> IRValue:
        """Return a vector with `x` in each lane (`x` itself for one lane)."""
        if lanes == 1:
            return x
        type = vector_of(x.type, lanes)
        first = self.define(type, f"insertelement {type} poison, {x.typed}, i32 0")
        mask = f"<{lanes} x i32> zeroinitializer"
        return self.define(type, f"shufflevector {first.typed}, {type} poison, {mask}")

    def shuffle(self, a: IRValue, b: IRValue, order: Sequence[int]) -> IRValue:
        """Return the lanes `order` of `a` followed by `b`."""
        picks = constants(f"<{len(order)} x i32>", list(order)) if len(order) > 1 else None
        mask = picks.typed if picks else f"<1 x i32> <i32 {order[0]}>"
        type = f"<{len(order)} x {scalar_of(a.type)}>"
        return self.define(type, f"shufflevector {a.typed}, {b.typed}, {mask}")

    def extract(self, x: IRValue, lane: int | IRValue) -> IRValue:
        """Return one lane (the value itself if it is a scalar)."""
        if lanes_of(x.type) == 1 and x.type == scalar_of(x.type):
            return x
        index = lane.typed if isinstance(lane, IRValue) else f"i32 {lane}"
        return self.define(scalar_of(x.type), f"extractelement {x.typed}, {index}")

    def insert(self, x: IRValue, element: Operand, lane: int | IRValue) -> IRValue:
        """Return `x` with one lane replaced."""
        index = lane.typed if isinstance(lane, IRValue) else f"i32 {lane}"
        new = self._like(element, scalar_of(x.type))
        return self.define(x.type, f"insertelement {x.typed}, {new.typed}, {index}")

    def lane_numbers(self, type: str) -> IRValue:
        """Return the constant 0, 1, 2, ... of a vector type."""
        return constants(type, list(range(lanes_of(type))))

    def first_lanes(self, count: Operand, lanes: int, bits: int = 32) -> IRValue:
        """Return the mask of the first `count` lanes; `bits` is the width of what it will mask."""
        type = vector_of(f"i{max(32, bits)}", lanes)
        wanted = self._like(count, "i64")
        limit = self.splat(self.integer_cast(wanted, scalar_of(type)), lanes)
        return self.icmp("slt", self.lane_numbers(type), limit)

    def reduce(self, x: IRValue, combine: Combine, left: int = 1) -> IRValue:
        """Combine lanes, halves with halves, until so many are left: always in the same order."""
        lanes = lanes_of(x.type)
        if lanes & (lanes - 1):
            raise ValueError(f"reduce needs a power of two of lanes; got {x.type}")
        while lanes > left:
            lanes //= 2
            if lanes == 1:
                return combine(self.extract(x, 0), self.extract(x, 1))
            low = self.shuffle(x, x, range(lanes))
            high = self.shuffle(x, x, range(lanes, 2 * lanes))
            x = combine(low, high)
        return x if left > 1 else self.extract(x, 0)

    # Floating-point arithmetic

    def fadd(self, a: Operand, b: Operand, flags: str = "") -> IRValue:
        """Return a + b."""
        return self._binary("fadd", a, b, flags)

    def fsub(self, a: Operand, b: Operand, flags: str = "") -> IRValue:
        """Return a - b."""
        return self._binary("fsub", a, b, flags)

    def fmul(self, a: Operand, b: Operand, flags: str = "") -> IRValue:
        """Return a * b."""
        return self._binary("fmul", a, b, flags)

    def fdiv(self, a: Operand, b: Operand, flags: str = "") -> IRValue:
        """Return a / b."""
        return self._binary("fdiv", a, b, flags)

    def fneg(self, x: IRValue) -> IRValue:
        """Return -x."""
        return self.define(x.type, f"fneg {x.typed}")

    def fma(self, a: Operand, b: Operand, c: Operand) -> IRValue:
        """Return a * b + c rounded once; a library call where the machine lacks it."""
        a, b, c = self._same(a, b, c)
        return self.intrinsic("fma", a.type, a, b, c)

    def multiply_add(self, a: Operand, b: Operand, c: Operand) -> IRValue:
        """Return a * b + c, rounded once where that is fast and twice elsewhere."""
        if self.target.has_fma:
            return self.fma(a, b, c)
        return self.fadd(self.fmul(a, b), c)

    def fabs(self, x: IRValue) -> IRValue:
        """Return |x|."""
        return self.intrinsic("fabs", x.type, x)

    def copysign(self, magnitude: Operand, sign: Operand) -> IRValue:
        """Return `magnitude` with the sign of `sign`."""
        magnitude, sign = self._same(magnitude, sign)
        return self.intrinsic("copysign", sign.type, magnitude, sign)

    def sqrt(self, x: IRValue) -> IRValue:
        """Return the square root, correctly rounded."""
        return self.intrinsic("sqrt", x.type, x)

    def maximum(self, a: Operand, b: Operand) -> IRValue:
        """Return the larger one, or NaN if either is NaN, as np.maximum does."""
        return self._extremum("maximum", "ogt", "sgt", a, b)

    def minimum(self, a: Operand, b: Operand) -> IRValue:
        """Return the smaller one, or NaN if either is NaN, as np.minimum does."""
        return self._extremum("minimum", "olt", "slt", a, b)

    def fmax(self, a: Operand, b: Operand) -> IRValue:
        """Return the larger one, ignoring a NaN, as np.fmax does."""
        a, b = self._same(a, b)
        return self.intrinsic("maxnum", a.type, a, b)

    def fmin(self, a: Operand, b: Operand) -> IRValue:
        """Return the smaller one, ignoring a NaN, as np.fmin does."""
        a, b = self._same(a, b)
        return self.intrinsic("minnum", a.type, a, b)

    def clamp(self, x: IRValue, low: Operand, high: Operand) -> IRValue:
        """Return x held within [low, high]; a NaN stays NaN. One instruction a side on x86."""
        raised = self.select(self.fcmp("ogt", low, x), low, x)
        return self.select(self.fcmp("olt", high, raised), high, raised)

    def unsigned_maximum(self, a: Operand, b: Operand) -> IRValue:
        """Return the larger of two unsigned integers."""
        return self.select(self.icmp("ugt", a, b), a, b)

    def unsigned_minimum(self, a: Operand, b: Operand) -> IRValue:
        """Return the smaller of two unsigned integers."""
        return self.select(self.icmp("ult", a, b), a, b)

    def _extremum(self, name: str, better: str, signed: str, a: Operand, b: Operand) -> IRValue:
        a, b = self._same(a, b)
        if not is_float(a.type):
            return self.select(self.icmp(signed, a, b), a, b)
        if self.target.architecture == "aarch64":
            return self.intrinsic(name, a.type, a, b)
        # `a > b ? a : b` is x86's own maximum, which gives b for a NaN: then a NaN a remains.
        best = self.select(self.fcmp(better, a, b), a, b)
        return self.select(self.fcmp("uno", a, a), a, best)

    # Integer arithmetic

    def add(self, a: Operand, b: Operand, flags: str = "") -> IRValue:
        """Return a + b, wrapping round."""
        return self._binary("add", a, b, flags)

    def sub(self, a: Operand, b: Operand, flags: str = "") -> IRValue:
        """Return a - b, wrapping round."""
        return self._binary("sub", a, b, flags)

    def mul(self, a: Operand, b: Operand, flags: str = "") -> IRValue:
        """Return a * b, wrapping round."""
        return self._binary("mul", a, b, flags)

    def sdiv(self, a: Operand, b: Operand) -> IRValue:
        """Return the signed quotient cut towards zero; b must not be 0."""
        return self._binary("sdiv", a, b)

    def udiv(self, a: Operand, b: Operand) -> IRValue:
        """Return the unsigned quotient; b must not be 0."""
        return self._binary("udiv", a, b)

    def srem(self, a: Operand, b: Operand) -> IRValue:
        """Return the signed remainder of `sdiv`."""
        return self._binary("srem", a, b)

    def urem(self, a: Operand, b: Operand) -> IRValue:
        """Return the unsigned remainder."""
        return self._binary("urem", a, b)

    def and_(self, a: Operand, b: Operand) -> IRValue:
        """Return a & b."""
        return self._binary("and", a, b)

    def or_(self, a: Operand, b: Operand) -> IRValue:
        """Return a | b."""
        return self._binary("or", a, b)

    def xor(self, a: Operand, b: Operand) -> IRValue:
        """Return a ^ b."""
        return self._binary("xor", a, b)

    def not_(self, x: IRValue) -> IRValue:
        """Return ~x; of a mask, the other lanes."""
        return self.xor(x, -1 if scalar_of(x.type) != "i1" else 1)

    def shl(self, a: Operand, b: Operand) -> IRValue:
        """Return a << b."""
        return self._binary("shl", a, b)

    def lshr(self, a: Operand, b: Operand) -> IRValue:
        """Return a >> b, zeros moving in."""
        return self._binary("lshr", a, b)

    def ashr(self, a: Operand, b: Operand) -> IRValue:
        """Return a >> b, the sign moving in."""
        return self._binary("ashr", a, b)

    # Comparisons

    def fcmp(self, predicate: str, a: Operand, b: Operand) -> IRValue:
        """Compare floats; predicates `oeq olt ...` are false and `une ult ...` true for NaN."""
        return self._compare("fcmp", predicate, a, b)

    def icmp(self, predicate: str, a: Operand, b: Operand) -> IRValue:
        """Compare integers: `eq ne slt sle sgt sge ult ule ugt uge`."""
        return self._compare("icmp", predicate, a, b)

    def select(self, mask: IRValue, a: Operand, b: Operand) -> IRValue:
        """Return a where the mask holds, b elsewhere."""
        a, b = self._same(a, b)
        return self.define(a.type, f"select {mask.typed}, {a.typed}, {b.typed}")

    def any_lane(self, mask: IRValue, bits: int = 32) -> IRValue:
        """Return whether a mask holds in at least one lane, as `i1`.

        `bits` is the width of what was compared. Where masks lie in vectors, these are joined in
        that width: packing them into bits first takes more.
        """
        if mask.type == "i1":
            return mask
        lanes = 8 * self.target.vector_bytes // bits
        if lanes_of(mask.type) > lanes > 1 and self.target.vector_bytes <= MASKS_IN_VECTORS:
            joined = self.reduce(self.sext(mask, f"i{bits}"), self.or_, lanes)
            mask = self.icmp("slt", joined, 0)
        return self.icmp("ne", self.bitcast(mask, f"i{lanes_of(mask.type)}"), 0)

    # Casts: `element` is the scalar type wanted; the lanes stay

    def bitcast(self, x: IRValue, type: str) -> IRValue:
        """Return the same bits as another whole type."""
        return x if x.type == type else self.define(type, f"bitcast {x.typed} to {type}")

    def as_integer(self, x: IRValue) -> IRValue:
        """Return the bits of floats as integers of the same width."""
        return self.bitcast(x, with_element(x.type, f"i{bits_of(x.type)}"))

    def as_float(self, x: IRValue) -> IRValue:
        """Return integers as the float32 or float64 of those bits."""
        return self.bitcast(x, with_element(x.type, {32: "float", 64: "double"}[bits_of(x.type)]))

    def fptrunc(self, x: IRValue, element: str) -> IRValue:
        """Return floats rounded to a narrower type."""
        return self._cast("fptrunc", x, element)

    def fpext(self, x: IRValue, element: str) -> IRValue:
        """Return floats in a wider type."""
        return self._cast("fpext", x, element)

    def float_cast(self, x: IRValue, element: str) -> IRValue:
        """Return float32 or float64 as either of them."""
        if element == scalar_of(x.type):
            return x
        return self._cast("fpext" if element == "double" else "fptrunc", x, element)

    def rounded_to_odd(self, x: IRValue) -> IRValue:
        """Return float64 as a float32 from which rounding to fewer bits gives the same as from x.

        What is cut off leaves its mark in the last bit (Boldo & Melquiond 2008); machines convert
        float64 to halves only through float32, which would round twice.
        """
        near = self.fptrunc(x, "float")
        back = self.fpext(near, "double")
        bits = self.as_integer(near)
        beyond = self.fcmp("ogt", self.fabs(back), self.fabs(x))
        inward = self.select(beyond, self.sub(bits, 1), bits)
        return self.as_float(self.select(self.fcmp("one", back, x), self.or_(inward, 1), bits))

    def sitofp(self, x: IRValue, element: str) -> IRValue:
        """Return signed integers as floats."""
        return self._cast("sitofp", x, element)

    def uitofp(self, x: IRValue, element: str) -> IRValue:
        """Return unsigned integers (or a mask) as floats."""
        return self._cast("uitofp", x, element)

    def fptosi(self, x: IRValue, element: str, *, checked: bool = True) -> IRValue:
        """Return floats cut to signed integers.

        What does not fit, and NaN, gives the least integer of 32 or 64 bits (then cut to narrower
        ones), which is what NumPy gives on x86. Unchecked is faster and for values known to fit.
        """
        wide = "i64" if bits_of(element) == 64 else "i32"
        if not checked:
            return self._cast("fptosi", x, element)
        least = -float(2 ** (bits_of(wide) - 1))
        fits = self.and_(self.fcmp("oge", x, least), self.fcmp("olt", x, -least))
        cut = self._cast("fptosi", self.select(fits, x, 0.0), wide)
        return self.integer_cast(self.select(fits, cut, int(least)), element)

    def fptoui(self, x: IRValue, element: str) -> IRValue:
        """Return floats cut to unsigned integers; negative ones wrap as NumPy's do on x86."""
        if bits_of(element) < 32:
            return self.fptosi(x, element)
        middle = 2.0 ** (bits_of(element) - 1)
        high = self.fcmp("oge", x, middle)
        offset = self.select(high, self._like(middle, x.type), 0.0)
        lowered = self.fptosi(self.fsub(x, offset), element)
        return self.select(high, self.xor(lowered, -int(middle)), lowered)

    def zext(self, x: IRValue, element: str) -> IRValue:
        """Return unsigned integers (or a mask) in a wider type."""
        return self._cast("zext", x, element)

    def sext(self, x: IRValue, element: str) -> IRValue:
        """Return signed integers in a wider type."""
        return self._cast("sext", x, element)

    def trunc(self, x: IRValue, element: str) -> IRValue:
        """Return the low bits of integers."""
        return self._cast("trunc", x, element)

    def integer_cast(self, x: IRValue, element: str, *, signed: bool = True) -> IRValue:
        """Return integers in another width."""
        if bits_of(element) == bits_of(x.type):
            return x
        wider = "sext" if signed else "zext"
        return self._cast(wider if bits_of(element) > bits_of(x.type) else "trunc", x, element)


def bytes_of_vector(type: str) -> int:
    """Return the size of a whole value in memory."""
    return bytes_of(type) * lanes_of(type)
