"""How the tests of graphs run them: node by node, compiled, or both ways in turn."""

from __future__ import annotations

import pytest

import weft as wf

# What a session promises, whatever runs the graph. The rest of the tests compare bits with eager
# mode, which is the promise of going from node to node alone; tests/compile has its counterparts.
BOTH_WAYS = (
    "test_bad_input",
    "test_bad_runs",
    "test_classic_programs",
    "test_control_errors",
    "test_session",
    "test_state",
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__.rpartition(".")[2] in BOTH_WAYS:
        metafunc.parametrize("_way", ["interpreted", "compiled"], indirect=True)


@pytest.fixture(autouse=True)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wf.config, "debug_interpret", getattr(request, "param", "") != "compiled")
