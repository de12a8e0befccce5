"""Write LLVM IR as text: functions of basic blocks, and modules of functions.

No native code is needed to build text, so kernels are tested as strings.

    module = ModuleText(host())
    f = module.function("scale", ["ptr noalias", "ptr noalias", "i64", "float"])
    x, y, n, factor = f.parameters
    lanes = f.target.lanes("float32")
    type = vector_of("float", lanes)
    scale = f.splat(factor, lanes)

    def body(i, count):  # count is None for whole vectors, else the lanes that remain
        value = f.load(type, f.gep(x, i, "float"), count=count)
        f.store(f.fmul(value, scale), f.gep(y, i, "float"), count=count)

    f.each_vector(n, lanes, body)
    f.ret()
    print(module.text())

A loop with carried values (here the sum of n elements) and its results:

    with f.loop(0, n, 1, carry=[f.constant("float", 0.0)]) as i:
        (total,) = i.carried
        i.next(f.fadd(total, f.load("float", f.gep(x, i, "float"))))
    (total,) = i.results
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ....core.dim import known_size
from .lines import CALLED, Operand
from .memory import MemoryInstructions
from .sizes import TABLE, SizeTable
from .target import Target
from .values import IRValue, bits_of, constant, is_constant

QUICK = "; to be made quickly: it only calls other code\n"  # the first line of a module

VectorBody = Callable[[IRValue, IRValue | None], None]


class Phi(IRValue):
    """A value that depends on the block control came from; `incoming` may be added later."""

    __slots__ = ("_incoming",)
    _incoming: list[tuple[IRValue, str]]

    def incoming(self, value: IRValue, block: str) -> None:
        """Say what the value is when control comes from a block."""
        if value.type != self.type:
            raise TypeError(f"phi of type {self.type} got {value.typed}")
        self._incoming.append((value, block))

    def line(self) -> str:
        """Return the instruction."""
        pairs = ", ".join(f"[ {value}, %{block} ]" for value, block in self._incoming)
        return f"{self} = phi {self.type} {pairs}"


class LoopIndex(IRValue):
    """The index of a loop, with the values it carries from turn to turn."""

    __slots__ = ("_next", "carried", "results")
    carried: tuple[IRValue, ...]
    results: tuple[IRValue, ...]
    _next: tuple[IRValue, ...]

    def next(self, *values: IRValue) -> None:
        """Set what the carried values are in the next turn."""
        if [v.type for v in values] != [c.type for c in self.carried]:
            raise TypeError(
                f"the loop carries {[c.type for c in self.carried]}; got {[v.type for v in values]}"
            )
        self._next = values


class FunctionText(MemoryInstructions):
    """One function under construction; instructions go to the current block."""

    def __init__(
        self,
        target: Target,
        name: str,
        parameters: Sequence[str],
        returns: str = "void",
        attributes: str = "nounwind",
        linkage: str = "",
    ) -> None:
        super().__init__(target)
        self.name = name
        self.linkage = linkage
        self.returns = returns
        self._attributes = attributes
        self._parameters = list(parameters)
        self.parameters = tuple(
            IRValue(f"%p{k}", _type_of_parameter(spelled)) for k, spelled in enumerate(parameters)
        )
        self._blocks: dict[str, list[str | Phi]] = {"entry": []}
        self._allocations: list[str] = []
        self.table_from: list[str] = []  # how the table of sizes is found, if it is no parameter
        self._labels = 0
        self.current = "entry"

    def write(self, line: str) -> None:
        """Append a line to the current block."""
        self._blocks[self.current].append(line)

    def adopt(self, helper: FunctionText) -> None:
        """Bring another function, and all it needs, into every module that holds this one."""
        self.helpers |= {**helper.helpers, helper.name: helper.text()}
        self.declarations |= helper.declarations

    # Blocks and branches

    def label(self, hint: str = "block") -> str:
        """Return a block name that is used nowhere else in this function."""
        self._labels += 1
        return f"{hint}.{self._labels}"

    def block(self, label: str) -> str:
        """Start a block; what follows is written to it."""
        if label in self._blocks:
            raise ValueError(f"function {self.name} has a block {label} already")
        self._blocks[label] = []
        self.current = label
        return label

    def branch(self, label: str) -> None:
        """End the block by going to another."""
        self.write(f"br label %{label}")

    def branch_if(self, condition: IRValue, then: str, otherwise: str) -> None:
        """End the block by going to one of two others."""
        self.write(f"br {condition.typed}, label %{then}, label %{otherwise}")

    def ret(self, value: IRValue | None = None) -> None:
        """End the function."""
        self.write(f"ret {value.typed}" if value is not None else "ret void")

    def phi(self, type: str, *incoming: tuple[IRValue, str]) -> Phi:
        """Start the block with a value that depends on where control came from."""
        phi = Phi(self.fresh(type), type)
        phi._incoming = list(incoming)
        self._blocks[self.current].append(phi)
        return phi

    @contextmanager
    def loop(
        self, start: Operand, stop: Operand, step: Operand, *, carry: Sequence[IRValue] = ()
    ) -> Iterator[LoopIndex]:
        """Run a block for i = start, start + step, ... while i < stop (signed, of 64 bits)."""
        start, stop, step = (self._like(x, "i64") for x in (start, stop, step))
        body, done = self.label("loop"), self.label("done")
        before = self.current
        certain = _is_less(start, stop)  # a loop that surely runs once needs no test before it
        if certain:
            self.branch(body)
        else:
            self.branch_if(self.icmp("slt", start, stop), body, done)
        self.block(body)
        index = self.phi("i64", (start, before))
        carried = [self.phi(value.type, (value, before)) for value in carry]
        turn = LoopIndex(index, "i64")
        turn.carried = turn._next = tuple(carried)
        yield turn
        following = self.add(index, step, "nsw")
        last = self.current
        self.branch_if(self.icmp("slt", following, stop), body, done)
        for phi, value in zip([index, *carried], [following, *turn._next], strict=True):
            phi.incoming(value, last)
        self.block(done)
        ends = [(value, self.phi(value.type, (value, last))) for value in turn._next]
        for initial, (_, result) in zip(carry, ends, strict=True):
            if not certain:
                result.incoming(initial, before)
        turn.results = tuple(result for _, result in ends)

    @contextmanager
    def when(self, condition: IRValue) -> Iterator[None]:
        """Run a block only if a condition holds."""
        then, done = self.label("then"), self.label("done")
        self.branch_if(condition, then, done)
        self.block(then)
        yield
        self.branch(done)
        self.block(done)

    def replaced_where(
        self, rare: IRValue, usual: IRValue, write: Callable[[], IRValue]
    ) -> IRValue:
        """Return `usual`, or, if a mask holds in some lane, what `write` writes in its place.

        The other way is a branch, taken for all lanes.
        """
        before = self.current
        other, done = self.label("rare"), self.label("done")
        self.branch_if(self.any_lane(rare, bits_of(usual.type)), other, done)
        self.block(other)
        value = write()
        after = self.current
        self.branch(done)
        self.block(done)
        return self.phi(usual.type, (usual, before), (value, after))

    def each_vector(self, count: Operand, lanes: int, body: VectorBody) -> None:
        """Call `body(i, None)` in a loop over whole vectors, then `body(i, rest)` for the tail.

        The body is written twice; for the tail it masks its loads and stores by `count=rest`.
        """
        total = self._like(count, "i64")
        whole = self.and_(total, -lanes) if lanes & (lanes - 1) == 0 else None
        if whole is None:
            whole = self.sub(total, self.srem(total, lanes))
        with self.loop(0, whole, lanes) as i:
            body(i, None)
        if lanes > 1:
            rest = self.sub(total, whole)
            with self.when(self.icmp("sgt", rest, 0)):
                body(whole, rest)

    def alloca(self, type: str, count: int = 1, align: int = 64) -> IRValue:
        """Return memory on the stack that lives until the function returns."""
        count = known_size(count, "memory on the stack")
        name = self.fresh("ptr")
        self._allocations.append(f"{name} = alloca {type}, i64 {count}, align {align}")
        return name

    def text(self, sized: Collection[str] = ()) -> str:
        """Return the definition of the function; `sized` are functions that take sizes."""
        pairs = zip(self._parameters, self.parameters, strict=True)
        taken = [f"{spelled} {value}" for spelled, value in pairs]
        if self.name in sized and not self.table_from:
            taken.append(f"ptr noalias readonly {TABLE}")
        parameters = ", ".join(taken)
        linkage = f"{self.linkage} " if self.linkage else ""
        head = f"define {linkage}{self.returns} @{self.name}({parameters}) {self._attributes} {{"
        lines = [head]
        for label, block in self._blocks.items():
            lines.append(f"{label}:")
            begins = self._beginning(sized) if label == "entry" else []
            lines += [f"  {line}" for line in begins]
            lines += [f"  {line.line() if isinstance(line, Phi) else line}" for line in block]
        return _with_tables("\n".join([*lines, "}"]), sized)

    def _beginning(self, sized: Collection[str]) -> list[str]:
        """Return what comes before all else: memory on the stack, and words that hold sizes."""
        lines = [*self._allocations, *(self.table_from if self.name in sized else ())]
        for number, word in self.size_words.items():
            lines.append(f"{word}.at = getelementptr inbounds i64, ptr {TABLE}, i64 {number}")
            lines.append(f"{word} = load i64, ptr {word}.at, align 8, !invariant.load !{{}}")
        return lines


class ModuleText:
    """Several functions with what they need from elsewhere, as the text of one LLVM module.

    quick   whether it takes longer to optimise its code than ever to run it
    """

    def __init__(self, target: Target, name: str = "weft", *, quick: bool = False) -> None:
        self.target = target
        self.name = name
        self.quick = quick
        self.sizes = SizeTable()
        self.plan: Any = None  # how words are found that are no sizes, for whoever wrote them
        self._functions: dict[str, FunctionText] = {}
        self._declarations: dict[str, str] = {}
        self._globals: dict[str, str] = {}

    def function(
        self,
        name: str,
        parameters: Sequence[str],
        returns: str = "void",
        attributes: str = "nounwind",
    ) -> FunctionText:
        """Start a function; a parameter is a type and its attributes, as `ptr noalias`."""
        if name in self._functions:
            raise ValueError(f"module {self.name} has a function {name} already")
        function = FunctionText(self.target, name, parameters, returns, attributes)
        function.sizes = self.sizes
        self._functions[name] = function
        return function

    @property
    def functions(self) -> int:
        """Return how many functions there are so far."""
        return len(self._functions)

    def declare(self, name: str, parameters: Sequence[str], returns: str = "void") -> None:
        """Name a function that is defined elsewhere."""
        self._declarations[name] = f"declare {returns} @{name}({', '.join(parameters)})"

    def constant_array(self, name: str, element: str, numbers: Sequence[float]) -> IRValue:
        """Add a read-only table aligned to 64 bytes and return its address."""
        self._globals[name] = table_text(name, element, numbers)
        return IRValue(f"@{name}", "ptr")

    @property
    def sized(self) -> set[str]:
        """Return the functions that read sizes from the table, themselves or by what they call."""
        found = {n for n, f in self._functions.items() if f.size_words or TABLE in f.called}
        while True:
            more = {n for n, f in self._functions.items() if not found.isdisjoint(f.called)}
            if more <= found:
                return found
            found |= more

    def text(self) -> str:
        """Return the module: the same text for the same calls, in any process."""
        declarations = dict(self._declarations)
        helpers: dict[str, str] = {}
        for function in self._functions.values():
            declarations |= function.declarations
            helpers |= function.helpers
        sized = self.sized
        defined = {**helpers, **{name: f.text(sized) for name, f in self._functions.items()}}
        missing = [line for name, line in sorted(declarations.items()) if name not in defined]
        head = f'{QUICK * self.quick}target triple = "{self.target.triple}"'
        return "\n\n".join([head, *self._globals.values(), *defined.values(), *missing]) + "\n"


def _with_tables(text: str, sized: Collection[str]) -> str:
    """Return the text of a function whose calls pass the table of sizes to those that take it."""
    parts = text.split(CALLED)
    for i in range(1, len(parts), 2):
        comma = "" if parts[i - 1].endswith("(") else ", "
        parts[i] = f"{comma}ptr {TABLE}" if parts[i] in sized else ""
    return "".join(parts)


def _type_of_parameter(spelled: str) -> str:
    """Return the type without the attributes that may follow it."""
    end = spelled.find(">") + 1 if spelled.startswith("<") else spelled.find(" ")
    return spelled if end == -1 else spelled[:end]


def _is_less(a: IRValue, b: IRValue) -> bool:
    """Whether two constants are known to be in order."""
    return is_constant(a) and is_constant(b) and int(a) < int(b)


def table_text(name: str, element: str, numbers: Sequence[float]) -> str:
    """Return the definition of a read-only table, aligned to 64 bytes."""
    values = ", ".join(constant(element, number).typed for number in numbers)
    type = f"[{len(numbers)} x {element}]"
    return f"@{name} = private unnamed_addr constant {type} [{values}], align 64"
