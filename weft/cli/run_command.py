"""`weft run`: a script of another framework, with that framework's imports served by Weft."""

from __future__ import annotations

import runpy
import sys
from argparse import Namespace
from pathlib import Path

from ..faces import serving
from ..faces.report import forget_missing, missing_names
from ..faces.steps import SteppedScript
from .errors import UsageError

# What scripts import, and the face that they get.
FACES = {
    "caffe": "weft.caffe",
    "chainer": "weft.chainer",
    "chainerx": "weft.chainer.chainerx",
    "keras": "weft.keras",
    "tensorflow": "weft.tf1",
    "torch": "weft.torch",
    "torchvision": "weft.torchvision",
}


def run_script(options: Namespace) -> int:
    """Run a script as `python script.py` would; return its exit status."""
    script = _checked_script(options.script)
    forget_missing()
    before = sys.argv, sys.path[:]
    sys.argv = [str(script), *options.arguments]
    sys.path[0:1] = [str(script.resolve().parent)]
    program = _captured(script) if options.jit else None
    try:
        _capture(options.jit)
        with serving(FACES):
            if program is None:
                runpy.run_path(str(script), run_name="__main__")
            else:
                program.run()
        return 0
    except SystemExit as end:
        return _status(end)
    finally:
        sys.argv, sys.path[:] = before
        _capture(False)
        if options.report:
            _print_report(program)


def _captured(script: Path) -> SteppedScript:
    """Return a script whose steps are captured."""
    from ..torch.capturing import captured_step  # noqa: PLC0415  (loads the whole face)

    return SteppedScript(script, captured_step)


def _capture(on: bool) -> None:
    """Let networks written for PyTorch run by compiled programs, or not any more."""
    if on or "weft.torch" in sys.modules:
        from ..torch.capturing import capture_modules  # noqa: PLC0415  (loads the whole face)

        capture_modules(on)


def _checked_script(name: str) -> Path:
    script = Path(name)
    if not script.is_file():
        raise UsageError(f"weft run takes a Python script. There is no file {name}")
    return script


def _status(end: SystemExit) -> int:
    """Return the exit status that a script asked for, as Python understands it."""
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code
    print(end.code, file=sys.stderr)
    return 1


def _print_report(program: SteppedScript | None) -> None:
    missing = missing_names()
    print(f"weft run: served {', '.join(sorted(FACES))}", file=sys.stderr)
    if missing:
        print("weft run: asked for and missing: " + ", ".join(missing), file=sys.stderr)
    else:
        print("weft run: nothing was missing", file=sys.stderr)
    for line in [] if program is None else program.staying():
        print(f"weft run: not captured: {line}", file=sys.stderr)
