"""Run code in other processes, which see sets and dictionaries of strings in another order."""

from __future__ import annotations

import os
import subprocess
import sys
from textwrap import dedent


def printed_in_every_process(code):
    """Return what a program prints, the same in processes with other hashes of strings."""
    found = {
        subprocess.run(
            [sys.executable, "-c", dedent(code)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert len(found) == 1
    return found.pop()
