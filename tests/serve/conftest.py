"""Servers that several tests of a file share."""

import pytest

from tests.serve.lab import lab


@pytest.fixture(scope="module")
def mlp_lab():
    with lab("mlp", max_body=100_000, timeout=20) as started:
        yield started
