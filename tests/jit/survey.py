"""Show where `wf.jit` differs from eager code, program by program.

python -m tests.jit.survey [part of a name ...] [--update]

--update   take programs and seeds that pass out of known_differences.toml
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterable, Sequence

import weft as wf
from tests.programs.python_text import write_program

from .harness import check
from .known_differences import Known, read_known, write_known
from .random_programs import differs
from .test_programs import MODES, PROGRAMS


def main(arguments: Sequence[str] | None = None) -> None:
    """Run programs, print what differs, and write the table if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", help="parts of the names of programs")
    parser.add_argument("--update", action="store_true", help="take out what passes")
    options = parser.parse_args(arguments)
    names = [n for n in PROGRAMS if not options.parts or any(p in n for p in options.parts)]
    known = read_known()
    failing = {name: _failing_modes(name, known) for name in names}
    if options.update:
        write_known(updated(known, failing, _failing_seeds(known.seeds)))


def updated(known: Known, failing: dict[str, list[str]], seeds: Iterable[int]) -> Known:
    """Return the table without what passes; programs that were not run stay."""
    causes = {
        cause: [entry for program in programs for entry in _entries(program, failing)]
        for cause, programs in known.causes.items()
    }
    return Known({cause: kept for cause, kept in causes.items() if kept}, list(seeds))


def _entries(entry: str, failing: dict[str, list[str]]) -> list[str]:
    """Return an entry of the table as it is now: whole, for one mode, or none."""
    mode, _, rest = entry.partition("-")
    name, modes = (rest, [mode]) if mode in MODES else (entry, list(MODES))
    if name not in failing:
        return [entry]
    still = [mode for mode in modes if mode in failing[name]]
    return [name] if still == list(MODES) else [f"{mode}-{name}" for mode in still]


def _failing_modes(name: str, known: Known) -> list[str]:
    found = {mode: _difference(name, mode) for mode in MODES}
    for mode, text in found.items():
        expected = known.cause_of(mode, name)
        if text and not expected:
            print(f"NEW {mode}-{name}: {text}\n")
        elif expected and not text:
            print(f"passes {mode}-{name}: {expected}\n")
        elif text:
            print(f"known {mode}-{name}: {text}\n")
    return [mode for mode, text in found.items() if text]


def _difference(name: str, mode: str) -> str | None:
    before = wf.config.debug_interpret
    wf.config.debug_interpret = mode == "interpreted"
    try:
        check(PROGRAMS[name], wf.jit)
    except Exception as error:  # whatever goes wrong is shown
        return f"{type(error).__name__}: {error}"
    finally:
        wf.config.debug_interpret = before
    return None


def _failing_seeds(seeds: Iterable[int]) -> list[int]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [seed for seed in seeds if differs(write_program(seed), seed, wf.jit)]


if __name__ == "__main__":
    main()
