"""Every row of the tables in docs/coming-from is true: its code is run and its result compared."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted((DOCS / "coming-from").glob("*.md"))
SECTIONS = ("Same", "Renamed", "Different on purpose")
NUMBER = re.compile(r"(?<![\w'])-?\d+(?:\.\d*)?(?:e[+-]?\d+)?")
RESULT = re.compile(r"`(?P<result>[^`]+)`(?:; .+)?|raises `(?P<error>\w+)`(?:: .+)?")


class Row(NamedTuple):
    """A line of a table: what is written elsewhere, what here, and what comes of it."""

    page: Path
    section: str
    foreign: str
    code: str
    gives: str


def rows_of(page: Path) -> list[Row]:
    rows, section = [], ""
    for line in page.read_text().splitlines():
        if line.startswith("## "):
            section = line[3:]
        if line.startswith("| `"):
            foreign, code, gives = (cell.strip() for cell in line.strip("| ").split(" | "))
            rows.append(Row(page, section, foreign.strip("`"), code.strip("`"), gives))
    return rows


def setup_of(page: Path) -> str:
    found = re.search(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert found is not None, f"{page.name} says nothing of what its rows begin with"
    return found[1]


def run(setup: str, code: str) -> Any:
    """Return the value of the last expression, which may stand in a with statement."""
    scope: dict[str, Any] = {}
    exec(setup, scope)
    tree = ast.parse(code)
    block = tree.body[-1].body if isinstance(tree.body[-1], ast.With) else tree.body
    if isinstance(block[-1], ast.Expr):
        block[-1] = ast.Assign([ast.Name("_result", ast.Store())], block[-1].value)
    exec(compile(ast.fix_missing_locations(tree), "<row>", "exec"), scope)
    return scope.get("_result")


def check_shown(value: Any, shown: str) -> None:
    """Compare a value with what the page shows: the text, and numbers up to rounding."""
    got = " ".join(repr(value).split())
    assert NUMBER.sub("#", got).replace(" ", "") == NUMBER.sub("#", shown).replace(" ", "")
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (got, shown)]
    np.testing.assert_allclose(*numbers, rtol=1e-4, atol=1e-6)


ROWS = [row for page in PAGES for row in rows_of(page)]


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.page.stem}: {row.code}" for row in ROWS])
def test_row(row, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = RESULT.fullmatch(row.gives)
    assert expected is not None, f"{row.gives!r} is neither a result nor an error"
    if expected["error"] is None:
        check_shown(run(setup_of(row.page), row.code), expected["result"])
        return
    with pytest.raises(Exception) as caught:  # noqa: PT011  (the row names the type)
        run(setup_of(row.page), row.code)
    assert expected["error"] in [base.__name__ for base in type(caught.value).__mro__]


ALIKE = [row for row in ROWS if row.page.stem == "numpy" and row.section in SECTIONS[:2]]


@pytest.mark.parametrize("row", ALIKE, ids=[row.foreign for row in ALIKE])
def test_numpy_gives_the_same(row):
    setup = setup_of(row.page)
    if row.gives.startswith("raises"):
        with pytest.raises(ValueError):  # noqa: PT011  (NumPy words it)
            run(setup, row.foreign)
        return
    theirs, ours = run(setup, row.foreign), run(setup, row.code)
    alone = not isinstance(theirs, (list, tuple))
    for a, b in zip(*(((theirs,), (ours,)) if alone else (theirs, ours)), strict=True):
        np.testing.assert_allclose(np.asarray(b), a, rtol=1e-6)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_is_complete_and_linked(page):
    text = page.read_text()
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == list(SECTIONS)
    assert f"coming-from/{page.name}" in (DOCS / "coming-from.md").read_text()
    table_lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table_lines) == len(rows_of(page)) + 2 * len(SECTIONS)


def test_a_row_that_is_not_true_is_found():
    with pytest.raises(AssertionError):
        check_shown(np.float32(1.5), "np.float32(2.5)")
    with pytest.raises(AssertionError):
        check_shown((1, 2), "[1, 2]")
