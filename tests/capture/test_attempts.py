"""Functions that run as programs or not at all."""

from __future__ import annotations

import pytest

import weft as wf
from weft.capture.attempts import NOT_RUN, Attempt
from weft.capture.calls import RecordingRules
from weft.capture.recorder import NotRecordedError
from weft.core.errors import ShapeError

FREE = RecordingRules(pins=False)


def test_what_can_be_recorded_runs():
    attempt = Attempt(lambda x: x * 2 + 1, FREE)
    assert [attempt(wf.tensor([n])).tolist() for n in (1.0, 2.0)] == [[3.0], [5.0]]
    assert attempt.failure is None
    assert attempt.recordings == 1


def test_what_cannot_is_not_run_at_all():
    seen = []

    def shown(x):
        seen.append(1)
        print(x)
        return x * 2

    attempt = Attempt(shown, FREE)
    assert attempt(wf.ones(2)) is NOT_RUN
    assert isinstance(attempt.failure, NotRecordedError)
    assert "print" in attempt.failure.reason
    assert seen == []


def test_errors_of_the_function_are_kept():
    attempt = Attempt(lambda x: x @ wf.ones(3), FREE)
    assert attempt(wf.ones(2)) is NOT_RUN
    assert isinstance(attempt.failure, ShapeError)


@pytest.mark.parametrize("pins", [True, False])
def test_numbers_that_change_are_not_taken_as_they_are(pins):
    attempt = Attempt(lambda x, n: x[n:] * 2, RecordingRules(pins=pins))
    x = wf.arange(4.0)
    assert attempt(x, 1).tolist() == [2.0, 4.0, 6.0]
    found = attempt(x, 2)
    assert found is NOT_RUN if not pins else found.tolist() == [4.0, 6.0]


def test_recordings_are_bounded_and_checked():
    def long(x):
        for _ in range(50):
            x = x + 1
        return x

    attempt = Attempt(long, RecordingRules(most=20))
    assert attempt(wf.ones(2)) is NOT_RUN
    assert "20 operations" in str(attempt.failure)

    def refuse(recording):
        raise NotRecordedError(f"{len(recording.leaves)} results")

    attempt = Attempt(lambda x: x * 2, RecordingRules(check=refuse))
    assert attempt(wf.ones(2)) is NOT_RUN
    assert str(attempt.failure) == "1 results"


def test_inside_of_a_transform_nothing_is_run():
    attempt = Attempt(lambda x: (x * x).sum(), FREE)
    found = []

    def traced(x):
        found.append(attempt(x))
        return x.sum()

    wf.vmap(traced)(wf.ones(2))
    assert found[0] is NOT_RUN
