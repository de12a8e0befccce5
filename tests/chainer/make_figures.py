"""Write figures.py from Chainer itself: run this where Chainer 7 is installed, as a module."""

from __future__ import annotations

import importlib
from pathlib import Path

from .cases import cases
from .figures_of import figures
from .runs import all_runs


def main() -> None:
    """Write the file."""
    chainer = importlib.import_module("chainer")
    lines = ['"""Figures of Chainer 7.8.1, made by make_figures.py."""', "", "FIGURES = {"]
    for case in cases(chainer.functions):
        rows = ["[" + ", ".join(f"{x:.7g}" for x in row) + "]" for row in figures(chainer, case)]
        lines.append(f'    "{case.name}": [{", ".join(rows)}],')
    lines += ["}", "", "RUNS = {"]
    for name, numbers in all_runs(chainer).items():
        lines.append(f'    "{name}": [{", ".join(f"{x:.7g}" for x in numbers)}],')
    path = Path(__file__).with_name("figures.py")
    path.write_text("\n".join([*lines, "}", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
