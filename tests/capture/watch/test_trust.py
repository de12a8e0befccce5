"""Whose code is whose, however Python found it."""

import subprocess
import sys
from pathlib import Path

import weft

PROGRAM = """
import sys
sys.path.insert(0, {path!r})
import weft as wf
net = wf.nn.Linear(2, 1)
optimizer = wf.optim.Adam(net.parameters())

@wf.jit
def step(x):
    optimizer.zero_grad()
    loss = (net(x) ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss

for _ in range(3):
    step(wf.ones((4, 2)))
print(step.stats()["eager_calls"])
"""


def test_weft_is_known_to_itself_by_a_path_with_dots(tmp_path):
    aside = tmp_path / "aside"
    aside.mkdir()
    (tmp_path / "weft").symlink_to(Path(weft.__file__).parent)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(path=str(aside / "..")))
    done = subprocess.run(
        [sys.executable, "-I", str(program)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("0\n", "")
