"""An object that tests of watched calls read and write."""

import pytest

from tests.capture.watch.watching import Thing


@pytest.fixture
def thing():
    return Thing(alpha=0.5, items=[1, 2], table={"k": 1}, other=Thing(z=1), tags={1})
