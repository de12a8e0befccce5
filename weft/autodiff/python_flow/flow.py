"""What rewritten functions call: branches and loops that run now, or become nodes of a graph.

A branch on a value of Python's is taken now; one on a symbol is a `cond`. A loop is kept as a node
whenever its variables keep their types; else it runs now, which writes its trips one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from ...core.modes import current_tracer
from ...core.op import F
from ...core.tensor import Tensor
from ...graph.control.branch import cond
from ...graph.control.loop import while_loop
from ...graph.control.scanning import scan
from ...graph.symbol import Symbol
from .kinds import (
    NOTHING,
    UNDEFINED,
    CannotKeepError,
    VariableKind,
    joined,
    kind_of,
    stays,
    tensors,
    value_of,
)
from .rows import CountedRows, LoopRows, rows_of
from .sharing import marked, of_two_names, trip

MOST_TRIPS = 10_000  # of a loop that is written trip by trip
ROUNDS = 8  # until the types of variables settle
_depth = [0]  # of bodies that are being traced: what they change of Python's would be lost


# -- values ----------------------------------------------------------------------------------------


def now(read: Callable[[], Any]) -> Any:
    """Return the value of a variable, UNDEFINED if it has none."""
    try:
        return read()
    except NameError:
        return UNDEFINED


def named(name: str, value: Any) -> Any:
    """Return a value under the name that the function gives it."""
    tracer = current_tracer()
    if isinstance(value, Symbol) and tracer is not None and value.graph is tracer.graph:
        tracer.graph.name_newest(value.value, name)
    return value


def truth(value: Any) -> Any:
    """Return a truth value: Python's, or a symbol."""
    if not isinstance(value, Symbol):
        return bool(value)
    return value if value.dtype.kind == "b" else F.not_equal(value, 0)


def negated(value: Any) -> Any:
    """Return `not value`."""
    found = truth(value)
    return F.logical_not(found) if isinstance(found, Symbol) else not found


def both(*parts: Callable[[], Any]) -> Any:
    """Return `a and b and ...`."""
    first, *rest = parts
    value = first()
    if not rest:
        return value
    if isinstance(value, Symbol):
        return cond(truth(value), lambda: _true_or_false(both(*rest)), lambda: _constant(False))
    return both(*rest) if value else value


def either(*parts: Callable[[], Any]) -> Any:
    """Return `a or b or ...`."""
    first, *rest = parts
    value = first()
    if not rest:
        return value
    if isinstance(value, Symbol):
        return cond(truth(value), lambda: _constant(True), lambda: _true_or_false(either(*rest)))
    return value or either(*rest)


def _true_or_false(value: Any) -> Any:
    found = truth(value)
    return found if isinstance(found, Symbol) else _constant(found)


def _constant(value: bool) -> Any:
    return tensors(value, stays(kind_of(value)))[0]


def put(x: Any, index: Any, value: Any) -> Any:
    """Return x after `x[index] = value`."""
    if isinstance(x, Tensor):
        return F.index_set(x, index, value)
    _refuse_change(x)
    x[index] = value
    return x


def changing(method: Any) -> Any:
    """Return a method whose call stands alone, and so changes its object."""
    _refuse_change(getattr(method, "__self__", method))
    return method


def _refuse_change(x: Any) -> None:
    if _depth[0]:
        raise CannotKeepError(f"the body changes an object of Python's, {x!r:.40}")


# -- branches --------------------------------------------------------------------------------------


def branch(
    pred: Any,
    yes: Any,
    no: Any,
    names: Sequence[str],
    taken: Sequence[str],
    values: Sequence[Any],
) -> Sequence[Any]:
    """Return the variables of the given names behind an `if`; `taken` are those of its sides."""
    pred = truth(pred)
    if not isinstance(pred, Symbol):
        found: Sequence[Any] = (yes if pred else no)(*values)
        return found
    own = dict(zip(taken, values, strict=True))
    given = pred, partial(yes, *values), partial(no, *values), own
    return _kept(_joined_branches, given, names)


def _joined_branches(
    kinds: list[VariableKind],
    names: Sequence[str],
    pred: Symbol,
    yes: Any,
    no: Any,
    own: Mapping[str, Any],
) -> Sequence[Any]:
    """Return a `cond`; without kinds they are those of the first branch, if both agree."""
    agreed = list(kinds)
    passed: set[str] = set()

    def returned(fn: Callable[[], Any]) -> list[Any]:
        found = fn()
        if not agreed:
            agreed.extend(map(kind_of, found))
        _check_kinds(agreed, found, names)
        passed.update(of_two_names(names, found, own))
        return [x for v, k in zip(found, agreed, strict=True) for x in tensors(v, k)]

    with _tracing():
        made = cond(pred, partial(returned, yes), partial(returned, no))
    return marked(names, _values(agreed, made), passed)


def choose(pred: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """Return `yes() if pred else no()`."""
    (found,) = branch(pred, lambda: (yes(),), lambda: (no(),), ("the value",), (), ())
    return found


def largest(*values: Any) -> Any:
    """Return `max(*values)`."""
    return _extreme(values, max, lambda a, b: b > a)


def smallest(*values: Any) -> Any:
    """Return `min(*values)`."""
    return _extreme(values, min, lambda a, b: b < a)


def _extreme(values: Sequence[Any], plain: Any, better: Callable[[Any, Any], Any]) -> Any:
    if len(values) < 2 or not any(isinstance(v, Symbol) for v in values):
        return plain(*values)
    best, *rest = values
    for value in rest:
        sides = partial(_same, value), partial(_same, best)
        best = choose(better(best, value), *sides)
    return best


def _same(value: Any) -> Any:
    return value


def _values(kinds: Sequence[VariableKind], made: Sequence[Any]) -> tuple[Any, ...]:
    left = list(made)
    found = []
    for kind in kinds:
        count = len(kind.types)
        found.append(value_of(kind, left[:count]))
        left = left[count:]
    return tuple(found)


class _OtherKindsError(Exception):
    """Variables are of other kinds than was thought; tracing begins again with these."""

    def __init__(self, kinds: list[VariableKind]) -> None:
        super().__init__()
        self.kinds = kinds


def _check_kinds(kinds: Sequence[VariableKind], values: Any, names: Sequence[str]) -> None:
    """Raise unless values are of given kinds, or can be made so."""
    grown = [
        joined(kind, kind_of(value), name)
        for kind, value, name in zip(kinds, values, names, strict=True)
    ]
    if not all(map(VariableKind.is_like, grown, kinds)):
        raise _OtherKindsError(grown)


def _kept(
    build: Callable[..., Sequence[Any]],
    given: Sequence[Any],
    names: Sequence[str],
    kinds: Sequence[VariableKind] = (),
) -> Sequence[Any]:
    """Return what is built when the kinds of variables have settled."""
    for _ in range(ROUNDS):
        try:
            return build(list(kinds), names, *given)
        except _OtherKindsError as error:
            kinds = error.kinds
    raise CannotKeepError("the types of its variables change from trip to trip")


@contextmanager
def _tracing() -> Iterator[None]:
    _depth[0] += 1
    try:
        yield
    finally:
        _depth[0] -= 1


# -- loops -----------------------------------------------------------------------------------------


def repeat(test: Any, body: Any, names: Sequence[str], values: Sequence[Any]) -> Sequence[Any]:
    """Return the variables behind a `while`."""
    if current_tracer() is not None:
        try:
            return _kept(_kept_while, (test, body, values), names, _first_kinds(values))
        except Exception as error:  # whatever a body does with symbols that it cannot
            if isinstance(truth(test(*values)), Symbol):
                raise _explained(error, "while") from error
    return _run_while(test, body, values)


def _run_while(test: Any, body: Any, values: Sequence[Any]) -> Sequence[Any]:
    trips = 0
    while True:
        holds = truth(test(*values))
        if isinstance(holds, Symbol):
            raise CannotKeepError("the condition of a while depends on values only in later trips")
        if not holds:
            return values
        trips += 1
        if trips > MOST_TRIPS and current_tracer() is not None:
            raise CannotKeepError(f"a while of more than {MOST_TRIPS} trips cannot be written out")
        values = body(*values)


def _kept_while(
    kinds: list[VariableKind], names: Sequence[str], test: Any, body: Any, values: Sequence[Any]
) -> Sequence[Any]:
    holds: list[bool] = []
    passed: set[str] = set()

    def asked(carry: dict[str, Any]) -> Any:
        found = truth(test(*_values(kinds, list(carry.values()))))
        holds[:] = [isinstance(found, Symbol)]
        return found if holds[0] else _constant(found)

    def step(carry: dict[str, Any]) -> dict[str, Any]:
        after = trip(body, _values(kinds, list(carry.values())), names, passed)
        _check_trip(kinds, after, names)
        return _carry(kinds, names, after)

    with _tracing():
        made = while_loop(asked, step, _carry(kinds, names, values))
    if not holds[0]:
        raise CannotKeepError("the condition of the while is a value of Python's")
    return marked(names, _values(kinds, list(made.values())), passed)


def each(
    items: Any,
    body: Any,
    names: Sequence[str],
    values: Sequence[Any],
    flag: str,
    label: str,
) -> Sequence[Any]:
    """Return the variables behind a `for`; `flag` is the one that is set where it ends early."""
    if isinstance(items, CountedRows):
        return _counted(items, body, names, values, flag)
    rows = rows_of(items) if current_tracer() is not None else None
    if rows is not None and rows.length > 1:
        try:
            given = rows, body, values, flag, label
            return _kept(_kept_for, given, names, _first_kinds(values))
        except Exception as error:  # as above; the loop is written trip by trip
            failure = error
    else:
        failure = CannotKeepError("it runs over objects of Python's")
    where = names.index(flag) if flag else -1
    for item in items:
        values = body(item, *values)
        if flag:
            stop = truth(values[where])
            if isinstance(stop, Symbol):
                raise _explained(failure, "for") from failure
            if stop:
                break
    return values


def _kept_for(
    kinds: list[VariableKind],
    names: Sequence[str],
    rows: LoopRows,
    body: Any,
    values: Sequence[Any],
    flag: str,
    label: str,
) -> Sequence[Any]:
    xs = rows.columns(label)
    passed: set[str] = set()

    def step(carry: dict[str, Any], x: dict[str, Any]) -> tuple[dict[str, Any], None]:
        current = _values(kinds, list(carry.values()))
        after = trip(body, (rows.item(x), *current), names, passed)
        _check_trip(kinds, after, names)
        return _carry(kinds, names, after), None

    until = None if not flag else lambda carry, _: carry[flag]
    with _tracing():
        made, _ = scan(step, _carry(kinds, names, values), xs, until=until)
    return marked(names, _values(kinds, list(made.values())), passed)


def _counted(
    rows: CountedRows, body: Any, names: Sequence[str], values: Sequence[Any], flag: str
) -> Sequence[Any]:
    """Run a `for` over a range whose end is a symbol: a `while` that counts."""
    where = names.index(flag) if flag else -1

    def test(i: Any, *current: Any) -> Any:
        goes_on = i < rows.stop if rows.step > 0 else i > rows.stop
        return both(lambda: negated(current[where]), lambda: goes_on) if flag else goes_on

    def step(i: Any, *current: Any) -> Sequence[Any]:
        return (i + rows.step, *body(i, *current))

    return repeat(test, step, ("count", *names), (rows.start, *values))[1:]


def _first_kinds(values: Sequence[Any]) -> list[VariableKind]:
    """Return what variables of a loop are if they stay what they are; numbers may change."""
    return [stays(kind_of(value)) for value in values]


def _check_trip(kinds: Sequence[VariableKind], after: Any, names: Sequence[str]) -> None:
    """Raise unless variables are behind a trip what they were before."""
    started = [
        stays(kind_of(value)) if kind is NOTHING else kind
        for kind, value in zip(kinds, after, strict=True)
    ]
    _check_kinds(started, after, names)
    if any(a is not b for a, b in zip(started, kinds, strict=True)):
        raise _OtherKindsError(started)


def _carry(
    kinds: Sequence[VariableKind], names: Sequence[str], values: Sequence[Any]
) -> dict[str, Any]:
    """Return the tensors of variables by their names."""
    found: dict[str, Any] = {}
    for kind, name, value in zip(kinds, names, values, strict=True):
        parts = tensors(value, kind)
        keys = [name] if len(parts) == 1 else [f"{name}_{i}" for i in range(len(parts))]
        found.update(zip(keys, parts, strict=True))
    return found


def _explained(error: Exception, word: str) -> CannotKeepError:
    return CannotKeepError(f"a `{word}` that depends on values cannot be kept: {error}")
