"""The operators that CONTRIBUTING.md adds work in every mode, each by its one file."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCKS = re.findall(
    r"```python\n# (weft/\S+\.py)\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL
)

# Runs in a process of its own: operators are declared for good.
PROGRAM = """
import sys, types
import numpy as np
import weft as wf
from weft.autodiff import check_grads
from weft.core.op import registry
from weft.core.samples import Sampler

name, source = sys.argv[1], sys.stdin.read()
if not name.startswith(("weft.ops.elementwise", "weft.ops.reduce", "weft.ops.movement")):
    wf.nn.functional.__all__  # the package is loaded
module = types.ModuleType(name)
module.__package__ = name.rpartition(".")[0]
before = set(registry)
exec(compile(source, name, "exec"), module.__dict__)
(added,) = set(registry) - before
op = registry[added]
place = wf if hasattr(wf, added) else wf.nn.functional
call = getattr(place, added)
for sample in op.sample_rule(Sampler(0)):
    x, *rest = sample.args
    if np.asarray(x).dtype.kind != "f" or np.size(x) == 0:
        continue
    def of(t):
        return call(t, *rest, **sample.kwargs)
    eager = of(wf.tensor(x)).numpy()
    with wf.Graph() as graph:
        fed = wf.placeholder(np.shape(x), eager.dtype)
        made = of(fed)
    for compiled in (False, True):
        found = wf.Session(graph, compiled=compiled).run(made, {fed: x})
        np.testing.assert_allclose(found, eager, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(wf.vmap(of)(wf.tensor(np.stack([x, x]))).numpy()[1], eager)
    check_grads(of, (wf.tensor(np.asarray(x, np.float64)),))
print(added)
"""


@pytest.mark.parametrize(("path", "source"), BLOCKS, ids=[path for path, _ in BLOCKS])
def test_an_operator_is_added_by_one_file(path, source):
    name = path.removesuffix(".py").replace("/", ".")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name],
        input=source,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"def {done.stdout.strip()}(" in source


def test_there_is_an_example_of_each_kind():
    kinds = {path.split("/")[2] for path, _ in BLOCKS}
    assert kinds == {"elementwise", "reduce", "pool", "movement"}
