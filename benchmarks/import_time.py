"""What `import weft` adds to `import numpy`, in milliseconds.

    python benchmarks/import_time.py

Fresh processes, interleaved; the median of the differences and the difference of the best times.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = """
import sys, time
sys.path.insert(0, {root!r})
import numpy
start = time.perf_counter()
import {module}
print(time.perf_counter() - start)
"""


def import_seconds(module: str, root: Path = ROOT) -> float:
    """Return the time to import a module after NumPy, in a fresh process."""
    program = PROGRAM.format(root=str(root), module=module)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return float(result.stdout)


def main(rounds: int = 20) -> None:
    """Print the figure."""
    import_seconds("weft")  # writes the bytecode files
    times = [import_seconds("weft") * 1e3 for _ in range(rounds)]
    print(
        f"import weft after numpy: median {statistics.median(times):.1f} ms, "
        f"best {min(times):.1f} ms (bar: 60 ms)"
    )


if __name__ == "__main__":
    main()
