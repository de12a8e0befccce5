"""Train one net in nine faces: one graph of a step, and the same weights after 100 steps.

    python examples/by_face/compare.py

The faces are a plain loop, the loop with its step under `wf.jit`, a session, a Trainer, `fit`,
`weft train`, and the programs that people bring from Chainer, Keras and Caffe. Each says the same
net in its own words (by_*.py beside this file). A line gives the hash of the step's graph in
canonical form, the SHA-256 of the weights, and how far they are from those of the jitted loop.
"""

import argparse
import hashlib
from typing import Any

import by_caffe
import by_chainer
import by_config
import by_fit
import by_jit
import by_keras
import by_loop
import by_session
import by_trainer
import numpy as np

FACES = {
    "plain loop": by_loop,
    "jit": by_jit,
    "session": by_session,
    "Trainer": by_trainer,
    "fit": by_fit,
    "weft train": by_config,
    "Chainer": by_chainer,
    "Keras": by_keras,
    "Caffe": by_caffe,
}


def digest(weights: list[Any]) -> str:
    """Return the SHA-256 of all weights."""
    content = b"".join(np.ascontiguousarray(w, np.float32).tobytes() for w in weights)
    return hashlib.sha256(content).hexdigest()


def main() -> None:
    """Train by every face and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the same: it takes seconds")
    parser.parse_args()
    reference = by_jit.train().weights
    hashes, digests, most = set(), set(), 0.0
    for name, face in FACES.items():
        found = face.train()
        hashed = found.graph.optimize().step_hash()
        difference = max(np.abs(a - b).max() for a, b in zip(found.weights, reference, strict=True))
        digested = digest(found.weights)
        print(f"{name:12}  graph {hashed[:16]}  weights {digested[:16]}  {difference:.1e}")
        hashes.add(hashed)
        most = max(most, float(difference))
        if name != "plain loop":  # which rounds as NumPy does, operation by operation
            digests.add(digested)
    print(f"graphs: {len(hashes)}")
    print(f"weights of compiled faces: {len(digests)}")
    print(f"largest difference: {most:.1e}")


if __name__ == "__main__":
    main()
