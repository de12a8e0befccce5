"""Devices that tests of back ends are given."""

import pytest

from tests.backends.shim import BACKEND, DIALECTS, MODULE
from tests.opaque import make_folder
from weft import backends
from weft.backends.device_memory import memory_of


@pytest.fixture
def shim(tmp_path, monkeypatch):
    """Let all of them be there, with nothing in their memory."""
    monkeypatch.setattr(backends, "__path__", make_folder(tmp_path, "shim", MODULE))
    yield BACKEND
    for index in range(len(DIALECTS)):
        memory_of(f"shim:{index}").release()
        BACKEND.at(index).driver.backwards = False
