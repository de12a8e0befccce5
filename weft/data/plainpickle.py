"""Pickles of plain data, read by a machine of our own that can run nothing.

The archives of CIFAR are pickles, and a pickle is a program: Python's reader would call whatever it
names. Here a program may build dictionaries, lists, tuples, text, bytes, numbers and NumPy arrays
of numbers, which is all that those files hold; every other instruction, and every other name, is
refused with its offset. An array takes no more memory than the bytes in the file that it is of.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .errors import DataFileError
from .streams import Array

# What a program may name, and what stands for it here. Python 2 and NumPy 2 have other modules.
_ADMITTED: Final = {
    ("numpy.core.multiarray", "_reconstruct"): "array",
    ("numpy._core.multiarray", "_reconstruct"): "array",
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): "dtype",
    ("_codecs", "encode"): "encode",  # how Python 3 writes bytes in old versions of the format
}
_KINDS: Final = "biuf"
_LARGEST_ARRAY: Final = 32  # dimensions


class _Name:
    """A name that a program gave, for one of the things that are admitted."""

    def __init__(self, meaning: str) -> None:
        self.meaning = meaning


class _Type:
    """A NumPy type that is being built."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.order = "="


class _Values:
    """A NumPy array that is being built."""

    def __init__(self) -> None:
        self.array: Array | None = None


class _Mark:
    """Where a run of values begins on the stack."""


class _RefusedError(Exception):
    """The program does what no file of plain data does."""


def load_plain_pickle(content: bytes, path: str) -> Any:
    """Return the data in a pickle; `path` names it in errors. Text of Python 2 stays bytes."""
    machine = _Machine(content)
    try:
        return machine.run()
    except _RefusedError as error:
        problem = str(error)
    except (struct.error, IndexError, KeyError, TypeError, ValueError, OverflowError) as error:
        problem = f"the pickle is damaged ({type(error).__name__}: {error})"
    raise DataFileError(path, f"offset {machine.start}", problem)


class _Machine:
    """A stack, a memo, and a place in the program."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0
        self.start = 0  # of the instruction that runs, for errors
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        """Return what the program leaves on the stack."""
        while True:
            self.start = self.at
            code = self.take(1)
            if code == b".":
                return _finished(self.stack.pop())
            step = _STEPS.get(code[0])
            if step is None:
                raise _RefusedError(
                    f"the pickle has an instruction {code!r} that plain data do not need; it is "
                    "not run"
                )
            step(self)

    def take(self, count: int) -> bytes:
        """Return the next bytes of the program."""
        found = self.content[self.at : self.at + count]
        if len(found) < count:
            raise _RefusedError(f"the pickle ends where {count} bytes should follow")
        self.at += count
        return found

    def number(self, code: str) -> Any:
        """Return the number that follows."""
        return struct.unpack(code, self.take(struct.calcsize(code)))[0]

    def line(self) -> str:
        """Return the text up to the end of the line."""
        stop = self.content.index(b"\n", self.at)
        found = self.content[self.at : stop].decode("ascii", "replace")
        self.at = stop + 1
        return found

    def push(self, value: Any) -> None:
        """Put a value on the stack."""
        self.stack.append(value)

    def marked(self) -> list[Any]:
        """Return the values above the last mark, and take both off the stack."""
        at = len(self.stack) - 1
        while not isinstance(self.stack[at], _Mark):
            at -= 1
            if at < 0:
                raise _RefusedError("the pickle uses a mark that it did not set")
        found = self.stack[at + 1 :]
        del self.stack[at:]
        return found

    def top(self, kind: type) -> Any:
        """Return the last value, which must be a list or a dictionary."""
        if not isinstance(self.stack[-1], kind):
            raise _RefusedError(f"the pickle fills a {type(self.stack[-1]).__name__}")
        return self.stack[-1]


# -- instructions ----------------------------------------------------------------------------------


def _constant(make: Callable[[], Any]) -> Callable[[_Machine], None]:
    return lambda machine: machine.push(make())


def _integer(code: str) -> Callable[[_Machine], None]:
    return lambda machine: machine.push(machine.number(code))


def _bytes(code: str) -> Callable[[_Machine], None]:
    return lambda machine: machine.push(machine.take(machine.number(code)))


def _text(code: str) -> Callable[[_Machine], None]:
    return lambda machine: machine.push(machine.take(machine.number(code)).decode())


def _tuple(count: int) -> Callable[[_Machine], None]:
    def step(machine: _Machine) -> None:
        found = tuple(machine.stack.pop() for _ in range(count))
        machine.push(found[::-1])

    return step


def _marked_tuple(machine: _Machine) -> None:
    found = machine.marked()
    machine.push(tuple(found))


def _big_integer(machine: _Machine) -> None:
    machine.push(int.from_bytes(machine.take(machine.number("<B")), "little", signed=True))


def _append(machine: _Machine) -> None:
    value = machine.stack.pop()
    machine.top(list).append(_finished(value))


def _appends(machine: _Machine) -> None:
    values = machine.marked()
    machine.top(list).extend(_finished(value) for value in values)


def _set_item(machine: _Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    machine.top(dict)[_key(key)] = _finished(value)


def _set_items(machine: _Machine) -> None:
    values = machine.marked()
    found = machine.top(dict)
    for key, value in zip(values[::2], values[1::2], strict=True):
        found[_key(key)] = _finished(value)


def _key(value: Any) -> Any:
    if not isinstance(value, str | bytes | int):
        raise _RefusedError(f"the pickle has a key that is a {type(value).__name__}")
    return value


def _put(code: str) -> Callable[[_Machine], None]:
    def step(machine: _Machine) -> None:
        machine.memo[machine.number(code)] = machine.stack[-1]

    return step


def _memoize(machine: _Machine) -> None:
    machine.memo[len(machine.memo)] = machine.stack[-1]


def _get(code: str) -> Callable[[_Machine], None]:
    return lambda machine: machine.push(machine.memo[machine.number(code)])


def _name(machine: _Machine) -> None:
    _named(machine, machine.line(), machine.line())


def _stacked_name(machine: _Machine) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    _named(machine, module, name)


def _named(machine: _Machine, module: Any, name: Any) -> None:
    meaning = _ADMITTED.get((module, name)) if isinstance(module, str) else None
    if meaning is None:
        raise _RefusedError(
            f"the pickle names {module}.{name}, which plain data do not need; nothing of it is run"
        )
    machine.push(_Name(meaning))


def _call(machine: _Machine) -> None:
    """Make what a name and its arguments stand for; nothing is called."""
    arguments, name = machine.stack.pop(), machine.stack.pop()
    if not isinstance(name, _Name) or not isinstance(arguments, tuple):
        raise _RefusedError("the pickle calls what is no name of an array or a type")
    if name.meaning == "array":
        machine.push(_Values())
    elif name.meaning == "dtype" and arguments and isinstance(arguments[0], str | bytes):
        machine.push(_Type(_as_text(arguments[0])))
    elif name.meaning == "encode" and arguments and isinstance(arguments[0], str):
        machine.push(arguments[0].encode("latin-1"))
    else:
        raise _RefusedError(f"the pickle calls {name.meaning} with other things than text")


def _build(machine: _Machine) -> None:
    """Give an array or a type its state."""
    state, target = machine.stack.pop(), machine.stack[-1]
    if isinstance(target, _Type) and isinstance(state, tuple) and len(state) > 1:
        target.order = _as_text(state[1])
    elif isinstance(target, _Values) and isinstance(state, tuple) and len(state) == 5:
        target.array = _array(*state[1:])
    else:
        raise _RefusedError(f"the pickle gives a state to a {type(target).__name__}")


def _array(shape: Any, type: Any, is_fortran: Any, content: Any) -> Array:
    """Return an array of bytes that are there."""
    if not isinstance(type, _Type) or not isinstance(content, bytes):
        raise _RefusedError("the pickle has an array of objects; only numbers are read")
    dtype = np.dtype(type.code).newbyteorder(">" if type.order == ">" else "<")
    sizes = isinstance(shape, tuple) and all(isinstance(n, int) and n >= 0 for n in shape)
    if dtype.kind not in _KINDS or not sizes or len(shape) > _LARGEST_ARRAY:
        # The shape is not shown: tuples in tuples can be larger than any file when written out.
        raise _RefusedError(f"the pickle has an array of {dtype} whose shape is none, or objects")
    if math.prod(shape) * dtype.itemsize != len(content):
        raise _RefusedError(
            f"the pickle has an array of shape {shape} and {dtype}, and {len(content)} bytes for it"
        )
    return np.frombuffer(content, dtype).reshape(shape, order="F" if is_fortran else "C")


def _as_text(value: Any) -> str:
    if not isinstance(value, str | bytes):
        raise _RefusedError(f"the pickle has a type named by a {type(value).__name__}")
    return value.decode("ascii") if isinstance(value, bytes) else value


def _finished(value: Any) -> Any:
    """Return a value as it is kept: an array for what it was built in."""
    if isinstance(value, _Values):
        if value.array is None:
            raise _RefusedError("the pickle has an array without values")
        return value.array
    if isinstance(value, _Name | _Type | _Mark):
        raise _RefusedError("the pickle keeps a name as if it were data")
    return value


_STEPS: Final[dict[int, Callable[[_Machine], None]]] = {
    ord(code): step
    for code, step in {
        "\x80": lambda machine: machine.take(1) and None,  # the version
        "\x95": lambda machine: machine.take(8) and None,  # a frame's length
        "(": _constant(_Mark),
        "}": _constant(dict),
        "]": _constant(list),
        ")": _constant(tuple),
        "N": _constant(lambda: None),
        "\x88": _constant(lambda: True),
        "\x89": _constant(lambda: False),
        "K": _integer("<B"),
        "M": _integer("<H"),
        "J": _integer("<i"),
        "\x8a": _big_integer,
        "G": _integer(">d"),
        "U": _bytes("<B"),
        "T": _bytes("<I"),
        "C": _bytes("<B"),
        "B": _bytes("<I"),
        "\x8e": _bytes("<Q"),
        "X": _text("<I"),
        "\x8c": _text("<B"),
        "\x85": _tuple(1),
        "\x86": _tuple(2),
        "\x87": _tuple(3),
        "t": _marked_tuple,
        "a": _append,
        "e": _appends,
        "s": _set_item,
        "u": _set_items,
        "q": _put("<B"),
        "r": _put("<I"),
        "\x94": _memoize,
        "h": _get("<B"),
        "j": _get("<I"),
        "c": _name,
        "\x93": _stacked_name,
        "R": _call,
        "b": _build,
    }.items()
}
