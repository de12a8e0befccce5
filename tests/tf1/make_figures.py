"""Write figures.npz: what TensorFlow (its compat.v1, without version 2's behaviour) computes.

    python -m tests.tf1.make_figures

The tests need the file alone, not TensorFlow.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .cases import CASES
from .training_cases import OPTIMIZERS, trained

FIGURES = Path(__file__).parent / "figures.npz"


def figures(tf: Any) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for name, function in CASES.items():
        with tf.Graph().as_default():
            fetches = function(tf)
            with tf.Session() as session:
                values = session.run(fetches)
        found |= {f"{name}/{i}": np.asarray(value) for i, value in enumerate(values)}
    for name in OPTIMIZERS:
        with tf.Graph().as_default():
            values = trained(tf, name)
        found |= {f"train_{name}/{i}": np.asarray(value) for i, value in enumerate(values)}
    return found


if __name__ == "__main__":
    from importlib import import_module

    tensorflow = import_module("tensorflow.compat.v1")
    tensorflow.disable_v2_behavior()
    np.savez_compressed(FIGURES, **figures(tensorflow))
    print(f"{FIGURES}: {FIGURES.stat().st_size} bytes")
