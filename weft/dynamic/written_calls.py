"""Functions that put off calls of a cell in one form, written as text.

Structures that are new run the function's Python, and most of what that takes is putting calls of
cells off, by the thousand. Of a form that was met (how many arguments, which of them are tuples, of
what types) everything but the numbers of values is known: the text says the rest in few lines.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

from ..core.generated import define
from .deferred import DeferredTensor

MOST_FORMS = 1024  # of which functions are kept
LATE = 1 << 40  # is added to levels of what nobody reads while examples wait, and what is behind

new_stand_in: Any = partial(object.__new__, DeferredTensor)  # the fastest way past __init__


class CallForm(NamedTuple):
    """What calls of a cell have in common.

    lengths     of each argument that is a tuple of values; None for one that is a value
    kinds       the numbers of the types of all values
    signature   the number of the signature
    outs        the numbers of the types of the results
    is_single   whether there is one result, and no tuple
    waits       whether nobody reads the results before the end, as far as is known
    """

    lengths: tuple[int | None, ...]
    kinds: tuple[int, ...]
    signature: int
    outs: tuple[int, ...]
    is_single: bool
    waits: bool


@lru_cache(MOST_FORMS)
def written_call(form: CallForm) -> Callable[[Any, tuple[Any, ...]], Any]:
    """Return a function of a run and of arguments that puts a call off and returns its results.

    It returns None for arguments of another form, and where results wait for the end unexpectedly.
    """
    values = _values(form)
    lines = [*_taken_apart(form, values), *_checked(form, values), *_recorded(form)]
    text = "\n    ".join(["def put_off(run, args):", *lines]) + "\n"
    scope = {"DeferredTensor": DeferredTensor, "new": new_stand_in}
    return define("put_off", text, scope, "put off a call")


def _values(form: CallForm) -> list[list[str]]:
    """Return names for the values of each argument."""
    lengths = enumerate(form.lengths)
    return [[f"x{i}"] if n is None else [f"x{i}_{j}" for j in range(n)] for i, n in lengths]


def _taken_apart(form: CallForm, values: list[list[str]]) -> list[str]:
    """Return lines that name the values in arguments."""
    lines = _unless(f"len(args) == {len(values)}")
    whole = [f"x{i}" if n is None else f"t{i}" for i, n in enumerate(form.lengths)]
    lines.append(f"{_tuple(whole)} = args")
    for name, names, length in zip(whole, values, form.lengths, strict=True):
        if length is not None:
            lines += _unless(f"{name}.__class__ is tuple and len({name}) == {length}")
            lines.append(f"{_tuple(names)} = {name}")
    return lines


def _checked(form: CallForm, values: list[list[str]]) -> list[str]:
    """Return lines that find the numbers of values, and how deep the call lies."""
    lines = ["level, start, fresh = 0, run.start, run.records.first"]
    names = [name for own in values for name in own]
    for i, (x, kind) in enumerate(zip(names, form.kinds, strict=True)):
        lines += [
            f"if {x}.__class__ is not DeferredTensor:",
            f"    {x} = run.row_of({x})",
            f"    if {x} is None:",
            "        return None",
            f"i{i}, depth = {x}.index, {x}.level",
        ]
        lines += _unless(f"{x}.kind == {kind} and i{i} >= start and {x}.run is run")
        lines += ["if depth >= level:", f"    if depth >= {LATE}:", "        return None"]
        lines += [f"    if i{i} >= fresh:", "        level = depth + 1"]
    return [*lines, f"level += {LATE}"] if form.waits else lines


def _recorded(form: CallForm) -> list[str]:
    """Return lines that write the row, and return what stands for results."""
    read = _tuple([f"i{i}" for i in range(len(form.kinds))])
    lines = [
        "records = run.late" if form.waits else "records = run.records",
        f"records.signatures.append({form.signature})",
        "records.levels.append(level)",
        f"records.refs += {read}",
        "index = run.count",
        "records.firsts.append(index)",
        f"run.count = index + {len(form.outs)}",
    ]
    for i, kind in enumerate(form.outs):
        number = f"index + {i}" if i else "index"
        lines += [f"y{i} = new()", f"y{i}.run = run", f"y{i}.index = {number}"]
        lines += [f"y{i}.kind = {kind}", f"y{i}.level = level"]
    results = [f"y{i}" for i in range(len(form.outs))]
    return [*lines, f"return {results[0] if form.is_single else _tuple(results)}"]


def _unless(condition: str) -> list[str]:
    return [f"if not ({condition}):", "    return None"]


def _tuple(names: list[str]) -> str:
    return f"({', '.join(names)},)"
