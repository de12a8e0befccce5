"""Write the functions of a library's runtime: C by another name, as LLVM IR.

f = module.routine("close", ["ptr"])
(instance,) = f.parameters
with f.leaving(f.is_null(instance)):
    f.ret()
f.c("free", f.word(instance, INSTANCE["arena"], "ptr"))
f.ret()
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..codegen.lines import Operand
from ..codegen.target import Target
from ..codegen.text import FunctionText, ModuleText
from ..codegen.values import IRValue, constant
from .records import REPORT, ErrorCode

NULL = IRValue("null", "ptr")

# Functions of C's library: what they return and take; `...` for those of any number of arguments.
C_FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "memcpy": ("ptr", ("ptr", "ptr", "i64")),
    "memcmp": ("i32", ("ptr", "ptr", "i64")),
    "memset": ("ptr", ("ptr", "i32", "i64")),
    "strcmp": ("i32", ("ptr", "ptr")),
    "strlen": ("i64", ("ptr",)),
    "strrchr": ("ptr", ("ptr", "i32")),
    "strerror": ("ptr", ("i32",)),
    "snprintf": ("i32", ("ptr", "i64", "ptr", "...")),
    "calloc": ("ptr", ("i64", "i64")),
    "posix_memalign": ("i32", ("ptr", "i64", "i64")),
    "free": ("void", ("ptr",)),
    "madvise": ("i32", ("ptr", "i64", "i32")),
    "open": ("i32", ("ptr", "i32", "...")),
    "close": ("i32", ("i32",)),
    "lseek": ("i64", ("i32", "i64", "i32")),
    "mmap": ("ptr", ("ptr", "i64", "i32", "i32", "i32", "i64")),
    "munmap": ("i32", ("ptr", "i64")),
    "fopen": ("ptr", ("ptr", "ptr")),
    "fwrite": ("i64", ("ptr", "i64", "i64", "ptr")),
    "fflush": ("i32", ("ptr",)),
    "fclose": ("i32", ("ptr",)),
    "remove": ("i32", ("ptr",)),
    "rename": ("i32", ("ptr", "ptr")),
    "getpid": ("i32", ()),
    "sysconf": ("i64", ("i32",)),
    "sched_yield": ("i32", ()),
    "clock_gettime": ("i32", ("i32", "ptr")),
    "__errno_location": ("ptr", ()),
    "dladdr": ("i32", ("ptr", "ptr")),
    "pthread_create": ("i32", ("ptr", "ptr", "ptr", "ptr")),
    "pthread_detach": ("i32", ("i64",)),
    "pthread_sigmask": ("i32", ("i32", "ptr", "ptr")),
}
# They were in libraries of their own before glibc 2.34: without them the library does with less.
OPTIONAL = ("dladdr", "pthread_create", "pthread_detach", "pthread_sigmask")


class Routine(FunctionText):
    """A function of the runtime under construction."""

    module: RuntimeModule

    @contextmanager
    def leaving(self, condition: IRValue) -> Iterator[None]:
        """Run a block that ends in `ret` if a condition holds; what follows is for the rest."""
        leave, stay = self.label("leave"), self.label("stay")
        self.branch_if(condition, leave, stay)
        self.block(leave)
        yield
        self.block(stay)

    @contextmanager
    def either(self, condition: IRValue) -> Iterator[Iterator[None]]:
        """Run a block if a condition holds, and another one, behind `next`, if it does not."""
        yes, no, done = self.label("yes"), self.label("no"), self.label("done")

        def parts() -> Iterator[None]:
            self.branch(done)
            self.block(no)
            yield

        self.branch_if(condition, yes, no)
        self.block(yes)
        yield parts()
        self.branch(done)
        self.block(done)

    def is_null(self, pointer: IRValue) -> IRValue:
        """Return whether a pointer is NULL."""
        return self.icmp("eq", self.number_of(pointer), 0)

    def word(self, record: IRValue, offset: Operand, type: str = "i64") -> IRValue:
        """Read a word, or the low part of one, so many bytes behind an address."""
        return self.load(type, self.gep(record, offset))

    def low(self, record: IRValue, offset: int) -> IRValue:
        """Read the low half of a word as a number of 64 bits."""
        return self.sext(self.word(record, offset, "i32"), "i64")

    def high(self, record: IRValue, offset: int) -> IRValue:
        """Read the high half of a word as a number of 64 bits."""
        return self.sext(self.word(record, offset + 4, "i32"), "i64")

    def put(self, record: IRValue, offset: Operand, value: IRValue) -> None:
        """Write a word so many bytes behind an address."""
        self.store(value, self.gep(record, offset))

    def item(self, table: IRValue, index: Operand, size: int) -> IRValue:
        """Return the address of a record of a table."""
        return self.gep(table, self.mul(self._like(index, "i64"), size))

    def minimum_of(self, a: IRValue, b: Operand) -> IRValue:
        """Return the lesser of two signed numbers."""
        return self.select(self.icmp("slt", a, b), a, b)

    def c(self, name: str, *arguments: IRValue) -> IRValue:
        """Call a function of C's library."""
        returns, types = self._declared(name)
        passed = ", ".join(argument.typed for argument in arguments)
        call = f"call {returns} ({', '.join(types)}) @{name}({passed})"
        if returns == "void":
            self.write(call)
            return IRValue("", "void")
        return self.define(returns, call)

    def c_address(self, name: str) -> IRValue:
        """Return the address of a function of C's library; NULL if there is none."""
        self._declared(name)
        return IRValue(f"@{name}", "ptr")

    def _declared(self, name: str) -> tuple[str, tuple[str, ...]]:
        returns, types = C_FUNCTIONS[name]
        weak = "extern_weak " if name in OPTIONAL else ""
        self.declarations[name] = f"declare {weak}{returns} @{name}({', '.join(types)})"
        return returns, types

    def text_constant(self, text: str) -> IRValue:
        """Return the address of a text."""
        return self.module.text_constant(text)

    def say(self, report: IRValue, message: str, *values: IRValue) -> None:
        """Write a message where the caller looks for it; `%s` and `%lld` stand for values."""
        where = self.word(report, REPORT["text"], "ptr")
        size = self.word(report, REPORT["text_bytes"])
        self.c("snprintf", where, size, self.text_constant(message), *values)

    def fail_if(
        self, condition: IRValue, report: IRValue, code: ErrorCode, message: str, *values: IRValue
    ) -> None:
        """Return an error with a message if a condition holds."""
        with self.leaving(condition):
            self.say(report, message, *values)
            self.ret(constant("i32", code))

    def pass_on(self, code: IRValue) -> None:
        """Return what another function returned, if that is an error."""
        with self.leaving(self.icmp("ne", code, 0)):
            self.ret(code)

    def system_error(self) -> IRValue:
        """Return the text of the system's last error."""
        return self.c("strerror", self.load("i32", self.c("__errno_location")))


class RuntimeModule(ModuleText):
    """The functions of a library's runtime; their public names begin with a prefix."""

    def __init__(self, target: Target, prefix: str) -> None:
        super().__init__(target)
        self.prefix = prefix
        self.exports: list[str] = []
        self._texts: dict[str, IRValue] = {}

    def routine(self, name: str, parameters: list[str], returns: str = "i32") -> Routine:
        """Start a function of the library's own."""
        made = Routine(self.target, name, parameters, returns)
        made.module = self
        made.sizes = self.sizes
        self._functions[name] = made
        return made

    def exported(self, name: str, parameters: list[str], returns: str = "i32") -> Routine:
        """Start a function that users call."""
        self.exports.append(f"{self.prefix}_{name}")
        return self.routine(self.exports[-1], parameters, returns)

    def text_constant(self, text: str) -> IRValue:
        """Return the address of a text, as C knows texts."""
        if text not in self._texts:
            name, content = f"text_{len(self._texts)}", [*text.encode(), 0]
            self._texts[text] = self.constant_array(name, "i8", content)
        return self._texts[text]

    def external(self, name: str) -> IRValue:
        """Return the address of data that another part of the library has."""
        self._globals[name] = f"@{name} = external global i8"
        return IRValue(f"@{name}", "ptr")

    @property
    def model(self) -> IRValue:
        """Return the address of the model's record."""
        return self.external("weft_model")
