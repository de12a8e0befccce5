"""Compare exported libraries with onnxruntime: time of a run, and bytes on disk.

    python benchmarks/export.py --peer-python /path/to/python   # which has onnxruntime and onnx

The models are those of examples/export, with the same weights on both sides: a classifier of 32
digits, ResNet-18 on an image, an LSTM on 4 sequences of 32, a step of a GPT with a cache of 128
places, and a training step, which onnxruntime has no like of. All use two threads, or as many as
WEFT_BENCHMARK_THREADS says; on a busy machine, one and `--clock cpu` tell most. The library is
called by ctypes with nothing of Weft in between; beside it, `in Python` is the compiled function
itself. Results are compared first.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import ROOT, main

FOLDER = "WEFT_BENCHMARK_FOLDER"  # where the models lie
THREADS = int(os.environ.get("WEFT_BENCHMARK_THREADS", "2"))
NAMES = ("mlp", "resnet18", "lstm", "gpt", "train")
sys.path.insert(0, str(ROOT / "examples" / "export"))


def folder() -> Path:
    """Return where the models lie."""
    return Path(os.environ[FOLDER])


def states_of(name: str) -> dict[str, Any]:
    """Return the inputs and the states of a model."""
    with np.load(folder() / f"{name}.npz") as file:
        return dict(file)


def inputs_of(held: dict[str, Any]) -> list[Any]:
    """Return the inputs among what was written for a model."""
    return [held[key] for key in sorted(held) if key.startswith("input:")]


def make_models() -> None:
    """Export the models, and write their weights for onnxruntime."""
    from make_models import write_model

    import weft as wf

    wf.set_num_threads(THREADS)
    for name in NAMES:
        compiled, inputs = write_model(folder(), name)
        given = {f"input:{i}": array for i, array in enumerate(inputs)}
        model_states = compiled.states()
        if name == "gpt":  # the runs of `write_model` have moved it on
            model_states["decoder/position"] = np.array(0)
            model_states["decoder/cache"] = np.zeros_like(model_states["decoder/cache"])
        np.savez(folder() / f"{name}.npz", **given, **model_states)


def library() -> dict[str, Callable[[], Any]]:
    """Return runs of exported libraries, and of the same functions in Python."""
    made: dict[str, Callable[[], Any]] = {}
    for name in NAMES:
        made[name] = _library_run(name)
        made[f"{name}, in Python"] = _python_run(name)
    return made


def _library_run(name: str) -> Callable[[], Any]:
    from call_from_python import Model, tensors

    model, held = Model(str(folder() / f"{name}.so"), threads=THREADS), states_of(name)
    arrays = inputs_of(held)
    outputs = Model.__call__(Model(str(folder() / f"{name}.so"), threads=THREADS), *arrays)
    first = [array.copy() for array in outputs]
    given, taken = tensors(arrays), tensors(outputs)

    def run() -> None:
        model.run(given, taken)

    run.computed = lambda: first  # type: ignore[attr-defined]  # read by the harness
    return run


def _python_run(name: str) -> Callable[[], Any]:
    """Return a run of the same model, compiled when it is first wanted."""
    made: list[Any] = []

    def run() -> None:
        if not made:
            from make_models import MODELS

            import weft as wf

            wf.set_num_threads(THREADS)
            compiled, inputs = MODELS[name](np.random.default_rng(0))
            made.append((compiled, [wf.asarray(x) for x in inputs]))
        compiled, tensors = made[0]
        compiled(*tensors)

    run.computed = list  # type: ignore[attr-defined]  # there is nobody to compare it with
    return run


def onnxruntime() -> dict[str, Callable[[], Any]]:
    """Return runs of ONNX files with the same weights."""
    import onnxruntime as ort
    from export_onnx import WRITERS

    made: dict[str, Callable[[], Any]] = {}
    for name, write in WRITERS.items():
        held = states_of(name)
        path = folder() / f"{name}.onnx"
        fed = write(path, held, *inputs_of(held))
        options = ort.SessionOptions()
        options.intra_op_num_threads = THREADS
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        made[name] = _onnx_run(session, fed)
    return made


def _onnx_run(session: Any, fed: dict[str, Any]) -> Callable[[], Any]:
    def run() -> None:
        session.run(None, fed)

    run.computed = lambda: session.run(None, fed)[:1]  # type: ignore[attr-defined]  # see above
    return run


def print_sizes() -> None:
    """Print the bytes of all files."""
    print(f"\n{'model':<12}{'library':>14}{'without weights':>18}{'onnx':>14}")
    for name in NAMES:
        whole = (folder() / f"{name}.so").stat().st_size
        held = states_of(name)
        weights = sum(array.nbytes for key, array in held.items() if not key.startswith("input:"))
        onnx = folder() / f"{name}.onnx"
        peer = f"{onnx.stat().st_size:,}" if onnx.exists() else "-"
        print(f"{name:<12}{whole:>14,}{whole - weights:>18,}{peer:>14}")


def run_all() -> None:
    """Make the models in a folder that goes afterwards, and compare."""
    frameworks = {"library": library, "onnxruntime": onnxruntime}
    if "--worker" in sys.argv:
        main(__file__, frameworks)
        return
    with tempfile.TemporaryDirectory() as made:
        os.environ[FOLDER] = made
        make_models()
        main(__file__, frameworks, tolerance=1e-4)
        print_sizes()


if __name__ == "__main__":
    run_all()
