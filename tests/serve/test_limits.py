"""Limits that make no sense are refused, with what was given."""

import pytest

import weft as wf
from weft.serve import ServeLimits


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"max_batch": 0}, "max_batch must be at least 1. Received: 0"),
        ({"max_batch": 2.5}, "max_batch must be an integer. Received: 2.5"),
        ({"max_queue": True}, "max_queue must be an integer. Received: True"),
        ({"max_body": -1}, "max_body must be at least 1"),
        ({"max_wait": -0.1}, "max_wait must be finite and 0 or more. Received: -0.1"),
        ({"timeout": 0}, "timeout must be finite and above 0. Received: 0"),
        ({"timeout": float("nan")}, "timeout must be finite"),
        ({"grace": "1"}, "grace must be a number of seconds. Received: '1'"),
        ({"max_batch": 8, "max_queue": 4}, "max_queue must be at least max_batch"),
    ],
)
def test_bad_limits(given, said):
    with pytest.raises((ValueError, TypeError), match=said):
        ServeLimits(**given)


def test_zero_is_no_wait():
    assert ServeLimits(max_wait=0, grace=0).max_wait == 0


def test_what_is_no_limits():
    with pytest.raises(TypeError, match=r"limits must be wf.serve.ServeLimits.*Received: 5"):
        wf.serve.app(wf.nn.Identity(), inputs=((1,), "float32"), limits=5)
