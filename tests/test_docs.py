"""The examples in the documentation are true."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [p for p in sorted((ROOT / "docs").glob("*.md")) if ">>>" in p.read_text()]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_in_page(page: Path) -> None:
    failed, attempted = doctest.testfile(str(page), module_relative=False, optionflags=OPTIONS)
    assert attempted > 0
    assert failed == 0


def test_readme_has_both_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert text.count("<!-- command: run -->") == 1
    assert text.count("<!-- command: test -->") == 1
