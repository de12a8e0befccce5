"""What `wf.jit` does not do yet as eager code does, by cause: known_differences.toml.

Each of these tests must fail. `python -m tests.jit.survey --update` takes those out that pass.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

PATH = Path(__file__).with_suffix(".toml")
_HEAD = """\
# A program is named by its file and name, with the mode in front if it differs in that one only.
# Seeds are those of random programs; what they need is among the causes.
"""


class Known(NamedTuple):
    """Programs by the cause of their difference, and seeds of random programs."""

    causes: dict[str, list[str]]
    seeds: list[int]

    def cause_of(self, mode: str, name: str) -> str | None:
        """Return why a program differs in a mode; None if it is not known to."""
        for cause, programs in self.causes.items():
            if name in programs or f"{mode}-{name}" in programs:
                return cause
        return None


def read_known(path: Path = PATH) -> Known:
    """Return the table of a file."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    causes = {entry["cause"]: entry["programs"] for entry in table.get("known", [])}
    return Known(causes, table["seeds"])


def write_known(known: Known, path: Path = PATH) -> None:
    """Write a table, the cause with most programs first."""
    lines = [_HEAD + f"seeds = {known.seeds}"]
    for cause, programs in sorted(known.causes.items(), key=lambda item: -len(item[1])):
        names = "".join(f'    "{name}",\n' for name in sorted(programs))
        lines.append(f'[[known]]\ncause = "{cause}"\nprograms = [\n{names}]')
    path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")
