"""Write random bits: Philox4x64-10, the same words as core/rng.py makes.

A draw is a row of lanes, of 32 or 64 bits, eight or four to a block of the generator. A vector of
neighbouring lanes takes one block, or two where it does not start at a block's begin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....core.rng import KEY_STEPS, MULTIPLIERS, ROUNDS
from ....core.scalar.builder import Expr
from .text import FunctionText
from .values import IRValue, element_of, vector_of

if TYPE_CHECKING:
    from .placed import Turn

PHILOX = "weft_philox"
BLOCK_BYTES = 32


def write_random(expr: Expr, turn: Turn) -> IRValue:
    """Return the lanes of a draw at the places of a vector of elements."""
    f = turn.f
    f.adopt(_philox(f))
    element = element_of(expr.dtype)
    state = [f.extract(word, 0) for word in turn.args[:3]]
    if turn.lanes == 1:
        return _lane(f, state, turn.args[3], element)
    if _is_in_sequence(expr, turn):
        return _neighbours(f, state, turn.args[3], element, turn.lanes)
    result = f.constant(vector_of(element, turn.lanes), 0)
    places = turn.spread(turn.args[3])
    for lane in range(turn.lanes):
        found = _lane(f, state, f.extract(places, lane), element)
        result = f.insert(result, found, lane)
    return result


def _is_in_sequence(expr: Expr, turn: Turn) -> bool:
    place = expr.args[3]
    return place.kind == "iota" and turn.writer.kernel.iotas[place.data][-1] == 1


def _lane(f: FunctionText, state: list[IRValue], place: IRValue, element: str) -> IRValue:
    per_block = _per_block(element)
    words = f.alloca("i64", 4)
    _block(f, state, f.lshr(place, per_block.bit_length() - 1), words)
    return f.load(element, f.gep(words, f.and_(place, per_block - 1), element))


def _neighbours(
    f: FunctionText, state: list[IRValue], places: IRValue, element: str, lanes: int
) -> IRValue:
    per_block = _per_block(element)
    whole = -(-lanes // per_block)
    words = f.alloca("i64", 4 * (whole + 1))
    first = f.extract(places, 0)
    block = f.lshr(first, per_block.bit_length() - 1)
    within = f.and_(first, per_block - 1)
    for k in range(whole):
        _block(f, state, f.add(block, k), f.gep(words, k * BLOCK_BYTES))
    with f.when(f.icmp("ugt", f.add(within, lanes), whole * per_block)):
        _block(f, state, f.add(block, whole), f.gep(words, whole * BLOCK_BYTES))
    return f.load(vector_of(element, lanes), f.gep(words, within, element))


def _per_block(element: str) -> int:
    return 8 if element == "i32" else 4


def _block(f: FunctionText, state: list[IRValue], block: IRValue, words: IRValue) -> None:
    low, high, counter = state
    f.call(PHILOX, "void", low, high, f.add(counter, block), words)


def _philox(caller: FunctionText) -> FunctionText:
    """Return the function that writes the four words of a block."""
    parameters = ["i64", "i64", "i64", "ptr"]
    f = FunctionText(caller.target, PHILOX, parameters, linkage="internal")
    *key, first, words = f.parameters
    zero = f.constant("i64", 0)
    c: list[IRValue] = [first, zero, zero, zero]
    for number in range(ROUNDS):
        high0, low0 = _product(f, c[0], MULTIPLIERS[0])
        high1, low1 = _product(f, c[2], MULTIPLIERS[1])
        k0, k1 = (f.add(k, _signed(number * step)) for k, step in zip(key, KEY_STEPS, strict=True))
        c = [f.xor(f.xor(high1, c[1]), k0), low1, f.xor(f.xor(high0, c[3]), k1), low0]
    for i, word in enumerate(c):
        f.store(word, f.gep(words, i, "i64"))
    f.ret()
    return f


def _product(f: FunctionText, x: IRValue, factor: int) -> tuple[IRValue, IRValue]:
    """Return the upper and the lower word of a product."""
    wide = f.mul(f.zext(x, "i128"), factor)
    return f.trunc(f.lshr(wide, 64), "i64"), f.trunc(wide, "i64")


def _signed(number: int) -> int:
    low = number & (2**64 - 1)
    return low - 2**64 if low >> 63 else low
