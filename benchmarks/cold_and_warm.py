"""Measure in processes of their own: one with an empty object cache, and one that finds it full."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def cold_and_warm(script: str, worker: str) -> list[dict[str, Any]]:
    """Return what two processes of a script print that share a cache, empty at first."""
    with tempfile.TemporaryDirectory() as cache:
        return [_in_process(script, worker, cache) for _ in range(2)]


def _in_process(script: str, worker: str, cache: str) -> dict[str, Any]:
    root = Path(script).resolve().parent.parent
    environment = {**os.environ, "PYTHONPATH": str(root), "WEFT_CACHE_DIR": cache}
    command = [sys.executable, script, "--worker", worker]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found
