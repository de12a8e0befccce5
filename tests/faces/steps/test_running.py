"""Scripts do the same with their steps captured as without."""

from __future__ import annotations

import sys

import pytest

from tests.programs.step_scripts import drawn_script
from weft.cli.main import main

from .scripts import check_script, run_script

BEGIN = """\
import torch
w = torch.nn.Parameter(torch.tensor([0.5, -0.25, 1.0]))
opt = torch.optim.SGD([w], lr=0.05)
x = torch.arange(3.0)
seen = []
"""
STEP = """\
    opt.zero_grad()
    loss = ((w * x + i) ** 2).mean()
    loss.backward()
    opt.step()
"""
LOOP = f"for i in range(6):\n{STEP}"
END = "print(seen, w.tolist(), loss.item())\n"

CAPTURED = {
    "a step": f"{BEGIN}{LOOP}{END}",
    "losses that are kept": f"{BEGIN}{LOOP}    seen.append(loss.item())\n{END}",
    "a break": f"{BEGIN}{LOOP}    if i == 4:\n        break\n{END}",
    "an else": f"{BEGIN}{LOOP}else:\n    print('done')\n{END}",
    "a print": f"{BEGIN}{LOOP}    if i % 2 == 0:\n        print(i, loss.item())\n{END}",
    "a function that reads what a step writes": (
        f"{BEGIN}def show():\n    return scale * 2\n"
        f"for i in range(6):\n    scale = i + x.sum()\n    x = x * 0.5 + show()\n{STEP[4:]}{END}"
    ).replace("\nopt.zero", "\n    opt.zero"),
    "a function that writes": (
        f"{BEGIN}total = 0\ndef add():\n    global total\n    total += 1\n"
        f"{LOOP}    add()\n    seen.append(total)\n{END}"
    ),
    "a list that is read": (
        f"{BEGIN}{LOOP}    seen.append(loss.item())\n    x = x + len(seen)\n{END}"
    ),
    "a list by another name": (
        f"{BEGIN}other = seen\n{LOOP}    seen.append(loss.item())\n"
        f"    x = x * 0.5 + len(other)\n{END}"
    ),
    "a variable of one branch": (
        f"{BEGIN}{LOOP}    if i == 2:\n        late = loss.item()\n    if i > 2:\n"
        f"        x = x * 0.5 + late\n{END}"
    ),
    "a view of what a step writes": (
        f"{BEGIN}first = x[:2]\nfor i in range(6):\n    x.mul_(0.5)\n"
        f"    x = x.clone() if i > 3 else x\n{STEP}    seen.append(first.sum().item())\n{END}"
    ),
    "a view that a step makes": (
        f"{BEGIN}for i in range(6):\n    row = x.view(1, 3)\n{STEP}    x.add_(1.0)\n"
        f"    seen.append(row.sum().item())\n{END}"
    ),
    "what detach shares": (
        f"{BEGIN}for i in range(6):\n    a = x * 2\n    b = a.detach()\n{STEP}"
        f"    b.add_(1.0)\n    seen.append(a.sum().item())\n{END}"
    ),
    "a rate that falls": (
        f"{BEGIN}lr = 0.1\n{LOOP}    opt.param_groups[0]['lr'] = lr\n    lr *= 0.5\n{END}"
    ),
    "updates by hand": (
        f"{BEGIN}lr = 0.1\nfor i in range(6):\n    w.grad = None\n"
        f"    loss = ((w * x + i) ** 2).sum()\n    loss.backward()\n"
        f"    w.data.add_(w.grad, alpha=-lr)\n    lr *= 0.9\n{END}"
    ),
    "an exception": f"{BEGIN}{LOOP}    x = x / (1 if i < 4 else w[:2])\n{END}",
    "an exception that is caught": (
        f"{BEGIN}{LOOP}    try:\n        y = x / (1 if i < 4 else w[:2])\n"
        f"    except Exception as error:\n        seen.append(type(error).__name__)\n{END}"
    ),
    "an assertion": f"{BEGIN}{LOOP}    assert i < 4, 'four'\n{END}",
    "numbers by NumPy": (
        f"import numpy as np\n{BEGIN}np.random.seed(0)\n{LOOP}"
        f"    x = x + torch.tensor(np.random.rand(3), dtype=torch.float32)\n{END}"
    ),
    "draws": f"{BEGIN}{LOOP}    x = torch.rand(3)\n    seen.append(x.sum().item())\n{END}",
    "gradients that add up": (
        f"{BEGIN}for i in range(6):\n    loss = ((w * x + i) ** 2).mean()\n    loss.backward()\n"
        f"    if i % 2:\n        opt.step()\n        opt.zero_grad()\n{END}"
    ),
    "a batch that ends": (
        f"{BEGIN}for i in range(6):\n    part = torch.ones(4 if i < 5 else 2, 3) * i\n"
        "    loss = ((part * w) ** 2).mean()\n    opt.zero_grad()\n"
        f"    loss.backward()\n    opt.step()\n{END}"
    ),
    "a target in a method": (
        f"{BEGIN}class T:\n    __n = 0\n    def run(self):\n        for i in range(6):\n"
        + STEP.replace("    ", "            ").replace("loss", "self.loss")
        + "            self.__n += 1\n        return self.__n\n"
        + f"t = T()\nprint(t.run())\nloss = t.loss\n{END}"
    ),
    "results with histories of their own": (
        f"{BEGIN}y = x * w\nfor i in range(6):\n    y = torch.tanh(y * w + 0.5)\n"
        "    loss = ((y.detach() * w + i) ** 2).mean() + w.sum().exp()\n    print(i)\n"
        f"    opt.zero_grad()\n    loss.backward()\n    opt.step()\n{END}"
    ),
    "a closure": (
        f"{BEGIN}for i in range(6):\n    def closure():\n        opt.zero_grad()\n"
        "        loss = ((w * x + i) ** 2).mean()\n        loss.backward()\n        return loss\n"
        f"    loss = opt.step(closure)\n{END}"
    ),
}


@pytest.mark.parametrize("name", CAPTURED)
def test_what_is_captured_does_the_same(name, tmp_path):
    assert check_script(tmp_path / "script.py", CAPTURED[name]).captured


FUNCTION = """\
import torch
def train(w, x, until):
    found = []
    def late():
        return last
    for i in range(9):
        loss = ((w * x + i) ** 2).mean()
        w.grad = None
        loss.backward()
        with torch.no_grad():
            w -= 0.05 * w.grad
        found.append(loss.item())
        last = loss.item() * 2
        if i == until:
            return found, late()
    return found
w = torch.nn.Parameter(torch.ones(3))
for until in (2, 20, 4):
    print(train(w, torch.arange(3.0), until), w.tolist())
"""


def test_steps_of_a_function_are_recorded_once(tmp_path):
    ran = check_script(tmp_path / "script.py", FUNCTION)
    assert ran.program is not None
    (steps,) = ran.program.made
    parts = [part for run in steps.stretches for part in run._parts.values()]
    assert sum(part._attempt.recordings for part in parts) <= 6
    assert ran.captured > 10


def test_what_is_not_captured_is_told(tmp_path, capsys):
    script = tmp_path / "script.py"
    script.write_text(CAPTURED["numbers by NumPy"])
    assert main(["run", "--jit", "--report", str(script)]) == 0
    said = capsys.readouterr().err
    assert "not captured: script.py:13" in said
    assert "rand" in said


def test_debuggers_see_every_line(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"{BEGIN}{LOOP}    if i == 3:\n        breakpoint()\n{END}")
    seen = []

    def look():
        frame = sys._getframe(1)
        seen.append((frame.f_lineno, frame.f_globals["i"], frame.f_globals["loss"].item() > 0))

    hook, sys.breakpointhook = sys.breakpointhook, look
    try:
        assert not run_script(script, captured=True).error
    finally:
        sys.breakpointhook = hook
    assert seen == [(12, 3, True)]


@pytest.mark.parametrize("seed", range(16))
def test_random_scripts(seed, tmp_path):
    check_script(tmp_path / "script.py", drawn_script(seed))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_more_random_scripts(seed, tmp_path):
    check_script(tmp_path / "script.py", drawn_script(seed))
