"""Write lines of a function: name what they define, make constants, call functions.

Operands are values or plain numbers; a number takes the type of the operand beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....core.dim import Dim
from .sizes import TABLE, SizeTable
from .target import Target
from .values import (
    IRValue,
    constant,
    constants,
    lanes_of,
    scalar_of,
    suffix_of,
    with_element,
)

Operand = IRValue | float | Dim  # a Dim is a number that only a run knows
CALLED = "\0"  # stands around the name of a function, where its call may pass the table of sizes


class Lines:
    """A function's text, line by line; says what every instruction has in common."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.declarations: dict[str, str] = {}
        self.helpers: dict[str, str] = {}  # definitions that this function needs beside itself
        self.sizes = SizeTable()  # which the functions of a module share
        self.size_words: dict[int, IRValue] = {}  # of this function, by their numbers
        self.called: set[str] = set()  # functions that may be of the same module
        self._fresh = 0

    def write(self, line: str) -> None:
        """Append a line to the current block."""
        raise NotImplementedError

    def define(self, type: str, text: str) -> IRValue:
        """Append an instruction, given as text, and return its result."""
        name = f"%v{self._fresh}"
        self._fresh += 1
        self.write(f"{name} = {text}")
        return IRValue(name, type)

    def fresh(self, type: str) -> IRValue:
        """Return a name that is used nowhere else in this function."""
        self._fresh += 1
        return IRValue(f"%v{self._fresh - 1}", type)

    def constant(self, type: str, number: float | Dim) -> IRValue:
        """Return a number as a constant, the same in each lane; or a size that a run knows."""
        return self._like(number, type)

    def size(self, size: Dim) -> IRValue:
        """Return a size that only a run knows: a word that is read where the function begins."""
        number = self.sizes.number(size)
        return self.size_words.setdefault(number, IRValue(f"%size{number}", "i64"))

    def all_sizes(self) -> IRValue:
        """Return the address of the table that sizes are read from."""
        self.called.add(TABLE)
        return IRValue(TABLE, "ptr")

    def constants(self, type: str, numbers: Sequence[float]) -> IRValue:
        """Return a vector constant with a number for each lane."""
        return constants(type, list(numbers))

    def intrinsic(self, name: str, returns: str, *arguments: IRValue) -> IRValue:
        """Call `llvm.<name>` overloaded by its result type, declaring it."""
        return self.call(f"llvm.{name}.{suffix_of(returns)}", returns, *arguments, declare=True)

    def call(self, name: str, returns: str, *arguments: IRValue, declare: bool = False) -> IRValue:
        """Call a function; with `declare`, one that this module does not define."""
        if declare:
            types = ", ".join(a.type for a in arguments)
            self.declarations[name] = f"declare {returns} @{name}({types})"
        further = "" if declare else f"{CALLED}{name}{CALLED}"
        self.called.add(name)
        call = f"call {returns} @{name}({', '.join(a.typed for a in arguments)}{further})"
        if returns == "void":
            self.write(call)
            return IRValue("", "void")
        return self.define(returns, call)

    def hidden(self, x: IRValue) -> IRValue:
        """Return an integer unchanged, as a number that LLVM knows nothing of; costs nothing."""
        return self.define(x.type, f'call {x.type} asm "", "=r,0"({x.typed})')

    def _like(self, x: Operand, type: str) -> IRValue:
        if isinstance(x, IRValue):
            return x
        if not isinstance(x, Dim):
            return constant(type, x)
        if scalar_of(type) != "i64":
            raise TypeError(f"the size {x} is a number of 64 bits, not of type {type}")
        return self._in_lanes(self.size(x), lanes_of(type))

    def _in_lanes(self, x: IRValue, lanes: int) -> IRValue:
        """Return a number in each lane."""
        raise NotImplementedError

    def _same(self, *operands: Operand) -> tuple[IRValue, ...]:
        """Return the operands with plain numbers made constants of the others' type."""
        types = {x.type for x in operands if isinstance(x, IRValue)}
        if len(types) != 1:
            raise TypeError(
                f"operands need one common type; got {[str(x) for x in operands]} of {types}"
            )
        (type,) = types
        return tuple(self._like(x, type) for x in operands)

    def _pair(self, a: Operand, b: Operand) -> tuple[IRValue, IRValue]:
        """Return two operands of one type; a plain number becomes a constant of the other's."""
        if isinstance(a, IRValue):
            if not isinstance(b, IRValue):
                return a, self._like(b, a.type)
            if a.type == b.type:
                return a, b
        one, other = self._same(a, b)
        return one, other

    def _binary(self, name: str, a: Operand, b: Operand, flags: str = "") -> IRValue:
        a, b = self._pair(a, b)
        opcode = f"{name} {flags}" if flags else name
        return self.define(a.type, f"{opcode} {a.typed}, {b}")

    def _compare(self, name: str, predicate: str, a: Operand, b: Operand) -> IRValue:
        a, b = self._pair(a, b)
        return self.define(with_element(a.type, "i1"), f"{name} {predicate} {a.typed}, {b}")

    def _cast(self, name: str, x: IRValue, element: str) -> IRValue:
        type = with_element(x.type, element)
        return self.define(type, f"{name} {x.typed} to {type}")
