"""Chainer's functions give Chainer's figures, results and gradients."""

from __future__ import annotations

import numpy as np
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


def test_running_statistics_are_followed_in_place() -> None:
    x = np.sin(np.arange(24)).reshape(4, 3, 2).astype("f")
    mean, var = np.zeros(3, "f"), np.ones(3, "f")
    chainer.functions.batch_normalization(
        x, np.ones(3, "f"), np.zeros(3, "f"), running_mean=mean, running_var=var, decay=0.5
    )
    np.testing.assert_allclose(mean, 0.5 * x.mean((0, 2)), rtol=1e-5)
    np.testing.assert_allclose(var, 0.5 + 0.5 * x.var((0, 2), ddof=1), rtol=1e-5)


def test_dtypes_that_functions_do_not_take_are_said_in_chainers_words() -> None:
    invalid = chainer.utils.type_check.InvalidType
    x = np.ones((2, 3), "f")
    with pytest.raises(invalid, match=r"(?s)softmax_cross_entropy.*labels of integers.*float32"):
        chainer.functions.softmax_cross_entropy(x, np.zeros(2, "f"))
    with pytest.raises(invalid, match=r"(?s)linear.*Expect: x\.dtype\.kind == f.*i != f"):
        chainer.functions.linear(np.ones((2, 3), "i"), x)
