"""What `weft predict` reads: images, folders of them, CSV, Parquet, npz and npy files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.tensor import Tensor, wrap
from ..data import (
    CsvDataset,
    ParquetDataset,
    default_collate,
    read_csv,
    read_image,
    read_npy,
    read_npz,
    read_parquet,
)
from ..data.sampler import batched
from ..data.transforms import ToTensor
from .errors import UsageError

IMAGES = frozenset(
    {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp"}
)
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


class PredictInput(NamedTuple):
    """One sample to predict: what to call it, and the inputs of the model."""

    label: str
    inputs: tuple[Tensor, ...]


Reader = Callable[[Path, Mapping[str, Any], Mapping[str, Any]], Iterator[PredictInput]]


def read_samples(
    paths: list[str], settings: Mapping[str, Any], facts: Mapping[str, Any]
) -> Iterator[PredictInput]:
    """Yield the samples of files and folders, in order.

    settings   the [data] table of the run
    facts      what was known of its data
    """
    for name in paths:
        path = Path(name)
        if path.is_dir():
            yield from _folder(path, settings, facts)
        elif not path.exists():
            raise UsageError(f"there is no file {path}")
        else:
            yield from _reader(path)(path, settings, facts)


def batches(
    samples: Iterator[PredictInput], size: int
) -> Iterator[tuple[list[str], tuple[Any, ...]]]:
    """Return samples in batches: their labels, and their inputs as tensors."""
    return map(_batch, batched(samples, size))


def _batch(samples: list[PredictInput]) -> tuple[list[str], tuple[Any, ...]]:
    shapes = {tuple(x.shape for x in sample.inputs) for sample in samples}
    if len(shapes) > 1:
        raise UsageError(
            f"samples of different shapes cannot be one batch: {sorted(shapes)}; use "
            "--batch-size 1, or a resize transform in [data] eval_transforms"
        )
    columns = zip(*(sample.inputs for sample in samples), strict=True)
    return [s.label for s in samples], tuple(default_collate(list(column)) for column in columns)


def _reader(path: Path) -> Reader:
    kind = path.suffix.lower()
    if kind in IMAGES:
        return _image
    readers: dict[str, Reader] = {".csv": _table, ".parquet": _table, ".npz": _npz, ".npy": _npy}
    if kind not in readers:
        known = ", ".join([*readers, *sorted(IMAGES)])
        raise UsageError(f"cannot predict from {path.name}: known are {known}, and folders")
    return readers[kind]


def _folder(
    path: Path, settings: Mapping[str, Any], facts: Mapping[str, Any]
) -> Iterator[PredictInput]:
    found = sorted(p for p in path.rglob("*") if p.suffix.lower() in IMAGES and p.is_file())
    if not found:
        raise UsageError(f"there are no images in {path}")
    for image in found:
        yield from _image(image, settings, facts)


def _image(
    path: Path, settings: Mapping[str, Any], facts: Mapping[str, Any]
) -> Iterator[PredictInput]:
    tables = (settings.get(name, {}) for name in ("source", "train"))
    mode = next((table["mode"] for table in tables if "mode" in table), None)
    if mode is None:
        shapes = facts.get("input_shapes") or [[3]]
        mode = _MODES.get(shapes[0][0] if shapes[0] else 3, "RGB")
    yield PredictInput(str(path), (ToTensor()(read_image(path, mode)),))


def _table(
    path: Path, settings: Mapping[str, Any], facts: Mapping[str, Any]
) -> Iterator[PredictInput]:
    """Yield the rows of a table, read as the training data was; a target column is left out."""
    trained = settings.get("source") or settings.get("train") or {}
    is_csv = path.suffix.lower() == ".csv"
    options: dict[str, Any] = {}
    if trained.get("type") in {"csv", "parquet"}:
        skipped = {"type", "path", "target"} | (set() if is_csv else {"delimiter", "header"})
        options = {name: value for name, value in trained.items() if name not in skipped}
    make: Any = CsvDataset if is_csv else ParquetDataset
    target = trained.get("target")
    if target is not None and target in _column_names(path, options, is_csv):
        options["target"] = target
    dataset = make(path, **options)
    wanted = facts.get("feature_names")
    if wanted is not None and dataset.feature_names != wanted:
        raise UsageError(
            f"{path} has the features {dataset.feature_names}, the model was trained on {wanted}"
        )
    for i in range(len(dataset)):
        row = dataset[i]
        yield PredictInput(f"{path.name}:{i + 1}", (row[0] if isinstance(row, tuple) else row,))


def _column_names(path: Path, options: Mapping[str, Any], is_csv: bool) -> list[str]:
    if not is_csv:
        return read_parquet(path).names
    reading = {"header", "delimiter", "quotechar", "columns", "dtypes", "encoding"}
    return read_csv(path, **{n: v for n, v in options.items() if n in reading}).names


def _npz(
    path: Path, settings: Mapping[str, Any], facts: Mapping[str, Any]
) -> Iterator[PredictInput]:
    arrays = read_npz(path)
    trained = settings.get("source") or settings.get("train") or {}
    names = trained.get("names") if trained.get("type") == "npz" else None
    count = len(facts.get("input_shapes") or [[]])
    chosen = [n for n in (names or list(arrays))[:count] if n in arrays] or list(arrays)[:count]
    yield from _rows(path, [arrays[name] for name in chosen])


def _npy(
    path: Path, settings: Mapping[str, Any], facts: Mapping[str, Any]
) -> Iterator[PredictInput]:
    yield from _rows(path, [read_npy(path)])


def _rows(path: Path, arrays: list[Any]) -> Iterator[PredictInput]:
    lengths = {len(array) if array.ndim else -1 for array in arrays}
    if len(lengths) != 1 or -1 in lengths:
        shapes = [array.shape for array in arrays]
        raise UsageError(f"{path}: arrays must have one row for each sample. Received: {shapes}")
    for i in range(lengths.pop()):
        yield PredictInput(
            f"{path.name}:{i}", tuple(wrap(np.asarray(array[i])) for array in arrays)
        )
