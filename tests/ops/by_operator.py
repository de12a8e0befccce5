"""One test for all samples of an operator: pytest's own work is more than most samples'.

    @over(cases)
    def test_values(case): ...

makes `test_values[exp]`, which runs every sample of `exp` and reports each that fails. Of samples
that differ in little but their shapes, `@over(cases, ordinary=first)` leaves most to --long.
With --few, every test takes one sample of each operator: the one with most axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import update_wrapper
from inspect import signature
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from tests.ops.conformance import Arguments, Case
from weft.core.rng import manual_seed

Check = Callable[[Case], None]
Chooser = Callable[[list[Case]], list[Case]]


def over(
    cases: Iterable[Case], *, ordinary: Chooser = list
) -> Callable[[Check], Callable[..., None]]:
    """Return what makes a test of one sample a test of each operator, on all of its samples.

    On those that `ordinary` chooses of them, unless the run is a long one.
    """
    groups = grouped(cases)

    def decorate(check: Check) -> Callable[..., None]:
        def test(name: str, request: pytest.FixtureRequest) -> None:
            run_all(check, chosen(groups[name], request.config, ordinary))

        taken = signature(test)
        update_wrapper(test, check)  # it stands in the file of the check, and is called as it is
        test.__signature__ = taken  # type: ignore[attr-defined]  # but takes a name
        return pytest.mark.parametrize("name", list(groups))(test)

    return decorate


def grouped(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """Return cases by the name of their operator, in their order."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.name, []).append(case)
    return groups


def chosen(cases: list[Case], config: pytest.Config, ordinary: Chooser) -> list[Case]:
    """Return those of an operator's samples that a run takes."""
    if config.getoption("--few"):
        return [max(cases, key=_axes)]
    return cases if config.getoption("--long") else ordinary(cases)


def first(cases: list[Case]) -> list[Case]:
    """Return one sample."""
    return cases[:1]


def two_of_each_kind(cases: list[Case]) -> list[Case]:
    """Return samples of an elementwise operator in two shapes of each kind, all of other operators.

    Elementwise operators are drawn in the same shapes, which the compiler treats the same for all
    of them: each is taken in its largest, and in another that differs from operator to operator.
    """
    op = cases[0].op
    if op is None or op.kind != "elementwise":
        return cases
    kinds: dict[Any, list[Case]] = {}
    for case in cases:
        kinds.setdefault(_kind(case), []).append(case)
    kept = set()
    for alike in kinds.values():
        largest = max(alike, key=_size)
        kept |= {largest, alike[crc32(op.name.encode()) % len(alike)]}
    return [case for case in cases if case in kept]


def every_other(cases: list[Case]) -> list[Case]:
    """Return half of those samples, for what others show in float32 already."""
    return two_of_each_kind(cases)[::2]


def _kind(case: Case) -> Any:
    """Return what tells samples apart besides their shapes and numbers."""
    if isinstance(case.sample, Exception):
        return case.id
    given = Arguments.of(case.sample).map(lambda array: array.dtype)
    return case.sample.label, case.sample.grad, repr(given.args), repr(given.kwargs)


def _axes(case: Case) -> int:
    return max((array.ndim for array in _arrays(case)), default=0)


def _size(case: Case) -> int:
    return max((array.size for array in _arrays(case)), default=0)


def _arrays(case: Case) -> list[np.ndarray]:
    return [] if isinstance(case.sample, Exception) else Arguments.of(case.sample).arrays()


def run_all(check: Check, cases: list[Case]) -> None:
    """Run a check on each case, from the same random state; raise what any of them raised."""
    failures: list[Any] = []
    skips = []
    for case in cases:
        manual_seed(0)
        try:
            check(case)
        except pytest.skip.Exception as reason:
            skips.append(reason)
        except (Exception, pytest.fail.Exception) as error:  # the others are run all the same
            error.add_note(f"in the sample {case.id}")
            failures.append(error)
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {len(cases)} samples fail", failures)
    if len(skips) == len(cases):
        raise skips[0]
