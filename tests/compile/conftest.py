"""With --few, run one sample of each operator: the one with most axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--few"):
        return
    best: dict[tuple[str, str], pytest.Item] = {}
    for item in items:
        case = _case_of(item)
        if case is not None:
            key = (item.originalname, case.name)  # type: ignore[attr-defined]  # of a function
            if key not in best or _axes(case) > _axes(_case_of(best[key])):
                best[key] = item
    kept = set(best.values())
    dropped = [item for item in items if _case_of(item) is not None and item not in kept]
    config.hook.pytest_deselected(items=dropped)
    items[:] = [item for item in items if item not in set(dropped)]


def _case_of(item: pytest.Item) -> Any:
    """Return the sample of the conformance suite that a test is about, or None."""
    found = getattr(item, "callspec", None)
    return None if found is None else found.params.get("case")


def _axes(case: Any) -> int:
    if isinstance(case.sample, Exception):
        return -1
    given = (*case.sample.args, *case.sample.kwargs.values())
    return max((value.ndim for value in given if isinstance(value, np.ndarray)), default=0)
