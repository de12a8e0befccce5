"""Tests of wf.debug say themselves whether graphs are compiled; by default they are."""

from __future__ import annotations

import pytest

import weft as wf


@pytest.fixture(autouse=True)
def _way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wf.config, "debug_interpret", False)
