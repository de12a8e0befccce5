"""Run graphs node by node: passes are compared by bits, and by what each node does."""

from __future__ import annotations

import pytest

import weft as wf


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wf.config, "debug_interpret", True)
