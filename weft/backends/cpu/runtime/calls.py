"""Call compiled code from Python, with checked arrays, at the price of a builtin function.

    entry = make_entry(library.address("run"), [spec, spec], keep=library)
    entry(x, y)             # or entry((x, y)), entry((x,), (y,)): tuples are flattened

The code is a `void run(ptr table, ptr context)`: the table holds the arrays' data pointers. An
entry returns

    None    the code ran
    k >= 0  array k is not what its spec demands (dtype, shape, layout): nothing ran
    -1      another thread is inside an exclusive entry: nothing ran

and raises TypeError for anything but ndarrays, or for a wrong number of them. So the caller looks
at its arguments only when something is wrong with them.

An entry is a builtin function; its code is in native/call.py. It reads objects of Python and NumPy
directly, after a test that they look as expected; if they do not, ctypes does the same, slower.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from ....core.dtype import Array
from ....core.errors import ArgumentError
from ..codegen.target import host
from .clock import clock_symbols, coarse_clock_module, seconds_per_tick
from .linking import Library, link
from .native.call import DTYPE_MASK, PYTHON_FUNCTIONS, ROW_WORDS, ObjectLayout, entry_text
from .native.poll import EXPORTS as POLL_EXPORTS
from .native.poll import PYTHON_FUNCTIONS as POLL_FUNCTIONS
from .native.poll import poll_text
from .native.pool import FIELDS
from .objects import runtime_code
from .threads import pool

Entry = Callable[..., int | None]

BUSY = -1

# Bits of ndarray.flags.
_CONTIGUOUS, _OWNER, _ALIGNED, _WRITEABLE = 0x1, 0x4, 0x100, 0x400
_METH_FASTCALL = 0x80
_KEPT_AND_PASSED = 2  # references to an array that is kept in one place and passed in a tuple
_NEW_FROM_DESCR = 94  # its place in NumPy's table of C functions, part of the binary interface


@dataclass(frozen=True)
class ArraySpec:
    """What an array must be: its dtype and shape exactly, in C order and aligned.

    writeable   whether it must allow writing
    owner       whether it must own its memory: a view's belongs to another array as well
    alone       whether only who keeps it may hold it, besides the tuple it is passed in; for
                native entries that can tell (`sees_references`)
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    writeable: bool = False
    owner: bool = False
    alone: bool = False

    @property
    def flags(self) -> int:
        """The bits of `ndarray.flags.num` that must be set."""
        wanted = (_WRITEABLE if self.writeable else 0) | (_OWNER if self.owner else 0)
        return _CONTIGUOUS | _ALIGNED | wanted

    def admits(self, array: np.ndarray[Any, Any]) -> bool:
        """Return whether an array is as demanded."""
        same = array.dtype == self.dtype and array.shape == self.shape
        return same and array.flags.num & self.flags == self.flags


Specs = tuple[ArraySpec | None, ...]


def make_entry(
    address: int,
    arrays: int | Sequence[ArraySpec | None],
    *,
    context: int = 0,
    releases_gil: bool = True,
    exclusive: bool = False,
    keep: object = None,
) -> Entry:
    """Return a callable for native code at an address.

    `arrays` are the specs of its arrays, or just their number: without a spec any ndarray is let
    through. `context` is an address handed on to the code, `keep` is kept alive with the entry (the
    library, say). An exclusive entry lets one thread in at a time.
    """
    if not address:
        raise ArgumentError("make_entry: the address of the code must not be 0")
    specs: Specs = (None,) * arrays if isinstance(arrays, int) else tuple(arrays)
    make = _native_entry if native_calls_work() else ctypes_entry
    return make(address, specs, context, releases_gil, exclusive, keep)


# Through CPython's own calling convention


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Kept(tuple[Any, ...]):
    """What lives as long as an entry; CPython takes it for the name of the entry's module."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "weft"


def _native_entry(
    address: int, specs: Specs, context: int, releases_gil: bool, exclusive: bool, keep: object
) -> Entry:
    sizes = np.array([size for spec in specs if spec for size in spec.shape], np.int64)
    start = [address, context, len(specs), int(releases_gil), int(exclusive), 0]
    rows = _rows(specs, sizes.__array_interface__["data"][0])
    record = np.array([word & (2**64 - 1) for word in [*start, *rows]], np.uint64)
    return builtin(_library().address("weft_entry"), record, (sizes, specs, keep))


def builtin(address: int, record: np.ndarray[Any, Any], keep: object) -> Callable[..., Any]:
    """Return native code in CPython's fast calling convention as a function, with its `self`."""
    definition = _MethodDef(b"compiled", address, _METH_FASTCALL, None)
    # The function holds its `self` and its `module`: whatever must live with it is there.
    function: Callable[..., Any] = _new_function()(
        ctypes.byref(definition), record, _Kept((definition, keep))
    )
    return function


def _rows(specs: Specs, sizes: int) -> list[int]:
    words: list[int] = []
    for spec in specs:
        if spec is None:
            words += [0] * ROW_WORDS
        else:
            most = _KEPT_AND_PASSED if spec.alone else 2**62
            words += [_dtype_word(spec.dtype), len(spec.shape), spec.flags, sizes, most]
            sizes += 8 * len(spec.shape)
    return words


def _dtype_word(dtype: np.dtype[Any]) -> int:
    return _word(dtype, layout().dtype_word) & DTYPE_MASK


@cache
def _new_function() -> Callable[..., Any]:
    new = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.py_object
    )
    return new(("PyCFunction_NewEx", ctypes.pythonapi))


@cache
def _library() -> Library:
    """Return the function that all entries share. It is kept to the end, like the objects named."""
    workers = pool()
    state, start_workers = workers.library.address("weft_pool"), workers.start_workers
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(start_workers))
    symbols = {
        **{name: address_of_function(name) for name in (*PYTHON_FUNCTIONS, *POLL_FUNCTIONS)},
        **clock_symbols(),
        "python_none": id(None),
        "python_true": id(True),
        "python_tuple": id(tuple),
        "python_ndarray": id(np.ndarray),
        "python_type_error": id(TypeError),
        "weft_start_workers": id(start_workers),
        "weft_workers_wanted": state + FIELDS["wanted"],
        "weft_pool_generation": state + FIELDS["generation"],
        "numpy_new_from_descr": numpy_function(_NEW_FROM_DESCR) or 0,
    }
    texts = (
        entry_text(host(), layout()),
        poll_text(host(), seconds_per_tick()),
        coarse_clock_module(host()),
    )
    code = [runtime_code(text, host()) for text in texts]
    library = link(code, ["weft_entry", "weft_run", "weft_empty", *POLL_EXPORTS], symbols)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
    _main_threads.append(ctypes.c_uint64.from_address(library.address("weft_main_thread")))
    _main_threads[-1].value = threading.main_thread().ident or 0
    return library


_main_threads: list[ctypes.c_uint64] = []  # where native code finds the main thread's number


def _become_main_thread() -> None:
    for word in _main_threads:
        word.value = threading.get_ident()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_become_main_thread)


def poll_symbols() -> dict[str, int]:
    """Return the address that loops are linked with to let handlers of signals run."""
    return {"weft_poll": _library().address("weft_poll")}


def address_of_function(name: str) -> int:
    """Return where a function of the interpreter lies in memory."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


def empty_maker(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Callable[[], Array]:
    """Return a function that does what `np.empty` does for arrays of one type, at half the cost."""
    if not native_calls_work() or numpy_function(_NEW_FROM_DESCR) is None:
        return partial(np.empty, shape, dtype)
    record = np.array([id(dtype), len(shape), *shape], np.uint64)
    return builtin(_library().address("weft_empty"), record, dtype)


def numpy_function(place: int) -> int | None:
    """Return the address of a function of NumPy's C interface, or None."""
    core = getattr(getattr(np, "_core", None), "_multiarray_umath", None)
    table = getattr(core, "_ARRAY_API", None)
    if sys.implementation.name != "cpython" or table is None:
        return None
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    return ctypes.c_void_p.from_address(pointer(table, None) + 8 * place).value


# The look of objects


@cache
def layout() -> ObjectLayout:
    """Return where fields lie, counted from the end of the header that every object has.

    The fields of an ndarray, and their order, are part of NumPy's stable binary interface.
    """
    header = object.__basicsize__
    return ObjectLayout(
        references=0,
        type=header - 8,
        tuple_size=header,
        tuple_items=tuple.__basicsize__,
        array_data=header,
        array_dimensions=header + 8,
        array_sizes=header + 16,
        array_dtype=header + 40,
        array_flags=header + 48,
        dtype_word=header + 8,
    )


@cache
def native_calls_work() -> bool:
    """Return whether objects lie in memory as `layout` says, by looking at several."""
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    samples: list[np.ndarray[Any, Any]] = [
        np.zeros((2, 3), np.float32),
        np.zeros((4, 5, 6))[1:, ::2],
        np.zeros(0, bool),
        np.zeros((), ">i2"),
        np.arange(3)[::-1],
    ]
    arrays_fit = all(_array_is_as_expected(sample) for sample in samples)
    return arrays_fit and _tuple_is_as_expected(tuple(samples))


@cache
def sees_references() -> bool:
    """Return whether native code sees how many references there are to an array."""
    keeper = [np.zeros(1)]
    address = id(keeper[0]) + layout().references
    others: list[Any] = []
    for count in range(1, 5):
        if ctypes.c_uint32.from_address(address).value != count:
            return False
        others.append((keeper[0],))
    return native_calls_work()


def _tuple_is_as_expected(sample: tuple[object, ...]) -> bool:
    at = layout()
    items = [_word(sample, at.tuple_items + 8 * k) for k in range(len(sample))]
    size_and_type = (_word(sample, at.tuple_size), _word(sample, at.type))
    return size_and_type == (len(sample), id(tuple)) and items == [id(item) for item in sample]


def _array_is_as_expected(sample: np.ndarray[Any, Any]) -> bool:
    at, low = layout(), 2**32 - 1
    sizes = _word(sample, at.array_sizes)
    found = (
        _word(sample, at.type),
        _word(sample, at.array_data),
        _word(sample, at.array_dimensions) & low,
        tuple(ctypes.c_int64.from_address(sizes + 8 * k).value for k in range(sample.ndim)),
        _word(sample, at.array_dtype),
        _word(sample, at.array_flags) & low,
        _word(sample.dtype, at.dtype_word) >> 32,
        chr(_word(sample.dtype, at.dtype_word) >> 16 & 255),
    )
    return found == (
        id(type(sample)),
        sample.__array_interface__["data"][0],
        sample.ndim,
        sample.shape,
        id(sample.dtype),
        sample.flags.num,
        sample.dtype.num,
        sample.dtype.byteorder,
    )


def _word(thing: object, offset: int) -> int:
    return ctypes.c_uint64.from_address(id(thing) + offset).value


# Through ctypes


def ctypes_entry(
    address: int, specs: Specs, context: int, releases_gil: bool, exclusive: bool, keep: object
) -> Entry:
    """Return an entry that behaves like a native one and needs nothing but ctypes."""
    assert not any(spec.alone for spec in specs if spec), "only native code counts references so"
    # Of all functions, ctypes asks only those of Python whether they have raised.
    words = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    run = ctypes.PYFUNCTYPE(None, *words)(_library().address("weft_run"))
    inside: dict[int, object] = {}  # by generation, as in native/call.py

    def entry(*arguments: Any) -> int | None:
        arrays = _flatten(arguments, len(specs))
        for k, (array, spec) in enumerate(zip(arrays, specs, strict=True)):
            if spec is not None and not spec.admits(array):
                return k
        generation, me = pool().field("generation").value, object()
        if exclusive and inside.setdefault(generation, me) is not me:
            return BUSY
        try:
            table = np.array([array.ctypes.data for array in arrays], np.uint64)
            run(address, table.ctypes.data, context, int(releases_gil))
        finally:
            inside.pop(generation, None)
        if pool().field("wanted").value:
            pool().start_workers()
        return None

    entry.__dict__["keep"] = keep
    return entry


def _flatten(arguments: tuple[Any, ...], count: int) -> list[np.ndarray[Any, Any]]:
    arrays: list[np.ndarray[Any, Any]] = []
    for argument in arguments:
        arrays += argument if type(argument) is tuple else (argument,)
    for k, array in enumerate(arrays[:count]):
        if type(array) is not np.ndarray:
            raise TypeError(f"compiled code takes NumPy arrays; argument {k} is none")
    if len(arrays) != count:
        raise TypeError(f"compiled code takes {count} arrays. Received: {len(arrays)}")
    return arrays
