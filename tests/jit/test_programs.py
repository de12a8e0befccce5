"""Programs give the same eagerly, jitted, and jitted but interpreted: after every call."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import weft as wf
from tests.jit import programs
from tests.jit.harness import Program, check

MODES = ("compiled", "interpreted")
INTERPRETED = 4  # every which program is also interpreted in ordinary runs
MODULES = sorted(info.name for info in pkgutil.iter_modules(programs.__path__))


def found_programs() -> Iterator[tuple[str, Program]]:
    """Yield all programs by file and name."""
    for name in MODULES:
        module = importlib.import_module(f"{programs.__name__}.{name}")
        for value in vars(module).values():
            if isinstance(value, Program) and value.make.__module__ == module.__name__:
                yield f"{name}-{value.name}", value


PROGRAMS = dict(found_programs())


def all_tests() -> Iterator[object]:
    """Yield modes and names.

    What is interpreted is recorded in the same way as what is compiled, and graphs are run in both
    ways by tests of their own: a part of the programs is enough, but for long runs.
    """
    for number, name in enumerate(PROGRAMS):
        for mode in MODES:
            is_long = mode == "interpreted" and number % INTERPRETED
            yield pytest.param(mode, name, marks=[pytest.mark.long] if is_long else [])


@pytest.mark.parametrize(("mode", "name"), list(all_tests()))
def test_jit_does_what_eager_does(mode: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wf.config, "debug_interpret", mode == "interpreted")
    check(PROGRAMS[name], wf.jit)


def test_there_are_programs_of_many_subjects() -> None:
    assert len(PROGRAMS) >= 150
    assert len({program.name for program in PROGRAMS.values()}) == len(PROGRAMS)
