"""Running scripts in both ways: as they are written, and with their steps captured."""

from __future__ import annotations

import contextlib
import io
import runpy
import traceback
from pathlib import Path
from typing import NamedTuple

import numpy as np

from weft import torch
from weft.cli.run_command import FACES
from weft.faces import serving
from weft.faces.steps import SteppedScript
from weft.torch.capturing import captured_step


class Ran(NamedTuple):
    """What a script did.

    output    what it printed
    error     the last lines of its traceback, with the lines of the script that led there
    program   what was captured, if anything was to be
    """

    output: str
    error: list[str]
    program: SteppedScript | None = None

    @property
    def captured(self) -> int:
        """Return how often captured parts have run."""
        assert self.program is not None
        runs = [run for steps in self.program.made for run in steps.stretches]
        return sum(part._runs for run in runs for part in run._parts.values())


def run_script(path: Path, *, captured: bool) -> Ran:
    """Run a script; return what it did."""
    program = SteppedScript(path, captured_step) if captured else None
    output, error = io.StringIO(), []
    torch.manual_seed(0)
    with serving(FACES), contextlib.redirect_stdout(output):
        try:
            if program is None:
                runpy.run_path(str(path), run_name="__main__")
            else:
                program.run()
        except Exception as failure:
            error = _shown(failure, str(path))
    return Ran(output.getvalue(), error, program)


def _shown(failure: BaseException, script: str) -> list[str]:
    """Return an exception and the lines of a script that led to it."""
    frames = traceback.extract_tb(failure.__traceback__)
    lines = [f"{x.name}:{x.lineno}: {x.line}" for x in frames if x.filename == script]
    return [*lines, repr(failure)]


def check_script(path: Path, text: str) -> Ran:
    """Run a script in both ways, and compare what it did; return what it did captured."""
    path.write_text(text, encoding="utf-8")
    plain, captured = (run_script(path, captured=flag) for flag in (False, True))
    assert captured.error == plain.error, text
    words = [ran.output.replace("[", " ").replace("]", " ").split() for ran in (plain, captured)]
    assert len(words[0]) == len(words[1]), (text, plain.output, captured.output)
    for a, b in zip(*words, strict=True):
        _compare(a.strip(",(){}"), b.strip(",(){}"), text)
    return captured


def _compare(plain: str, captured: str, text: str) -> None:
    try:
        numbers = float(plain), float(captured)
    except ValueError:
        assert plain == captured, text
    else:
        np.testing.assert_allclose(numbers[1], numbers[0], rtol=1e-4, atol=1e-5, err_msg=text)
