"""`weft run`: scripts of other frameworks, as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.cli import main

SCRIPT = """
import sys
import chainer
import numpy as np

x = chainer.Variable(np.array([5], "f"))
y = x ** 2 + x
y.backward()
print(x.grad, sys.argv[1:], __name__)
sys.exit(int(sys.argv[1]))
"""


def test_a_script_runs_as_python_would_run_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "listing.py"
    script.write_text(SCRIPT)
    assert main(["run", str(script), "3", "--flag"]) == 3
    assert capsys.readouterr().out == "[11.] ['3', '--flag'] __main__\n"


def test_neighbours_of_a_script_are_found(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_a_script.py").write_text("answer = 42\n")
    script = tmp_path / "main.py"
    script.write_text("import neighbour_of_a_script as n\nassert n.answer == 42\n")
    assert main(["run", str(script)]) == 0


def test_a_report_lists_what_was_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "missing.py"
    script.write_text("import chainer\nassert not hasattr(chainer.functions, 'zeta')\n")
    assert main(["run", "--report", str(script)]) == 0
    assert "missing: weft.chainer.functions.zeta" in capsys.readouterr().err


def test_a_missing_script_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "nowhere.py"]) == 2
    assert "There is no file nowhere.py" in capsys.readouterr().err


def test_errors_of_a_script_are_its_own(tmp_path: Path) -> None:
    script = tmp_path / "bad.py"
    script.write_text("raise KeyError('mine')\n")
    with pytest.raises(KeyError, match="mine"):
        main(["run", str(script)])


def test_programs_of_keras_are_served(tmp_path, capsys):
    script = tmp_path / "net.py"
    script.write_text(
        "import keras\n"
        "from keras import layers\n"
        "from keras.models import Sequential\n"
        "model = Sequential([keras.Input((3,)), layers.Dense(2)])\n"
        "print(keras.__name__, model.output_shape)\n"
    )
    assert main(["run", str(script)]) == 0
    assert "weft.keras (None, 2)" in capsys.readouterr().out
