"""Plans of runs as bytes, to be kept on disk.

Nothing of a plan follows from the values of states and feeds, nor from names and lines of nodes.
What belongs to the process (states, constants of the graph, operators) is kept by number or name.

A plan says where code reads and writes, so it is as good as code: like the objects that it names it
comes only from the store, which takes nothing that this user's processes have not written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import EllipsisType
from typing import Any

import numpy as np

from ...core.dtype import as_dtype
from ...core.errors import GraphError
from ...core.shape import TensorType
from ...graph.identity.fingerprint import Fingerprint
from ...graph.operators import operator_named
from ...graph.state import State
from ...lower.kernels import BranchKernel, CallKernel, LoopKernel
from ...lower.memory import MemoryPlan, Place
from ...lower.program import Sources
from ...lower.schedule import BranchCalls, LoopCalls
from ...lower.storage import Buffer, View, Window
from ...plan.run_plan import RunPlan
from .columns import (
    DTYPE,
    SIZES,
    ForeignError,
    Kind,
    NotPlainError,
    Reader,
    Writer,
    arrays_in,
    fields,
    from_bytes,
    late,
    listed,
    mapped,
    named,
    nothing,
    numbered,
    optional,
    paired,
    plain,
    tagged,
    to_bytes,
)

MOST_BYTES = 4 * 1024 * 1024  # what is larger takes as long to read as to make

# What reading one can raise if it was not written by this very code.
_FOREIGN = (
    ArithmeticError,
    AttributeError,
    GraphError,
    LookupError,
    MemoryError,
    RecursionError,
    StopIteration,
    TypeError,
    ValueError,
)


def pack(plan: RunPlan, known: Fingerprint) -> bytes | None:
    """Return a plan as bytes, or None if it holds what only this process has."""
    w = Writer(known)
    try:
        top = PLAN.write(w, [plan])
        buffers = [*w.buffers]
        windows = _WINDOWS.write(w, [b.window for b in buffers])
        tables = [_BUFFER.write(w, buffers), windows, top]
    except (GraphError, NotPlainError, RecursionError):
        return None
    types = _TYPE.write(w, [TensorType(array.shape, array.dtype) for array in w.held])
    if sum(array.nbytes for array in w.held) > MOST_BYTES:
        return None
    content = to_bytes([types, *tables], w.held)
    return content if len(content) <= MOST_BYTES else None


def unpack(content: bytes, known: Fingerprint) -> RunPlan | None:
    """Return the plan that bytes hold, for the states and constants of a program like it."""
    r = Reader(known)
    try:
        (types, buffers, windows, top), blobs = from_bytes(content)
        r.arrays += arrays_in(blobs, ((t.dtype, t.shape) for t in _TYPE.read(r, types)))
        for parts, window in zip(_BUFFER.read(r, buffers), _WINDOWS.read(r, windows), strict=True):
            made = Buffer(*parts)
            r.buffers.append(made if window is None else replace(made, window=_window(r, *window)))
        plan: RunPlan
        (plan,) = PLAN.read(r, top)
    except _FOREIGN:
        return None
    return plan


# -- the kinds of its parts ------------------------------------------------------------------------

NUMBER, WORD, TRUTH = plain(int), plain(str), plain(bool)
BUFFER = numbered(Writer.buffer, lambda r: r.buffers)
STATE = numbered(Writer.state, lambda r: r.states)
KEY = named(bytes.hex, bytes.fromhex)
MAYBE_NUMBER = optional(NUMBER)


def _operator(op: Any) -> str:
    """Return the name by which an operator is found: all that a call needs of it."""
    if operator_named(op.name) is not op:
        raise NotPlainError(f"{op} is needed as it is")
    name: str = op.name
    return name


OPERATOR = named(_operator, operator_named)

# Where values lie.

_VIEW_FIELDS = {"buffer": BUFFER, "shape": SIZES, "strides": SIZES, "offset": NUMBER}
_PLACE_FIELDS = {
    "is_argument": TRUTH,
    "entry": NUMBER,
    "offset": NUMBER,
    "moves": listed(paired(late(lambda: PLACE), NUMBER), tuple),
}
VIEW = fields(View, _VIEW_FIELDS)
PLACE: Kind = fields(Place, _PLACE_FIELDS)
MAYBE_VIEW, BUFFERS = optional(VIEW), listed(BUFFER, tuple)

_BUFFER_FIELDS = {  # in the order in which a Buffer takes them
    "kind": WORD,
    "shape": SIZES,
    "dtype": DTYPE,
    "name": WORD,
    "slot": NUMBER,
    "number": NUMBER,
}
_BEFORE = Kind(BUFFER.write, NUMBER.read)  # a buffer that was read before
_WINDOW_FIELDS = {"buffer": _BEFORE, "offset": NUMBER, "word": _BEFORE, "step": NUMBER}
_BUFFER = fields(lambda *parts: parts, _BUFFER_FIELDS)
_WINDOWS = optional(fields(lambda *parts: parts, _WINDOW_FIELDS))
_SOURCES_FIELDS = {
    "feeds": listed(nothing(None), tuple),  # what a feed is in the graph no run asks
    "constants": listed(numbered(Writer.array, lambda r: r.arrays), tuple),
    "states": listed(STATE, tuple),
}


def _window(r: Reader, buffer: int, offset: int, word: int, step: int) -> Window:
    if not 0 <= min(buffer, word) <= max(buffer, word) < len(r.buffers):
        raise ForeignError("a window is part of a buffer before it")
    return Window(r.buffers[buffer], offset, r.buffers[word], step)


# Attributes of operators, as fingerprints know them.

_TYPE = fields(TensorType, {"shape": SIZES, "dtype": DTYPE})
_SCALAR = Kind(
    lambda w, items: [[x.dtype.name, x.item()] for x in items],
    lambda r, data: [as_dtype(name).type(value) for name, value in data],
)
ATTRS = listed(late(lambda: _ATTR), tuple)
_ATTR: Kind = tagged(
    {
        bool: ("bool", TRUTH),
        int: ("int", NUMBER),
        float: ("float", plain(float)),
        str: ("str", WORD),
        tuple: ("tuple", ATTRS),
        type(None): ("none", nothing(None)),
        EllipsisType: ("ellipsis", nothing(...)),
        np.dtype: ("dtype", DTYPE),
        np.generic: ("scalar", _SCALAR),
        TensorType: ("type", _TYPE),
        State: ("state", STATE),
    }
)

# Steps. Control flow keeps what driving it needs: the kernels inside are steps of their own.


def _loop(*parts: Any) -> LoopKernel:
    return LoopKernel(body=(), **dict(zip(_LOOP_FIELDS, parts, strict=True)))


def _branch(name: str, chosen: View) -> BranchKernel:
    return BranchKernel(name, chosen, yes=(), no=(), results=())


STEPS = listed(late(lambda: _STEP), tuple)
_CALL_FIELDS = {
    "name": WORD,
    "op": OPERATOR,
    "inputs": listed(MAYBE_VIEW, tuple),
    "outputs": listed(VIEW, tuple),
    "attrs": ATTRS,
    "origins": SIZES,
}
_CALL = fields(CallKernel, _CALL_FIELDS)


def _write_calls(w: Writer, calls: Sequence[CallKernel]) -> Any:
    if any(call.is_dynamic for call in calls):
        raise NotPlainError("sizes that only a run can tell have names of this process")
    return _CALL.write(w, calls)


_LOOP_FIELDS = {
    "name": WORD,
    "index": BUFFER,
    "half": BUFFER,
    "length": MAYBE_NUMBER,
    "reverse": TRUTH,
    "holds": MAYBE_VIEW,
    "stops": MAYBE_VIEW,
}
_BRANCH_FIELDS = {"name": WORD, "chosen": VIEW}
_LOOP_CALLS = {"kernel": fields(_loop, _LOOP_FIELDS), "test": STEPS, "body": STEPS}
_BRANCH_CALLS = {"kernel": fields(_branch, _BRANCH_FIELDS), "yes": STEPS, "no": STEPS}
_STEP: Kind = tagged(
    {
        str: ("native", WORD),
        CallKernel: ("call", Kind(_write_calls, _CALL.read)),
        LoopCalls: ("loop", fields(LoopCalls, _LOOP_CALLS)),
        BranchCalls: ("branch", fields(BranchCalls, _BRANCH_CALLS)),
    }
)

# The whole.


COMMITS = listed(paired(NUMBER, VIEW), tuple)
_MEMORY_FIELDS = {
    "feeds": NUMBER,
    "used_feeds": listed(NUMBER, tuple),
    "states": BUFFERS,
    "changed": NUMBER,
    "fresh": BUFFERS,
    "constants": BUFFERS,
    "numbers": BUFFERS,
    "arguments": BUFFERS,
    "places": mapped(BUFFER, PLACE),
    "shared": mapped(BUFFER, BUFFER),
    "copied": COMMITS,
    "new_numbers": COMMITS,
    "arena_bytes": NUMBER,
    "donated": mapped(BUFFER, BUFFER),
}
_PLAN_FIELDS = {
    "memory": fields(MemoryPlan, _MEMORY_FIELDS),
    "sources": fields(Sources, _SOURCES_FIELDS),
    "fetches": listed(VIEW, tuple),
    "commits": COMMITS,
    "flag": MAYBE_VIEW,
    "steps": STEPS,
    "entries": listed(WORD),
    "objects": listed(KEY),
}
PLAN = fields(RunPlan, _PLAN_FIELDS)
