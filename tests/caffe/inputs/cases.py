"""Layers, databases and damage for the tests of inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from weft.caffe.inputs import open_input
from weft.caffe.inputs.writing import write_arrays
from weft.caffe.message import TRAIN, LayerParameter

BACKENDS = {"LMDB": 1, "LEVELDB": 0}


def pictures(count: int = 10, shape: tuple[int, ...] = (3, 6, 8)) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (count, *shape), np.uint8), np.arange(count)


def database(path: Path, backend: str = "LMDB", **of: Any) -> tuple[Any, Any]:
    images, labels = pictures(**of)
    write_arrays(path, images, labels, backend)
    return images, labels


def data_layer(path: Any, backend: str = "LMDB", transform: Any = None, **param: Any) -> Any:
    options = {"source": str(path), "backend": BACKENDS[backend], "batch_size": 4, **param}
    return LayerParameter(
        name="data",
        type="Data",
        top=["data", "label"],
        data_param=options,
        transform_param=transform or {},
    )


def opened(layer: Any, phase: int = TRAIN) -> Any:
    return open_input(layer, phase)
