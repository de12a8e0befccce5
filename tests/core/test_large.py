"""The door for large operands, as core sees it: when it opens, and whom it lets through."""

import subprocess
import sys
from textwrap import dedent

from weft.core import large
from weft.core.large import Door


def test_door_stays_shut_for_small_programs():
    program = """
        import sys
        import numpy as np, weft as wf
        from weft.core.large import door
        x = wf.tensor(np.ones(1000, np.float32))
        y = x + x
        print(door.open, wf.add.__globals__["kernel"] is np.add, "weft.eager" in sys.modules)
        wf.randn(1000, 1000)
        print(door.open, wf.add.__globals__["kernel"] is np.add, "weft.eager" in sys.modules)
    """
    result = subprocess.run(
        [sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=False
    )
    assert result.stdout.split() == ["False", "True", "False", "True", "False", "True"], (
        result.stderr
    )


def test_a_large_result_of_small_operands_opens_the_door():
    program = """
        import weft as wf
        from weft.core.large import door
        net = wf.nn.Conv2d(1, 16, 3)
        images = wf.ones((8, 1, 28, 28))
        print(door.open)
        net(images)
        print(door.open)
    """
    result = subprocess.run(
        [sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=False
    )
    assert result.stdout.split() == ["False", "True"], result.stderr


def test_what_comes_when_the_door_is_open_need_not_wait(monkeypatch):
    done = []

    class Kernels:
        def install_chooser(self, op, scope):
            done.append((op, scope))

    monkeypatch.setattr(large.large_kernels, "_found", Kernels())
    made = Door()
    made.admit("before", {})
    assert done == []
    made.unlock()
    made.admit("after", {})
    assert done == [("before", {}), ("after", {})]
