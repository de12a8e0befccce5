"""Hold the layer rule: every import of the package is one that tests/architecture/layers.py allows.

What a layer needs from above comes through the slots of weft/injections.py, each of which is listed
there with its reason.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from textwrap import dedent

from .architecture.layers import INJECTIONS, PACKAGE, TWICE
from .architecture.rules import Module, classes_of_one_name, injected, violations

ROOT = Path(__file__).resolve().parent.parent


def test_every_import_points_to_a_lower_layer() -> None:
    found = violations(ROOT)
    assert not found, "\n" + "\n".join(found)


def test_every_slot_is_listed_once_and_used() -> None:
    used = defaultdict(list)
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        for name, _ in Module(ROOT, path).imports().slots:
            used[name].append(path)
    assert {*used} == {*INJECTIONS} == {*injected(ROOT)}
    assert [name for name, users in used.items() if len(users) > 1] == []


def test_classes_have_names_of_their_own() -> None:
    found = {line.split(":")[0]: line for line in classes_of_one_name(ROOT)}
    assert [line for name, line in found.items() if name not in TWICE] == []
    assert found.keys() == {*TWICE}


def test_importing_weft_loads_only_numpy_and_the_standard_library() -> None:
    """Run in a new process: this one has loaded the test tools already.

    NumPy comes first, with the parts that load on demand, so that what it brings along is not
    charged to Weft. Without `-S` a site hook may load things too; they come before as well.
    """
    program = """
        import sys
        import numpy, numpy.fft, numpy.linalg, numpy.random
        before = set(sys.modules)
        import weft
        loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
        print(*sorted(loaded - sys.stdlib_module_names - {"numpy", "weft"}))
    """
    command = [sys.executable, "-c", dedent(program)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == []
