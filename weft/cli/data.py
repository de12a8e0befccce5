"""The data of a run: datasets as configured, their splits and transforms, and loaders of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..core import dtype as dt
from ..core.errors import ShapeError
from ..core.tensor import Tensor, wrap
from ..core.tree import tree_map
from ..data import DataLoader, Dataset, Subset, TensorDataset, default_collate, random_split
from ..data.transforms import Compose
from ..train.datasets import DATASETS, PATH_OPTIONS
from ..train.names import BATCH_TRANSFORMS, TRANSFORMS
from ..train.registry import Registry
from .config import ConfigSource
from .run_schema import SPLITS
from .toml_lines import Path as Keys


@dataclass
class Data:
    """The datasets of a run, and what is known of them.

    facts    "num_classes", "classes", "vocab_size", "feature_names" ..., as far as known
    labels   the labels of each split, where the dataset has them without making its items
    """

    splits: dict[str, Dataset]
    settings: Mapping[str, Any]
    facts: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, Any] = field(default_factory=dict)

    def loader(
        self, split: str, seed: int, batch_transform: Any = None, *, shard: bool = False
    ) -> DataLoader:
        """Return the batches of a split; those of training are shuffled.

        shard   whether each process has its rows of every batch
        """
        training = split == "train"
        size = self.settings["batch_size"]
        return DataLoader(
            self.splits[split],
            batch_size=size if training else self.settings.get("eval_batch_size", size),
            shuffle=training and self.settings["shuffle"],
            drop_last=training and self.settings["drop_last"],
            num_workers=self.settings["workers"],
            seed=seed,
            batch_transform=batch_transform if training else None,
            shard=shard,
        )


class Prepare:
    """Bring a batch into the form of training: floats in one precision, and the target."""

    def __init__(self, precision: str, target: str) -> None:
        self.dtype = dt.bfloat16() if precision == "bfloat16" else np.dtype(precision)
        self.target = target

    def __call__(self, batch: Any) -> Any:
        """Return a tuple of inputs, with the target last unless there is none."""
        if isinstance(batch, tuple) and self._fits(batch):
            parts = batch
        elif isinstance(batch, tuple | list):
            parts = tuple([self._part(part) for part in batch])
        else:
            parts = (self._part(batch),)
        if self.target == "last":
            return parts
        inputs = parts[:-1] or parts
        return (*inputs, inputs[0]) if self.target == "input" else inputs

    @property
    def position(self) -> int | None:
        """Return where the target stands in a batch."""
        return None if self.target == "none" else -1

    def _fits(self, batch: tuple[Any, ...]) -> bool:
        """Tell whether all parts are tensors in the precision, as nearly always."""
        for part in batch:
            if part.__class__ is not Tensor or part._value.dtype != self.dtype:
                return False
        return True

    def _part(self, part: Any) -> Any:
        return self._cast(part) if isinstance(part, Tensor) else tree_map(self._cast, part)

    def _cast(self, value: Any) -> Any:
        if not isinstance(value, Tensor) or value.dtype == self.dtype:
            return value
        return value.to(self.dtype) if dt.is_float(value.dtype) else value


def build_data(
    source: ConfigSource, config: dict[str, Any], wanted: tuple[str, ...] = SPLITS
) -> Data:
    """Make the datasets of a configuration; paths and statistics are written back into it."""
    settings = config["data"]
    raw = _raw_splits(source, settings, wanted)
    facts = _facts(source, raw)
    for name, dataset in raw.items():
        if not len(dataset):
            key = name if name in settings else "split"
            raise source.error(("data", key), f"the {name} data is empty")
    labels = {name: _known_labels(dataset) for name, dataset in raw.items()}
    _standardized(source, settings, raw)
    augment = _transform(source, settings, "transforms", TRANSFORMS)
    plain = eval_transform(source, settings)
    made = {
        name: _mapped(dataset, augment if name == "train" else plain)
        for name, dataset in raw.items()
    }
    return Data(made, settings, facts, labels)


def eval_transform(source: ConfigSource, settings: Mapping[str, Any]) -> Any:
    """Return the transforms of evaluation as one function, or None."""
    key = "eval_transforms" if "eval_transforms" in settings else "transforms"
    return _transform(source, settings, key, TRANSFORMS)


def batch_transform(
    source: ConfigSource, config: Mapping[str, Any], facts: Mapping[str, Any]
) -> Any:
    """Return the transforms of whole batches as one function, or None."""
    tables = []
    for one in config["data"]["batch_transforms"]:
        known = {"num_classes": facts["num_classes"]} if "num_classes" in facts else {}
        tables.append({**known, **one})
    settings = {"batch_transforms": tables}
    return _transform(source, settings, "batch_transforms", BATCH_TRANSFORMS)


def example_batch(source: ConfigSource, data: Data, split: str = "train") -> Any:
    """Return a batch of the first two items."""
    dataset = data.splits[split]
    with source.blaming(("data",), f"the first items of the {split} data"):
        return default_collate([dataset[i] for i in range(min(2, len(dataset)))])


# -- making datasets -----------------------------------------------------------------------------


def _raw_splits(
    source: ConfigSource, settings: Mapping[str, Any], wanted: tuple[str, ...]
) -> dict[str, Dataset]:
    raw: dict[str, Dataset] = {}
    if "source" in settings:
        parts = _split(source, settings, make_dataset(source, ("data", "source")))
        raw.update(zip(SPLITS, parts, strict=False))
    for name in SPLITS:
        if name in settings:
            raw[name] = make_dataset(source, ("data", name))
    return {name: dataset for name, dataset in raw.items() if name in wanted}


def make_dataset(source: ConfigSource, keys: Keys) -> Any:
    """Make the dataset of a table; its paths become absolute."""
    table = dict(source.get(keys) if isinstance(source.get(keys), dict) else {})
    table = table or {"type": source.get(keys)}
    entry = DATASETS[table.pop("type")]
    options = {k: _absolute(source, (*keys, k), v) for k, v in table.items()}
    with source.blaming(keys, f"dataset {entry.name!r}"):
        return entry(**options)


def absolute_paths(source: ConfigSource, config: dict[str, Any]) -> None:
    """Let a resolved configuration name files so that it means the same from anywhere."""
    for name in ("source", *SPLITS):
        for key in PATH_OPTIONS:
            table = config["data"].get(name, {})
            if key in table:
                table[key] = _absolute(source, ("data", name, key), table[key])
    weights = config["model"].get("weights")
    if weights:
        given = source.get(("model", "weights"))
        keys = ("model", "weights") if isinstance(given, str) else ("model", "weights", "path")
        weights["path"] = resolve_path(source, keys, weights["path"])


def _absolute(source: ConfigSource, keys: Keys, value: Any) -> Any:
    if keys[-1] not in PATH_OPTIONS:
        return value
    if isinstance(value, list):
        return [resolve_path(source, keys, one) for one in value]
    return resolve_path(source, keys, value)


def resolve_path(source: ConfigSource, keys: Keys, value: Any) -> str:
    """Return an absolute path; a relative one is meant from where it was written."""
    if not isinstance(value, str):
        raise source.error(keys, f"{keys[-1]} must be a path in quotes. Received: {value!r}")
    return str(source.directory_of(keys) / Path(value).expanduser())


def _split(source: ConfigSource, settings: Mapping[str, Any], whole: Dataset) -> list[Dataset]:
    fractions, count = settings["split"], len(whole)
    with source.blaming(("data", "split")):
        if settings["split_in_order"]:
            ends = [round(sum(fractions[: i + 1]) * count) for i in range(len(fractions))]
            starts = [0, *ends[:-1]]
            return [Subset(whole, range(a, b)) for a, b in zip(starts, ends, strict=True)]
        return random_split(whole, fractions, settings["split_seed"])


# -- what is known of the data -------------------------------------------------------------------


def _facts(source: ConfigSource, raw: Mapping[str, Dataset]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for name, dataset in raw.items():
        found = _facts_of(dataset)
        for key in found:
            if key in facts and facts[key] != found[key]:
                raise source.error(
                    ("data", name),
                    f"the {name} data has other {key} than the training data: {found[key]!r:.80} "
                    f"instead of {facts[key]!r:.80}; put all of it in [data.source] and use split",
                )
        facts.update(found)
    return facts


def _known_labels(dataset: Any) -> Any:
    """Return the labels of a dataset as an array, if it has them without making its items."""
    base, chosen = _base_of(dataset)
    labels = getattr(base, "targets", None)
    if labels is None and isinstance(base, TensorDataset) and len(base.tensors) > 1:
        labels = base.tensors[-1].numpy()
    if not isinstance(labels, np.ndarray) or labels.ndim != 1 or labels.dtype.kind not in "iu":
        return None
    return labels if chosen is None else labels[chosen]


def _base_of(dataset: Any) -> tuple[Any, Any]:
    """Return the dataset that was split, and which of its items this part has."""
    chosen: Any = None
    while isinstance(dataset, Subset):
        chosen = dataset.indices if chosen is None else dataset.indices[chosen]
        dataset = dataset._source
    return dataset, chosen


def _facts_of(dataset: Any) -> dict[str, Any]:
    dataset, _ = _base_of(dataset)
    facts: dict[str, Any] = {}
    classes = getattr(dataset, "classes", None)
    if classes:
        facts.update(classes=list(classes), num_classes=len(classes))
    vocabulary = getattr(dataset, "vocabulary", None)
    if vocabulary is not None:
        facts.update(vocabulary=vocabulary.symbols, vocab_size=len(vocabulary))
    if getattr(dataset, "feature_names", None):
        facts["feature_names"] = list(dataset.feature_names)
    return facts


# -- transforms ----------------------------------------------------------------------------------


class Standardize:
    """Subtract the mean and divide by the deviation, of each feature or channel (axis 0)."""

    def __init__(self, mean: list[float], std: list[float]) -> None:
        self.mean, self.std = np.array(mean), np.array(std)

    def __call__(self, item: Tensor) -> Tensor:
        """Return the item with numbers around 0."""
        if item.ndim == 0 or item.shape[0] != len(self.mean):
            raise ShapeError(
                f"standardize: the training data had {len(self.mean)} features or channels along "
                f"the first axis. Received: shape {tuple(item.shape)}"
            )
        shape = (-1, *[1] * (item.ndim - 1))
        value = item._value
        scaled = (value - self.mean.reshape(shape)) / self.std.reshape(shape)
        dtype = value.dtype if dt.is_float(value.dtype) else dt.default_float()
        return wrap(scaled.astype(dtype))


def _standardized(source: ConfigSource, settings: Any, raw: dict[str, Dataset]) -> None:
    """Standardize all splits by the training data, whose statistics are noted in the settings."""
    if not settings["standardize"]:
        return
    if "statistics" not in settings:
        settings["statistics"] = _statistics(source, raw["train"])
    scale = Standardize(**settings["statistics"])
    for name, dataset in raw.items():
        raw[name] = _mapped(dataset, scale)


def _statistics(source: ConfigSource, dataset: Dataset) -> dict[str, list[float]]:
    total = square = count = np.float64(0.0)
    for item in dataset:
        value = item[0] if isinstance(item, tuple | list) else item
        value = value.numpy().astype(np.float64) if isinstance(value, Tensor) else None
        if value is None or value.ndim == 0:
            raise source.error(
                ("data", "standardize"), "standardize needs tensors with at least one axis"
            )
        flat = value.reshape(len(value), -1)
        total, square = total + flat.sum(1), square + np.square(flat).sum(1)
        count += flat.shape[1]
    mean = total / count
    std = np.sqrt(np.maximum(square / count - np.square(mean), 0.0))
    # A constant feature stays at zero instead of becoming rounding errors of size one.
    std = np.where(std > 1e-7 * np.maximum(1.0, np.abs(mean)), std, 1.0)
    return {"mean": mean.tolist(), "std": std.tolist()}


def _transform(
    source: ConfigSource, settings: Mapping[str, Any], key: str, registry: Registry
) -> Any:
    made = []
    for i, table in enumerate(settings[key]):
        options = {name: value for name, value in table.items() if name != "type"}
        with source.blaming(("data", key, i), f"transform {table['type']!r}"):
            made.append(registry[table["type"]](**options))
    return Compose(made) if made else None


def _mapped(dataset: Dataset, transform: Any) -> Dataset:
    if transform is None:
        return dataset
    is_pair = isinstance(dataset[0], tuple | list)
    return dataset.map(transform, key=0 if is_pair else None)
