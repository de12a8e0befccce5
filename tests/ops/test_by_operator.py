"""Tests of operators run every sample, and report each that fails."""

from __future__ import annotations

from inspect import signature

import pytest

import weft as wf
from tests.ops.by_operator import chosen, first, grouped, over, run_all, two_of_each_kind
from tests.ops.conformance import Case, cases
from weft.core.samples import Sample

CASES = [Case(name, Sample(n), n) for name, n in (("exp", 0), ("log", 1), ("exp", 2), ("exp", 3))]
EXPS = grouped(CASES)["exp"]


@over(CASES)
def test_a_check_of_samples_becomes_a_test_of_operators(case):
    assert case in CASES


def test_a_test_of_operators_is_named_as_its_check():
    test = test_a_check_of_samples_becomes_a_test_of_operators
    assert (test.__name__, test.__module__) == (test.__wrapped__.__name__, __name__)
    assert [*signature(test).parameters] == ["name", "request"]


def test_options_decide_which_samples_run(request):
    option = request.config.getoption
    count = 1 if option("--few") else 3
    assert len(chosen(EXPS, request.config, list)) == count
    assert len(chosen(EXPS, request.config, first)) == (count if option("--long") else 1)


def test_shapes_of_elementwise_operators_are_taken_in_turn():
    samples = grouped(cases())
    kept = {name: two_of_each_kind(samples[name]) for name in samples}
    assert kept["sum"] == samples["sum"]  # no elementwise operator: all of them
    assert kept["softmax"] == samples["softmax"]
    for name in ("exp", "tanh", "sin", "add", "where"):
        labels = {case.sample.label for case in samples[name]}
        assert {case.sample.label for case in kept[name]} == labels
        assert len(kept[name]) < len(samples[name])
    drawn, taken = (
        {case.sample.args[0].shape for cases in found.values() for case in cases if is_unary(case)}
        for found in (samples, kept)
    )
    assert taken == drawn


def is_unary(case):
    return case.op is not None and case.op.kind == "elementwise" and len(case.sample.args) == 1


def test_samples_are_grouped_in_their_order():
    assert {name: [case.id for case in cases] for name, cases in grouped(CASES).items()} == {
        "exp": ["exp-0", "exp-2", "exp-3"],
        "log": ["log-1"],
    }


def test_every_failing_sample_is_named():
    def check(case):
        assert case.id == "exp-2"

    with pytest.raises(BaseExceptionGroup, match="2 of 3 samples fail") as caught:
        run_all(check, EXPS)
    notes = [error.__notes__ for error in caught.value.exceptions]
    assert notes == [["in the sample exp-0"], ["in the sample exp-3"]]


def test_one_failing_sample_is_raised_as_it_is():
    def check(case):
        if case.id == "exp-2":
            pytest.fail("it differs")

    with pytest.raises(pytest.fail.Exception, match="it differs") as caught:
        run_all(check, EXPS)
    assert caught.value.__notes__ == ["in the sample exp-2"]


def test_an_operator_is_skipped_if_all_of_its_samples_are():
    def skip(case, *ids):
        if case.id in ids:
            pytest.skip("not this one")

    run_all(lambda case: skip(case, "exp-0"), EXPS)
    with pytest.raises(pytest.skip.Exception, match="not this one"):
        run_all(lambda case: skip(case, *(each.id for each in EXPS)), EXPS)


def test_every_sample_begins_at_the_same_random_state():
    drawn = []
    run_all(lambda case: drawn.append(wf.rand(1).item()), EXPS)
    assert len(set(drawn)) == 1
