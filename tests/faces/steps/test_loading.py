"""Scripts and their neighbours, with steps captured."""

from __future__ import annotations

import sys

from .scripts import run_script

NEIGHBOUR = """\
import torch
count = 0
def step(w, x):
    global count
    count += 1
    loss = ((w * x) ** 2).sum()
    w.grad = None
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    return loss.item()
"""
SCRIPT = """\
import sys
import torch
import neighbour_with_steps as neighbour
w = torch.nn.Parameter(torch.ones(3))
losses = [neighbour.step(w, torch.arange(3.0)) for _ in range(4)]
print(["%.4f" % x for x in losses], neighbour.count, __name__, __file__ == sys.argv[0])
print(sys.modules["__main__"].w is w)
"""


def test_steps_in_a_neighbour(tmp_path, monkeypatch):
    (tmp_path / "neighbour_with_steps.py").write_text(NEIGHBOUR)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "argv", [str(script)])
    outputs = []
    for captured in (False, True):
        monkeypatch.delitem(sys.modules, "neighbour_with_steps", raising=False)
        main = sys.modules["__main__"]
        ran = run_script(script, captured=captured)
        assert sys.modules["__main__"] is main
        assert not ran.error
        outputs.append(ran.output)
    monkeypatch.delitem(sys.modules, "neighbour_with_steps", raising=False)
    assert outputs[0] == outputs[1]
    assert "4 __main__ True\nTrue" in outputs[1]
    assert ran.captured == 4
