"""What is public exists, is documented, and is what the documentation lists."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import weft as wf

ROOT = Path(__file__).parent.parent
MODULES = (wf, wf.linalg, wf.masked, wf.special, wf.nn.functional)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_names_exist_and_are_documented(module):
    values = {name: getattr(module, name) for name in module.__all__}
    called = {n: v for n, v in values.items() if callable(v) and not isinstance(v, np.dtype)}
    assert not [name for name, value in called.items() if not (value.__doc__ or "").strip()]
    assert set(values) <= set(dir(module))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'exq'"):
        wf.exq  # noqa: B018  (reading it is the test)


def test_reference_page_is_current():
    path = ROOT / "docs" / "make_reference.py"
    spec = importlib.util.spec_from_file_location("make_reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text() == module.reference(), "run python docs/make_reference.py"


def test_dtypes_are_numpys():
    assert wf.float32 == np.float32
    assert wf.bool == np.bool_
    assert wf.tensor([True]).dtype == wf.bool


def test_composites_take_arrays_and_lists():
    assert isinstance(wf.tile(np.ones(2), 2), wf.Tensor)
    assert isinstance(wf.zeros_like(np.ones(2)), wf.Tensor)
    assert wf.vstack([[1, 2], [3, 4]]).shape == (2, 2)
    with pytest.raises(TypeError, match=r"tile: expected a tensor.*Received: str"):
        wf.tile("text", 2)


def test_an_operator_declared_by_a_user_joins_in(tmp_path):
    program = """
from __future__ import annotations
import numpy as np
import weft as wf
from weft.extend import F, Tensor, attach, elementwise, op

@op(elementwise, promote="float")
def cube(x: Tensor) -> Tensor:
    "Return x**3."

@cube.eval
def _(x):
    return x * x * x

@cube.partial("x")
def _(x):
    return 3 * F.square(x)

attach()
x = wf.tensor(2.0, requires_grad=True)
g = wf.gradients(x.cube(), x, create_graph=True)
assert g.item() == 12.0 and wf.gradients(g, x).item() == 12.0
assert wf.jvp(cube, (wf.tensor(2.0),), (wf.tensor(1.0),))[1].item() == 12.0
"""
    path = tmp_path / "program.py"
    path.write_text(program)
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    subprocess.run([sys.executable, str(path)], check=True, env=environment)
