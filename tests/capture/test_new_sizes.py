"""Calls whose sizes hardly ever come again run eagerly; sizes that do come again are compiled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.capture.new_sizes import EACH, HANDFUL, MOST_IN_VAIN


def weighted(xs: list[Any]) -> Any:
    """Return a sum that needs the very numbers of all sizes."""
    return sum((wf.tensor(x) * list(range(len(x)))).sum() for x in xs)


def arrays(*sizes: int) -> list[Any]:
    return [np.linspace(1.0, 2.0, size) for size in sizes]


def check(jitted: Any, *sizes: int) -> None:
    np.testing.assert_allclose(
        jitted(arrays(*sizes)).numpy(), weighted(arrays(*sizes)).numpy(), rtol=1e-12
    )


def check_each(jitted: Any, sizes: Iterable[int]) -> None:
    for size in sizes:
        check(jitted, size)


def counts(jitted: Any) -> tuple[int, int]:
    stats = jitted.stats()
    return stats["recordings"], stats["eager_calls"]


@pytest.fixture
def in_vain(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function of which as many programs ran once each as are borne of long ones."""
    monkeypatch.setattr("weft.capture.new_sizes.MOST_IN_VAIN", 1)  # any program is a long one
    jitted = wf.jit(weighted)
    for n in range(HANDFUL):
        check(jitted, 2 + n, 9 - n)
    assert counts(jitted) == (HANDFUL, 0)
    return jitted


def test_new_sizes_run_eagerly_and_are_compiled_when_they_come_again(in_vain: Any) -> None:
    with pytest.warns(RuntimeWarning, match="weighted runs eagerly: its arguments have other siz"):
        check(in_vain, 20, 30)
    check(in_vain, 30, 20)
    assert counts(in_vain) == (HANDFUL, 2)  # one warning is enough
    assert "other sizes in nearly every call" in in_vain.explain()
    for _ in range(3):
        check(in_vain, 20, 30)
    assert counts(in_vain) == (HANDFUL + 1, 2)
    check(in_vain, 2, 9)
    assert counts(in_vain) == (HANDFUL + 1, 2)  # what is known stays compiled


def test_programs_that_are_used_speak_for_new_ones(in_vain: Any) -> None:
    check(in_vain, 2, 9)
    check(in_vain, 20, 30)
    assert counts(in_vain) == (HANDFUL + 1, 0)


def test_other_kinds_of_calls_are_not_concerned(in_vain: Any) -> None:
    check(in_vain, 3, 4, 5)
    assert counts(in_vain) == (HANDFUL + 1, 0)


def test_who_insists_on_programs_gets_them() -> None:
    jitted = wf.jit(weighted, strict=True)
    for n in range(HANDFUL + 2):
        check(jitted, 2 + n, 9 - n)
    assert counts(jitted) == (HANDFUL + 2, 0)


def test_small_programs_are_made_for_dozens_of_sizes_but_not_for_any_number() -> None:
    jitted = wf.jit(weighted)
    check_each(jitted, range(2, 18))
    assert counts(jitted) == (16, 0)
    sizes = range(18, 3 + MOST_IN_VAIN // EACH)
    with pytest.warns(RuntimeWarning, match="other sizes in nearly every call"):
        check_each(jitted, sizes)
    recordings, eager = counts(jitted)
    assert recordings > 32
    assert eager > 0


def test_programs_are_as_long_as_what_was_recorded_whatever_it_became() -> None:
    def often(x: Any) -> Any:
        weights = list(range(len(x)))
        for _ in range(MOST_IN_VAIN // HANDFUL // 2):  # becomes one loop
            x = (x * weights).tanh()
        return x

    jitted = wf.jit(often)
    for n in range(HANDFUL):
        jitted(wf.ones(2 + n))
    with pytest.warns(RuntimeWarning, match="other sizes in nearly every call"):
        jitted(wf.ones(20))
    assert counts(jitted) == (HANDFUL, 1)
