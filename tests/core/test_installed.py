"""Versions of packages: of those that are installed, and of a source tree."""

import weft
from weft.core.installed import version


def test_versions():
    assert version("weft") == weft.__version__
    assert version("numpy") is not None
    assert version("no-such-package") is None
