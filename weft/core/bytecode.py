"""What a call looks like in the caller's source, read from its bytecode: operands and result.

`written_at(code)` follows the evaluation stack through a code object and tells, for each call and
each item assignment, the expression that the receiver was computed by: `x[0]`, `w.detach()`. It
needs no source text, so it works for functions typed at a prompt. Whatever it does not know (an
instruction of a later Python, paths that meet with different values) is None: unknown, never wrong.
`use_of_result(code, offset)` tells how the result of one call is taken apart.
`steps(code)` tells a tracer which instruction a frame comes to, `stack_depths(code)` how many
values are on its stack then.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple


class Name(NamedTuple):
    """A variable: local, global or of an enclosing function."""

    name: str

    def __str__(self) -> str:
        return self.name


class LiteralExpression(NamedTuple):
    """A constant of the program."""

    value: Any

    def __str__(self) -> str:
        if isinstance(self.value, slice):  # a constant from 3.14 on
            parts = (self.value.start, self.value.stop, self.value.step)
            return ":".join("" if part is None else repr(part) for part in parts).removesuffix(":")
        return repr(self.value)


class AttributeExpression(NamedTuple):
    """`owner.name`."""

    owner: Expression
    name: str

    def __str__(self) -> str:
        return f"{text_of(self.owner)}.{self.name}"


class Slice(NamedTuple):
    """`start:stop` inside an index."""

    start: Expression
    stop: Expression

    def __str__(self) -> str:
        return ":".join(_bound(part) for part in self)


class Item(NamedTuple):
    """`owner[index]`."""

    owner: Expression
    key: Expression

    def __str__(self) -> str:
        return f"{text_of(self.owner)}[{text_of(self.key)}]"


class CallExpression(NamedTuple):
    """`function(first, ...)`; what follows the first argument is not kept."""

    function: Expression
    first: Expression

    def __str__(self) -> str:
        return f"{text_of(self.function)}(...)" if self.first else f"{text_of(self.function)}()"


Expression = Name | LiteralExpression | AttributeExpression | Slice | Item | CallExpression | None
Stack = list[Expression]


class Write(NamedTuple):
    """A call whose result nobody takes, or an assignment to an item (then named "__setitem__")."""

    name: str
    receiver: Expression  # None where a function is called
    first: Expression  # its first argument: the index of an item


def text_of(expression: Expression) -> str:
    """Return an expression as source text, with "..." for what is not known."""
    return "..." if expression is None else str(expression)


def _bound(expression: Expression) -> str:
    return "" if expression == LiteralExpression(None) else text_of(expression)


def written_at(code: CodeType) -> dict[int, Write]:
    """Return the calls and item assignments of a code object that leave no result, by offset."""
    found: dict[int, Write] = {}
    waiting: dict[int, Stack] = {}
    stack: Stack | None = []
    instructions = _instructions(code)
    for at, following in zip(instructions, [*instructions[1:], None], strict=True):
        stack = _meet(stack, waiting.pop(at.offset, None))
        write = _write(at, stack, following)
        if write is not None:
            # Up to 3.12 a frame in a call stands behind the caches of its instruction.
            end = at.offset + 2 if following is None else following.offset
            found.update(dict.fromkeys(range(at.offset, end, 2), write))
        target = _step(at, stack)
        if target is not None:
            waiting[target] = _meet(stack, waiting.get(target))
            if at.opname.endswith("_OR_POP"):  # keeps the value only where it jumps
                _pop(stack)
        if at.opname in _ENDS:
            stack = None
    return found


_SILENT = {"CACHE", "EXTENDED_ARG", "NOP", "RESUME", "NOT_TAKEN"}
_ENDS = {
    "JUMP_FORWARD",
    "JUMP_BACKWARD",
    "JUMP_BACKWARD_NO_INTERRUPT",
    "RETURN_VALUE",
    "RETURN_CONST",
    "RAISE_VARARGS",
    "RERAISE",
}
_DISCARDS = {"POP_TOP", "PRINT_EXPR"}


def _instructions(code: CodeType) -> list[dis.Instruction]:
    """Return the instructions of a code object that do something."""
    return [at for at in dis.get_instructions(code) if at.opname not in _SILENT]


def _meet(stack: Stack | None, other: Stack | None) -> Stack:
    """Return what is known where two paths meet: nothing where no known path leads."""
    if stack is None or other is None:
        return list(stack or other or ())
    depth = min(len(stack), len(other))
    pairs = zip(stack[len(stack) - depth :], other[len(other) - depth :], strict=True)
    return [a if a == b else None for a, b in pairs]


def _write(at: Any, stack: Stack, following: Any) -> Write | None:
    if at.opname == "STORE_SUBSCR" and len(stack) > 1:
        return Write("__setitem__", stack[-2], stack[-1])
    if at.opname == "STORE_SLICE" and len(stack) > 2:
        return Write("__setitem__", stack[-3], Slice(stack[-2], stack[-1]))
    if at.opname in ("CALL", "CALL_KW") and following is not None and _discards(following):
        function, first = _called(at, list(stack))
        if isinstance(function, AttributeExpression):
            return Write(function.name, function.owner, first)
        return Write(function.name, None, first) if isinstance(function, Name) else None
    return None


def _discards(following: Any) -> bool:
    shown = following.opname == "CALL_INTRINSIC_1" and following.argrepr == "INTRINSIC_PRINT"
    return shown or following.opname in _DISCARDS


class Step(NamedTuple):
    """An instruction, as a tracer comes to it; calls also have the names of their keywords."""

    name: str
    arg: int
    argument: Any
    symbol: str
    keywords: tuple[str, ...]
    offset: int


def steps(code: CodeType) -> dict[int, Step]:
    """Return the instructions of a code object, by their offsets and those of their prefixes."""
    starts = _starts(code)
    instructions = _instructions(code)
    found: dict[int, Step] = {}
    for place, at in enumerate(instructions):
        called = at.opname.startswith("CALL")
        keywords = _keyword_names(code, instructions, place) if called else ()
        step = Step(at.opname, at.arg or 0, at.argval, at.argrepr, keywords, at.offset)
        found[at.offset] = found[starts.get(at.offset, at.offset)] = step
    return found


def stack_depths(code: CodeType) -> dict[int, int]:
    """Return how many values are on the stack before each instruction, by offset.

    An instruction is always reached with the same depth: the compiler sees to that.
    """
    about: Any = dis.Bytecode(code)  # whose table of exceptions is not in its public description
    instructions = [at for at in about if at.opname != "CACHE"]
    places = {at.offset: place for place, at in enumerate(instructions)}
    handlers = ((e.target, e.depth + bool(e.lasti) + 1) for e in about.exception_entries)
    pending, found = [(0, 0), *handlers], dict[int, int]()
    while pending:
        offset, depth = pending.pop()
        if offset not in found:
            found[offset] = depth
            pending += _next_depths(*instructions[places[offset] : places[offset] + 2], depth=depth)
    return found


def _next_depths(at: Any, following: Any = None, *, depth: int) -> Iterator[tuple[int, int]]:
    """Yield where a frame may come to from an instruction, and the depth there."""
    if at.opcode in _JUMPS:
        yield at.argval, depth + _effect(at, jump=True)
    if following is not None and at.opname not in _ENDS:
        yield following.offset, depth + _effect(at, jump=False)


def _effect(at: Any, jump: bool) -> int:
    """Return by how much an instruction changes the depth of the stack."""
    if at.opname in ("PRECALL", "EXTENDED_ARG"):  # of 3.11; what comes next does it all
        return 0
    if at.opname == "CALL":
        return -int(at.arg) - 1
    if at.opname == "RETURN_GENERATOR":  # the frame goes on with what is sent to it first
        return 1
    return dis.stack_effect(at.opcode, at.arg, jump=jump)


_PUSHED = {"POP_JUMP": 0, "JUMP_IF": 0, "UNARY_NOT": 1, "TO_BOOL": 1, "CALL": 1}


def depths_below(code: CodeType) -> dict[int, int]:
    """Return how many values are on the stack below the operands of an instruction, by offset.

    Only of tests and calls, while which other code may run.
    """
    depths = stack_depths(code)
    instructions = list(dis.get_instructions(code))
    ends = [*(at.offset for at in instructions[1:]), len(code.co_code)]
    found = {}
    for at, end in zip(instructions, ends, strict=True):
        pushed = next((n for start, n in _PUSHED.items() if at.opname.startswith(start)), None)
        if pushed is not None and at.offset in depths:
            below = depths[at.offset] + _effect(at, jump=False) - pushed
            # A frame that waits for a call may stand behind the instruction, at its cache.
            found.update(dict.fromkeys(range(at.offset, end, 2), below))
    return found


_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs, *getattr(dis, "hasjump", ())))


def _starts(code: CodeType) -> dict[int, int]:
    """Return where instructions begin that have prefixes."""
    found: dict[int, int] = {}
    start: int | None = None
    for at in dis.get_instructions(code):
        if at.opname == "EXTENDED_ARG":
            start = at.offset if start is None else start
        elif start is not None:
            found[at.offset], start = start, None
    return found


def use_of_result(code: CodeType, offset: int) -> str | None:
    """Return how the code takes the result of the call at an offset in two, or None if it does not.

    A call that names its axis says which result it expects.
    """
    instructions = _instructions(code)
    # The offset may lie in the cache entries behind the instruction.
    place = sum(at.offset <= offset for at in instructions) - 1
    if place < 0 or not instructions[place].opname.startswith("CALL"):
        return None
    if "axis" in _keyword_names(code, instructions, place):
        return None
    following = instructions[place + 1 : place + 3]
    if following and following[0].opname == "UNPACK_SEQUENCE" and following[0].arg == 2:
        return "unpacking into two names"
    return _subscript(following)


def _subscript(following: list[dis.Instruction]) -> str | None:
    if len(following) < 2 or following[0].opname not in ("LOAD_CONST", "LOAD_SMALL_INT"):
        return None
    index = following[0].argval
    is_subscript = following[1].opname == "BINARY_SUBSCR" or following[1].argrepr == "[]"
    if not is_subscript or index.__class__ is not int or index not in (0, 1):
        return None
    return f"[{index}] right behind the call"


def _keyword_names(
    code: CodeType, instructions: list[dis.Instruction], place: int
) -> tuple[str, ...]:
    """Return the keywords of a call: named just before it, by an instruction or as a constant."""
    if instructions[place].opname == "CALL_KW":
        names = instructions[place - 1].argval
        return names if isinstance(names, tuple) else ()
    before = [at for at in instructions[max(place - 2, 0) : place] if at.opname != "PRECALL"]
    if before and before[-1].opname == "KW_NAMES":
        names = code.co_consts[before[-1].arg or 0]
        return names if isinstance(names, tuple) else ()
    return ()


# -- one instruction -----------------------------------------------------------------------------


def _step(at: Any, stack: Stack) -> int | None:
    """Change the stack as an instruction does; return where it may jump to."""
    name = at.opname
    if name.startswith(("LOAD_FAST", "LOAD_NAME", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_CLASSDEREF")):
        stack.extend(_loaded(at))
    elif name in _EXPRESSIONS:
        _EXPRESSIONS[name](at, stack)
    elif name == "COPY":
        stack.append(stack[-at.arg] if at.arg <= len(stack) else None)
    elif name == "SWAP":
        _swap(stack, at.arg)
    elif "JUMP" in name or name == "FOR_ITER":
        return _jump(at, stack)
    else:
        _other(at, stack)
    return None


def _loaded(at: Any) -> Iterator[Expression]:
    if isinstance(at.argval, tuple):  # two variables at once
        yield from map(Name, at.argval)
    elif at.opname == "LOAD_GLOBAL" and at.arg & 1:  # with the empty place of a method's owner
        yield from (Name(at.argval), Name(at.argval))
    else:
        yield Name(at.argval)


def _constant(at: Any, stack: Stack) -> None:
    stack.append(LiteralExpression(at.argval))


def _attribute(at: Any, stack: Stack) -> None:
    found = AttributeExpression(_pop(stack), at.argval)
    # A method and its owner take two places, whose order differs between versions.
    is_method = at.opname == "LOAD_METHOD" or (sys.version_info >= (3, 12) and at.arg & 1)
    stack.extend([found, found] if is_method else [found])


def _kept_and_loaded(at: Any, stack: Stack) -> None:
    _pop(stack)
    stack.append(Name(at.argval[1]))


def _item(_at: Any, stack: Stack) -> None:
    index = _pop(stack)
    stack.append(Item(_pop(stack), index))


def _sliced_item(_at: Any, stack: Stack) -> None:
    stop, start = _pop(stack), _pop(stack)
    stack.append(Item(_pop(stack), Slice(start, stop)))


def _slice(at: Any, stack: Stack) -> None:
    step = _pop(stack) if at.arg == 3 else LiteralExpression(None)
    stop, start = _pop(stack), _pop(stack)
    stack.append(Slice(start, stop) if step == LiteralExpression(None) else None)


def _binary(at: Any, stack: Stack) -> None:
    if at.argrepr == "[]":
        return _item(at, stack)
    _pop(stack), _pop(stack)
    return stack.append(None)


def _call(at: Any, stack: Stack) -> None:
    stack.append(_called(at, stack))


def _called(at: Any, stack: Stack) -> CallExpression:
    """Take a call's operands from the stack; return the call."""
    if at.opname == "CALL_KW":
        _pop(stack)
    arguments = [_pop(stack) for _ in range(at.arg)]
    pair = [_pop(stack), _pop(stack)]
    function = next((part for part in pair if part is not None), None)
    return CallExpression(function, arguments[-1] if arguments else None)


def _nothing(at: Any, stack: Stack) -> None:
    """Leave the stack as it is: the instruction prepares the next one."""


_EXPRESSIONS = {
    "LOAD_CONST": _constant,
    "LOAD_SMALL_INT": _constant,
    "LOAD_ATTR": _attribute,
    "LOAD_METHOD": _attribute,
    "STORE_FAST_LOAD_FAST": _kept_and_loaded,
    "BINARY_SUBSCR": _item,
    "BINARY_SLICE": _sliced_item,
    "BUILD_SLICE": _slice,
    "BINARY_OP": _binary,
    "CALL": _call,
    "CALL_KW": _call,
    "PRECALL": _nothing,
    "KW_NAMES": _nothing,
}


def _jump(at: Any, stack: Stack) -> int:
    """Take the condition off the stack; what an unusual jump leaves there is not known."""
    if at.opname.startswith("POP_JUMP"):
        _pop(stack)
    elif at.opname not in _ENDS and not at.opname.endswith("_OR_POP"):
        stack.clear()
    return int(at.argval)


# How many values an instruction leaves; how many it takes follows from its effect on the depth.
_RESULTS = {
    **dict.fromkeys(
        (
            *("BUILD_LIST", "BUILD_MAP", "BUILD_CONST_KEY_MAP", "BUILD_SET", "BUILD_STRING"),
            *("BUILD_TUPLE", "CALL_FUNCTION_EX", "CALL_INTRINSIC_1", "COMPARE_OP", "CONTAINS_OP"),
            *("CONVERT_VALUE", "FORMAT_SIMPLE", "FORMAT_VALUE", "FORMAT_WITH_SPEC", "GET_ITER"),
            *("IMPORT_FROM", "IMPORT_NAME", "IS_OP", "LIST_TO_TUPLE", "LOAD_ASSERTION_ERROR"),
            *("LOAD_BUILD_CLASS", "LOAD_CLOSURE", "LOAD_COMMON_CONSTANT", "LOAD_LOCALS"),
            *("MAKE_FUNCTION", "PUSH_NULL", "TO_BOOL", "UNARY_INVERT", "UNARY_NEGATIVE"),
            *("UNARY_NOT", "UNARY_POSITIVE"),
        ),
        1,
    ),
    **dict.fromkeys(
        (
            *("DELETE_ATTR", "DELETE_FAST", "DELETE_NAME", "DELETE_SUBSCR", "POP_TOP"),
            *("PRINT_EXPR", "RETURN_VALUE", "STORE_ATTR", "STORE_DEREF", "STORE_FAST"),
            *("STORE_FAST_STORE_FAST", "STORE_GLOBAL", "STORE_NAME", "STORE_SLICE"),
            "STORE_SUBSCR",
        ),
        0,
    ),
}


def _other(at: Any, stack: Stack) -> None:
    """Follow an instruction whose results need no name; forget all after an unknown one."""
    results = _RESULTS.get(at.opname)
    if results is None:
        stack.clear()
        return
    for _ in range(results - dis.stack_effect(at.opcode, at.arg, jump=False)):
        _pop(stack)
    stack.extend([None] * results)


def _pop(stack: Stack) -> Expression:
    return stack.pop() if stack else None


def _swap(stack: Stack, depth: int) -> None:
    if depth <= len(stack):
        stack[-1], stack[-depth] = stack[-depth], stack[-1]
    else:
        stack.clear()
