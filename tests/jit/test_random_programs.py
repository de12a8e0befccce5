"""Random Python programs give the same eagerly and jitted, after every call."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import weft as wf
from tests.jit.harness import Jit, no_jit
from tests.jit.random_programs import Draw, differs, shrink
from tests.programs.python_states import draw_state_calls, write_state_program
from tests.programs.python_text import draw_calls, write_program

ORDINARY, LONG = 15, 2000
STATES, MANY_STATES = 5, 500  # programs with states of many kinds
PART = 50  # programs of a test that runs with --long


def check_program(text: str, seed: int, jit: Jit, draw: Draw = draw_calls) -> None:
    """Fail with a small program that behaves differently."""
    if (found := differs(text, seed, jit, draw)) is None:
        return
    small = smaller_program(text, seed, jit, found, draw)
    how = differs(small, seed, jit, draw)
    pytest.fail(f"program {seed}, made smaller:\n\n{small}\n{how}", pytrace=False)


def smaller_program(text: str, seed: int, jit: Jit, found: str, draw: Draw = draw_calls) -> str:
    """Leave out of a program what its first difference does not need."""

    def fails(candidate: str) -> bool:
        try:
            how = differs(candidate, seed, jit, draw)
            return _first_path(how or "") == _first_path(found)
        except Exception:
            return False

    return shrink(text, fails)


def _first_path(difference: str) -> str:
    """Return what differs first, whichever element of it and after whichever call."""
    _, _, line = difference.partition("\n")
    return re.sub(r"\d+", "", line.partition(": ")[0])


def stale(function: Callable[..., object]) -> Callable[..., object]:
    """Return the first result for ever, as a jit without guards would."""
    results: list[object] = []

    def called(*args: object) -> object:
        if not results:
            results.append(function(*args))
        return results[0]

    return called


def test_a_program_is_like_itself() -> None:
    for seed in range(5):
        assert differs(write_program(seed), seed, no_jit) is None


def test_a_wrong_jit_is_seen_and_the_program_made_smaller() -> None:
    text = write_program(0)
    small = smaller_program(text, 0, stale, differs(text, 0, stale) or "")
    assert "after call" in (differs(small, 0, stale) or "")
    assert len(small.splitlines()) < len(text.splitlines())


def test_programs_are_made_as_small_as_they_fail() -> None:
    text = "a = 1\nif a:\n    for b in a:\n        a = needed(b)\n    a += 1\nelse:\n    a = 2\n"
    assert shrink(text, lambda candidate: "needed" in candidate) == "a = needed(b)\n"


@pytest.mark.parametrize("seed", range(ORDINARY))
def test_random_programs(seed: int) -> None:
    check_program(write_program(seed), seed, wf.jit)


@pytest.mark.parametrize("seed", range(STATES))
def test_random_programs_with_many_states(seed: int) -> None:
    check_program(write_state_program(seed), seed, wf.jit, draw_state_calls)


@pytest.mark.long
@pytest.mark.parametrize("first", range(STATES, MANY_STATES, PART))
def test_many_random_programs_with_many_states(first: int) -> None:
    for seed in range(first, min(first + PART, MANY_STATES)):
        check_program(write_state_program(seed), seed, wf.jit, draw_state_calls)


@pytest.mark.long
@pytest.mark.parametrize("first", range(ORDINARY, LONG, PART))
def test_many_random_programs(first: int) -> None:
    seeds = range(first, min(first + PART, LONG))
    found = {seed: differs(write_program(seed), seed, wf.jit) for seed in seeds}
    wrong = [seed for seed, difference in found.items() if difference]
    # `check_program` makes one smaller; here it would take as long as all others.
    assert not wrong, f"programs {wrong} differ; the first {found[wrong[0]]}"
