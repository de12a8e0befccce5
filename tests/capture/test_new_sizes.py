"""Calls whose sizes hardly ever come again run eagerly; sizes that do come again are compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.capture.new_sizes import MOST_IN_VAIN


def weighted(xs: list[Any]) -> Any:
    """Return a sum that needs the very numbers of all sizes."""
    return sum((wf.tensor(x) * list(range(len(x)))).sum() for x in xs)


def arrays(*sizes: int) -> list[Any]:
    return [np.linspace(1.0, 2.0, size) for size in sizes]


def check(jitted: Any, *sizes: int) -> None:
    np.testing.assert_allclose(
        jitted(arrays(*sizes)).numpy(), weighted(arrays(*sizes)).numpy(), rtol=1e-12
    )


def counts(jitted: Any) -> tuple[int, int]:
    stats = jitted.stats()
    return stats["recordings"], stats["eager_calls"]


def in_vain() -> Any:
    """Return a function of which as many programs ran once each as are borne."""
    jitted = wf.jit(weighted)
    for n in range(MOST_IN_VAIN):
        check(jitted, 2 + n, 9 - n)
    assert counts(jitted) == (MOST_IN_VAIN, 0)
    return jitted


def test_new_sizes_run_eagerly_and_are_compiled_when_they_come_again() -> None:
    jitted = in_vain()
    with pytest.warns(RuntimeWarning, match="weighted runs eagerly: its arguments have other siz"):
        check(jitted, 20, 30)
    check(jitted, 30, 20)
    assert counts(jitted) == (MOST_IN_VAIN, 2)  # one warning is enough
    assert "other sizes in nearly every call" in jitted.explain()
    for _ in range(3):
        check(jitted, 20, 30)
    assert counts(jitted) == (MOST_IN_VAIN + 1, 2)
    check(jitted, 2, 9)
    assert counts(jitted) == (MOST_IN_VAIN + 1, 2)  # what is known stays compiled


def test_programs_that_are_used_speak_for_new_ones() -> None:
    jitted = in_vain()
    check(jitted, 2, 9)
    check(jitted, 20, 30)
    assert counts(jitted) == (MOST_IN_VAIN + 1, 0)


def test_other_kinds_of_calls_are_not_concerned() -> None:
    jitted = in_vain()
    check(jitted, 3, 4, 5)
    assert counts(jitted) == (MOST_IN_VAIN + 1, 0)


def test_who_insists_on_programs_gets_them() -> None:
    jitted = wf.jit(weighted, strict=True)
    for n in range(MOST_IN_VAIN + 2):
        check(jitted, 2 + n, 9 - n)
    assert counts(jitted) == (MOST_IN_VAIN + 2, 0)
