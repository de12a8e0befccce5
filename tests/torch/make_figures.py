"""Write the losses that PyTorch gives for the programs, where PyTorch is installed.

    python tests/torch/make_figures.py

The programs begin with weights and data that follow from formulas, so their losses are figures.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "programs"


def losses_in(text: str) -> list[float]:
    """Return the lines of a text that are numbers."""
    found = []
    for line in text.split("\n"):
        try:
            found.append(float(line))
        except ValueError:
            continue
    return found


def main() -> None:
    """Run every program, and write what it printed."""
    made = {}
    for path in sorted(FOLDER.glob("*.py")):
        if path.stem != "common":
            done = subprocess.run(
                [sys.executable, path.name], cwd=FOLDER, capture_output=True, text=True, check=True
            )
            made[path.stem] = losses_in(done.stdout)
    rows = ",\n".join(f'  "{name}": {json.dumps(made[name])}' for name in made)
    (FOLDER / "figures.json").write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
