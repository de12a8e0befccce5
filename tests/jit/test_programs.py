"""Programs give the same eagerly, jitted, and jitted but interpreted: after every call."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import weft as wf
from tests.jit import programs
from tests.jit.harness import Program, check
from tests.jit.known_differences import Known, read_known, write_known

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


KNOWN = read_known()


def all_tests() -> Iterator[object]:
    """Yield modes and names; what is known to differ must fail, so that it is not forgotten.

    What is interpreted is recorded in the same way as what is compiled, and graphs are run in both
    ways by tests of their own: a part of the programs is enough, but for long runs.
    """
    for number, name in enumerate(PROGRAMS):
        for mode in MODES:
            reason = KNOWN.cause_of(mode, name)
            marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
            if mode == "interpreted" and number % INTERPRETED:
                marks.append(pytest.mark.long)
            yield pytest.param(mode, name, marks=marks)


@pytest.mark.parametrize(("mode", "name"), list(all_tests()))
def test_jit_does_what_eager_does(mode: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wf.config, "debug_interpret", mode == "interpreted")
    check(PROGRAMS[name], wf.jit)


def test_known_differences_are_of_programs() -> None:
    names = {f"{mode}-{name}" for mode in MODES for name in PROGRAMS} | PROGRAMS.keys()
    assert {entry for programs in KNOWN.causes.values() for entry in programs} <= names


def test_the_table_is_written_as_it_is_read(tmp_path: Path) -> None:
    known = Known({"one": ["b"], "two": ["c", "a"]}, [3, 5])
    write_known(known, tmp_path / "table.toml")
    assert read_known(tmp_path / "table.toml") == Known({"two": ["a", "c"], "one": ["b"]}, [3, 5])


def test_there_are_programs_of_many_subjects() -> None:
    assert len(PROGRAMS) >= 150
    assert len({program.name for program in PROGRAMS.values()}) == len(PROGRAMS)
