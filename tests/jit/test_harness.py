"""The harness sees what a wrong jit would do: each of these is wrong in one way."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft as wf
from tests.jit.compare import differences
from tests.jit.harness import Case, Program, check, marked_line, no_jit, program, rows
from tests.jit.observe import Printed, Same, observe


@program()
def counting(jit):
    net = wf.nn.Linear(3, 1)
    log = []

    @jit
    def step(x):
        net.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        log.append(loss.item())
        return loss

    return Case(step, [(rows(2, 3, seed=s),) for s in range(3)], {"net": net, "log": log})


@program()
def failing(jit):
    @jit
    def step(x):
        if x.sum() > 0:
            raise ValueError("positive")
        return x

    return Case(step, [(rows(3).abs(),), (-rows(3).abs(),), (rows(3).abs(),)])


@program(captured=False)
def printing(jit):
    @jit
    def step(x):
        print("sum", x.sum().item())
        return x * 2

    return Case(step, [(rows(3, seed=s),) for s in range(3)])


@program(falls_back=True)
def warned_of(jit):
    @jit
    def step(x):
        return x * 2  # falls back

    return Case(step, [(rows(3),)] * 3)


Jitted = Callable[..., Any]


def stale(function: Jitted) -> Jitted:
    """Return the first result for ever."""
    results: list[Any] = []

    def called(*args):
        results.append(results[0] if results else function(*args))
        return results[0]

    return called


def without_effects(function: Jitted) -> Jitted:
    """Compute each result anew and leave everything else as it was."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    logs = [x for x in cells if isinstance(x, list)]

    def called(*args):
        kept = copy.deepcopy(logs)
        result = function(*args)
        for log, old in zip(logs, kept, strict=True):
            log[:] = old
        return result

    return called


def wrong_dtype(function: Jitted) -> Jitted:
    return lambda *args: function(*args).to(wf.float64)


def plain_number(function: Jitted) -> Jitted:
    return lambda *args: function(*args).sum().item()


def detached(function: Jitted) -> Jitted:
    return lambda *args: function(*args).detach()


def slightly_off(function: Jitted) -> Jitted:
    return lambda *args: function(*args) * 1.0001


def one_memory(function: Jitted) -> Jitted:
    """Write every result into the same tensor."""
    kept: list[Any] = []

    def called(*args):
        result = function(*args)
        if not kept:
            kept.append(result)
        kept[0]._value = result._value
        return kept[0]

    return called


def drawing(function: Jitted) -> Jitted:
    """Move the random generator."""

    def called(*args):
        wf.rand(1)
        return function(*args)

    return called


def runs_twice(function: Jitted) -> Jitted:
    def called(*args):
        function(*args)
        return function(*args)

    return called


def other_message(function: Jitted) -> Jitted:
    def called(*args):
        try:
            return function(*args)
        except ValueError:
            raise ValueError("not positive") from None

    return called


def other_line(function: Jitted) -> Jitted:
    def called(*args):
        if args[0].sum() > 0:
            raise ValueError("positive")
        return function(*args)

    return called


def swallowing(function: Jitted) -> Jitted:
    def called(*args):
        try:
            return function(*args)
        except ValueError:
            return None

    return called


WRONG = [
    *((counting, jit) for jit in (stale, without_effects, wrong_dtype, plain_number, detached)),
    *((counting, jit) for jit in (slightly_off, one_memory, drawing, runs_twice)),
    *((failing, jit) for jit in (other_message, other_line, swallowing)),
    *((printing, jit) for jit in (stale, runs_twice)),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: f"{case[0].name}-{case[1].__name__}")
def test_a_wrong_jit_is_seen(case: tuple[Program, Jitted]) -> None:
    tested, jit = case
    with pytest.raises(AssertionError, match=r"after call \d"):
        check(tested, jit)


@pytest.mark.parametrize("tested", [failing, printing], ids=lambda tested: tested.name)
def test_eager_code_is_like_itself(tested: Program) -> None:
    check(Program(tested.make, captured=False, falls_back=False), no_jit)


def warning_jit(text: str, *, times: int = 1) -> Jitted:
    left = [times]

    def jit(function):
        @functools.wraps(function)
        def called(*args):
            if left[0]:
                left[0] -= 1
                warnings.warn(text, UserWarning, stacklevel=2)
            return function(*args)

        return called

    return jit


def test_one_warning_names_the_line() -> None:
    check(warned_of, warning_jit(f"step runs eagerly: {marked_line(warned_of.make)}"))


@pytest.mark.parametrize(
    ("jit", "message"),
    [
        (no_jit, "not 0"),
        (warning_jit("step runs eagerly"), "must name"),
        (warning_jit("step runs\neagerly"), "one line"),
        (warning_jit("step runs eagerly", times=3), "not 3"),
    ],
)
def test_other_warnings_are_refused(jit: Jitted, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check(warned_of, jit)


def test_captured_programs_run_compiled() -> None:
    with pytest.raises(AssertionError, match="no call ran step compiled"):
        check(failing, no_jit)


def test_captured_programs_may_not_warn() -> None:
    with pytest.raises(AssertionError, match="warn of nothing"):
        check(failing, warning_jit("anything"))


def test_differences_name_the_place() -> None:
    a = observe({"x": {"deep": [wf.tensor([1.0, 2.0])]}, "n": 1})
    b = observe({"x": {"deep": [wf.tensor([1.0, 2.5])]}, "n": 1.0})
    values, number = differences(a, b)
    assert values.startswith("x['deep'][0].values: 1 of 2 elements differ; at (1,) eager gives")
    assert values.endswith("np.float32(2.0), jit np.float32(2.5)")
    assert number == "n: eager gives 1 (int), jit 1.0 (float)"


def test_shared_objects_are_seen() -> None:
    x = wf.tensor([1.0])
    assert observe({"a": x, "b": x})["b"] == Same("a")
    assert differences(observe({"a": x, "b": x}), observe({"a": x, "b": x.clone()}))


def test_missing_and_additional_facts_are_named() -> None:
    lines = differences(observe({"a": {"k": 1}}), observe({"a": {"m": 1}}))
    assert "a['k']: eager gives 1 (int), jit nothing" in lines
    assert "a['m']: eager gives nothing, jit 1 (int)" in lines


@pytest.mark.parametrize(
    ("found", "same"),
    [
        (1.0 + 5e-6, True),
        (1.0 + 1e-4, False),
        (float("nan"), False),
        (float("inf"), False),
    ],
)
def test_rounding_is_no_difference(found: float, same: bool) -> None:
    assert (not differences({"x": 1.0}, {"x": found})) is same
    array = np.array([1.0], np.float32)
    assert (not differences({"x": array}, {"x": np.array([found], np.float32)})) is same


def test_not_a_number_and_infinity_equal_themselves() -> None:
    array = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    assert not differences({"x": array}, {"x": array.copy()})
    assert differences({"x": array}, {"x": -array})


@pytest.mark.parametrize(
    ("found", "same"),
    [("loss 0.30000001 of 3", True), ("loss 0.31 of 3", False), ("Loss 0.3 of 3", False)],
)
def test_printed_numbers_are_compared_as_numbers(found: str, same: bool) -> None:
    assert (not differences({"t": Printed("loss 0.3 of 3")}, {"t": Printed(found)})) is same
