"""Programs of the shape of PyTorch's examples run unchanged, with PyTorch's losses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from weft.cli.main import main

from .make_figures import losses_in

FOLDER = Path(__file__).parent / "programs"
FIGURES = json.loads((FOLDER / "figures.json").read_text(encoding="utf-8"))
QUICK = ("regression", "makemore", "reinforce", "vae", "dqn", "ppo")
LONG = tuple(name for name in FIGURES if name not in QUICK)


def check(name, capsys, *options):
    if "einops" in name:
        pytest.importorskip("einops")
    sys.modules.pop("common", None)
    assert main(["run", *options, str(FOLDER / f"{name}.py")]) == 0
    sys.modules.pop("common", None)
    losses = losses_in(capsys.readouterr().out)
    np.testing.assert_allclose(losses, FIGURES[name], rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("name", QUICK)
def test_losses_are_those_of_pytorch(name, capsys):
    check(name, capsys)


@pytest.mark.long
@pytest.mark.parametrize("name", LONG)
def test_losses_of_larger_programs(name, capsys):
    check(name, capsys)


@pytest.mark.long
@pytest.mark.parametrize("name", FIGURES)
def test_losses_of_captured_steps(name, capsys):
    check(name, capsys, "--jit")


def test_a_report_lists_what_was_missing(tmp_path, capsys):
    script = tmp_path / "script.py"
    script.write_text("import torch\ntry:\n    torch.nope\nexcept AttributeError:\n    pass\n")
    assert main(["run", "--report", str(script)]) == 0
    assert "weft.torch.nope" in capsys.readouterr().err


def test_a_gpu_is_refused_by_name(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\nfrom torch.autograd import Variable\nVariable(torch.randn(2)).cuda()\n"
    )
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        main(["run", "--debug", str(script)])
