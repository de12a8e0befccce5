"""Layers, databases and damage for the tests of inputs."""

from __future__ import annotations

import random
import struct
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


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Return bytes with some of them changed, cut off, moved or made zero."""
    found = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        where = draw.randrange(len(found) if draw.random() < 0.5 else min(len(found), 4096))
        match draw.randrange(6):
            case 0 | 1:
                found[where] = draw.randrange(256)
            case 2:
                odd = (0, 1, 2**63 - 1, 2**64 - 1, 2**32, draw.getrandbits(64), draw.randrange(64))
                found[where : where + 8] = struct.pack("<Q", draw.choice(odd))
            case 3:
                found[where : where + 2] = b"\xff\xff"
            case 4:
                del found[draw.randrange(len(found)) :]
            case 5:
                found[where : where + 64] = found[:64]
        found += bytes(max(0, 16 - len(found)))
    return bytes(found)
