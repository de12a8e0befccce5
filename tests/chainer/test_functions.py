"""Chainer's functions give Chainer's figures, results and gradients."""

from __future__ import annotations

import pytest

from tests.chainer.cases import Case, cases
from tests.chainer.figures import FIGURES
from tests.chainer.figures_of import figures
from weft import chainer

CASES = cases(chainer.functions)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_figures_are_chainers(case: Case) -> None:
    results, gradients = FIGURES[case.name]
    found = figures(chainer, case)
    assert found[0] == pytest.approx(results, rel=2e-4, abs=2e-4)
    assert found[1] == pytest.approx(gradients, rel=2e-3, abs=2e-3)


def test_each_figure_is_of_a_call() -> None:
    assert set(FIGURES) == {case.name for case in CASES}
