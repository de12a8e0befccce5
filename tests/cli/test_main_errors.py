"""Errors of the operating system reach the user as one line with advice."""

import errno
import sys

import pytest

from weft.cli import main


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_met_in_passing_comes_with_advice(monkeypatch, capsys, number):
    def fail(*args, **kwargs):
        raise OSError(number, "No space left on device")

    monkeypatch.setattr(sys.modules["weft.cli.main"], "info", fail)
    assert main(["info"]) != 0
    message = capsys.readouterr().err
    assert "No space left" in message
    assert "free some space" in message
    assert "checkpoints are intact" in message
