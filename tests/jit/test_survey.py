"""The table of known differences loses what passes, and nothing else."""

from __future__ import annotations

import pytest

from tests.jit.known_differences import Known
from tests.jit.survey import updated

BOTH = ["compiled", "interpreted"]


@pytest.mark.parametrize(
    ("entry", "failing", "kept"),
    [
        ("a-b", {"a-b": BOTH}, ["a-b"]),
        ("a-b", {"a-b": ["compiled"]}, ["compiled-a-b"]),
        ("a-b", {"a-b": []}, []),
        ("a-b", {}, ["a-b"]),
        ("compiled-a-b", {"a-b": ["compiled"]}, ["compiled-a-b"]),
        ("compiled-a-b", {"a-b": ["interpreted"]}, []),
    ],
)
def test_what_passes_leaves_the_table(entry, failing, kept) -> None:
    known = updated(Known({"cause": [entry]}, [1, 2]), failing, [2])
    assert known == Known({"cause": kept} if kept else {}, [2])
