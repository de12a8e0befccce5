"""Fifty steps in every way to train give the losses of one process."""

from __future__ import annotations

import pytest

from tests.distributed.same_losses import Case, all_cases, compare, is_good, results_of, table


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 4])
def test_in_every_way_on_several_processes(ranks):
    pytest.importorskip("mpi4py")
    cells = compare([ranks], 50)
    assert all(is_good(case, cell) for (case, _), cell in cells.items()), table(cells, ranks)


def test_every_workload_is_trained_in_every_way(tmp_path):
    cases = all_cases(50, tmp_path)
    assert len({(case.workload, case.way, case.mode) for case in cases}) == len(cases)
    for workload in ("mlp", "cnn", "lstm", "gpt"):
        modes = {case.mode for case in cases if case.workload == workload}
        assert modes == {"eager", "jit", "static", "toml"}


def test_what_went_wrong_is_in_the_table():
    case = Case("mlp", "float64", "eager", 1e-10, list)
    said = "BEGINS [0, null]\nLOSSES [0, [0.5]]\nBEGINS [1, null]\na rank was lost\n"
    assert results_of(said) == {0: [0.5], 1: said}
    for cell, shown in (
        (1e-12, "1e-12"),
        (1e-3, "0.001 !"),
        (float("nan"), "nan !"),
        (said, "error !"),
    ):
        assert shown in table({(case, 2): cell}, 2)
