"""Run one program eagerly and jitted, and compare all that it does after every call.

A program is a factory that takes `jit` and returns a `Case`. It is written as a user would write
it; the eager run is the same text with a `jit` that returns what it is given.

    @program()
    def early_return(jit):
        net = wf.nn.Linear(3, 1)

        @jit
        def step(x): ...

        return Case(step, [(rows(4, 3),), (rows(4, 3, seed=1),)], {"net": net})
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import os
import random
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import BuiltinMethodType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

import weft as wf

from .compare import differences
from .observe import Facts, Printed, observe, random_positions

MARK = "# falls back"  # ends the line that the warning must name
_INSIDE = ("<weft.", *map(str, (Path(wf.__file__).parent, __file__, Path(np.__file__).parent)))

Jit = Callable[..., Any]


class Call:
    """One call of a step: its arguments, and what the outside does before it."""

    def __init__(self, *args: Any, before: Callable[[], Any] | None = None, **kwargs: Any) -> None:
        self.args, self.kwargs, self.before = args, kwargs, before


@dataclass
class Case:
    """A step, the calls to make, and what to look at after each besides results and arguments.

    A function in `state` is called for the value to look at.
    """

    step: Callable[..., Any]
    calls: Sequence[Call | tuple[Any, ...]]
    state: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """A factory of cases, and what jit promises for it.

    captured     after its first calls it runs compiled, without a warning
    falls_back   it runs eagerly, after one warning that names the line that ends in MARK
    Neither: jit may do as it likes, so long as nothing differs.
    """

    make: Callable[[Jit], Case]
    captured: bool
    falls_back: bool

    @property
    def name(self) -> str:
        return self.make.__name__


def program(
    *, captured: bool | None = None, falls_back: bool = False
) -> Callable[[Callable[[Jit], Case]], Program]:
    """Declare a program; it is expected to be captured unless it says otherwise."""
    expected = not falls_back if captured is None else captured
    return lambda make: Program(make, expected, falls_back)


# -- running -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What could be seen after one call, and whose Python ran in it."""

    facts: Facts
    warned: list[str]
    entered: frozenset[CodeType]


@dataclass
class Run:
    """All outcomes of a program, and the code of the functions that it jitted, by their names."""

    outcomes: list[Outcome] = field(default_factory=list)
    jitted: dict[str, CodeType] = field(default_factory=dict)

    @property
    def warned(self) -> list[str]:
        return [text for outcome in self.outcomes for text in outcome.warned]


def run(make: Callable[[Jit], Case], jit: Jit) -> Run:
    """Make a fresh case and call its step as often as it says."""
    with _usual_settings():
        record = Run()
        case = make(_recorded(jit, record))
        results: list[Any] = []
        for call in case.calls:
            record.outcomes.append(_run_call(case, call, results))
        return record


@functools.cache
def expected_run(tested: Program) -> Run:
    """Return what a program does eagerly, which all ways to run it must do."""
    return run(tested.make, no_jit)


def no_jit(function: Any = None, /, **options: Any) -> Any:
    """Return the function itself: the program as plain eager code."""
    return function if function is not None else (lambda f: f)


def _recorded(jit: Jit, record: Run) -> Jit:
    def wrapped(function: Any = None, /, **options: Any) -> Any:
        if function is None:
            return lambda f: wrapped(f, **options)
        code = _code_of(function)
        if code is not None:
            record.jitted[code.co_name] = code
        return jit(function, **options) if options else jit(function)

    return wrapped


def _code_of(function: Any) -> CodeType | None:
    """Return the code that runs when a function, method, partial or module is called eagerly."""
    if isinstance(function, wf.nn.Module):
        function = function.forward
    while isinstance(function, functools.partial):
        function = function.func
    code: CodeType | None = getattr(function, "__code__", None)
    return code


@contextlib.contextmanager
def _entered_code(entered: set[CodeType]) -> Iterator[None]:
    """Collect the code of all Python functions that this thread calls."""

    def note(frame: Any, event: str, arg: Any) -> None:
        if event == "call":
            entered.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def _run_call(case: Case, call: Call | tuple[Any, ...], results: list[Any]) -> Outcome:
    call = call if isinstance(call, Call) else Call(*call)
    if call.before is not None:
        call.before()
    printed, entered = io.StringIO(), set[CodeType]()
    raised: Facts = {"raised": "nothing", "message": Printed("")}
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"weft\.")  # as Weft does
        try:
            with _entered_code(entered):
                results.append(case.step(*call.args, **call.kwargs))
        except Exception as error:
            raised = _describe(error)
            results.append(None)
    seen = {
        "result": results[-1],
        "argument": call.args,
        "keyword": call.kwargs,
        "state": _read(case.state),
        "earlier result": results[:-1],  # memory that a later call may have used again
        "random": random_positions(),
        "grad mode": wf.is_grad_enabled(),
        "default float": wf.config.default_float,
    }
    facts = raised | observe(seen) | {"printed": Printed(printed.getvalue())}
    warned = [f"{w.category.__name__}: {w.message}" for w in caught]
    return Outcome(facts, warned, frozenset(entered))


def _read(state: Mapping[str, Any]) -> dict[str, Any]:
    getters = (FunctionType, MethodType, BuiltinMethodType)
    return {name: x() if isinstance(x, getters) else x for name, x in state.items()}


def _describe(error: Exception) -> Facts:
    """Return type, cause and the innermost line of the user's, and the message."""
    frames = traceback.extract_tb(error.__traceback__)
    mine = [f"{f.name}, line {f.lineno}" for f in frames if not f.filename.startswith(_INSIDE)]
    cause = f" from {type(error.__cause__).__name__}" if error.__cause__ is not None else ""
    place = mine[-1] if mine else "a line of nobody"
    text = f"{type(error).__qualname__}{cause} in {place}"
    return {"raised": text, "message": Printed(str(error))}


@contextlib.contextmanager
def _usual_settings() -> Iterator[None]:
    """Begin with equal seeds, and leave no setting of the process changed."""
    kept = wf.config.default_float, wf.is_grad_enabled(), os.environ.copy()
    wf.manual_seed(0)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  (programs of users draw from it)
    try:
        yield
    finally:
        wf.config.default_float = kept[0]
        if wf.is_grad_enabled() != kept[1]:
            wf.set_grad_enabled(kept[1])
        os.environ.clear()
        os.environ.update(kept[2])


# -- checking ----------------------------------------------------------------------------------


def check(tested: Program, jit: Jit) -> None:
    """Fail if the jitted program differs from the eager one, or is not run as promised."""
    expected, found = expected_run(tested), run(tested.make, jit)
    check_equal(expected, found)
    extra = _without(found.warned, expected.warned)
    if tested.falls_back:
        _check_warning(tested, extra)
    elif tested.captured:
        assert not extra, f"captured programs warn of nothing: {extra}"
        _check_captured(found)


def _check_captured(found: Run) -> None:
    """Fail if a jitted function was run as Python in each call."""
    for name, code in found.jitted.items():
        compiled = [code not in outcome.entered for outcome in found.outcomes]
        assert any(compiled), f"no call ran {name} compiled: its Python was run each time"


def check_equal(expected: Run, found: Run) -> None:
    """Fail with the first call after which something differs, and all that does."""
    assert len(expected.outcomes) == len(found.outcomes)
    for number, (a, b) in enumerate(zip(expected.outcomes, found.outcomes, strict=True)):
        lines = differences(a.facts, b.facts)
        assert not lines, f"after call {number}:\n  " + "\n  ".join(lines)


def _without(found: list[str], expected: list[str]) -> list[str]:
    """Return the warnings that the eager run did not give."""
    rest = list(found)
    for text in expected:
        assert text in rest, f"eager warns {text!r}, jit does not"
        rest.remove(text)
    return rest


def _check_warning(tested: Program, warned: list[str]) -> None:
    assert len(warned) == 1, f"one warning of what runs eagerly, not {len(warned)}: {warned}"
    assert "\n" not in warned[0], f"one line, not {warned[0]!r}"
    place = marked_line(tested.make)
    assert place in warned[0], f"the warning must name {place}: {warned[0]!r}"


def marked_line(make: Callable[..., Any]) -> str:
    """Return `file.py:12`, the line of a program that ends in MARK."""
    lines, first = inspect.getsourcelines(make)
    for number, line in enumerate(lines, first):
        if line.rstrip().endswith(MARK):
            return f"{Path(make.__code__.co_filename).name}:{number}"
    raise AssertionError(f"no line of {make.__name__} ends in {MARK!r}")


# -- data of programs ----------------------------------------------------------------------------


def rows(*shape: int, seed: int = 0, dtype: Any = np.float32) -> wf.Tensor:
    """Return a tensor of standard normal numbers."""
    return wf.tensor(array(*shape, seed=seed, dtype=dtype))


def array(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """Return an array of standard normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def labels(n: int, classes: int, seed: int = 0) -> wf.Tensor:
    """Return n class numbers."""
    return wf.tensor(np.random.default_rng(seed).integers(0, classes, n))
