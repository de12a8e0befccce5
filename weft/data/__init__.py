"""Data: datasets, streams, samplers, readers, transforms, and the DataLoader over them.

Enter: files, arrays, or anything with a length and items. Leave: batches of tensors, in an order
and with random numbers that follow from a seed alone. Imports core; pillow, pyarrow and
scikit-learn are loaded by the functions that need them.
"""

from . import transforms
from .collate import PadCollate, default_collate
from .csvfile import CsvDataset, read_csv
from .dataset import ConcatDataset, Dataset, Subset, random_split
from .digits import load_digits
from .errors import DataFileError, DataFileMissingError, WorkerError, WorkerTimeoutError
from .idx import load_mnist, read_idx, write_idx
from .imagefolder import ImageFolder, read_image
from .iterable import IterableDataset, IterableSource, shard
from .loader import DataLoader
from .numpyfile import NpzDataset, read_npy, read_npz
from .parquet import ParquetDataset, read_parquet
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    ShardSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from .streams import WorkerInfo, item_generator, worker_info
from .synthetic import (
    make_blobs,
    make_moons,
    make_regression,
    make_shapes,
    make_sines,
    make_spirals,
)
from .table import Table, TableDataset
from .tensors import TensorDataset
from .text import TextLines, TokenWindows, Vocabulary

__all__ = [
    "BatchSampler",
    "ConcatDataset",
    "CsvDataset",
    "DataFileError",
    "DataFileMissingError",
    "DataLoader",
    "Dataset",
    "ImageFolder",
    "IterableDataset",
    "IterableSource",
    "NpzDataset",
    "PadCollate",
    "ParquetDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "ShardSampler",
    "Subset",
    "SubsetRandomSampler",
    "Table",
    "TableDataset",
    "TensorDataset",
    "TextLines",
    "TokenWindows",
    "Vocabulary",
    "WeightedRandomSampler",
    "WorkerError",
    "WorkerInfo",
    "WorkerTimeoutError",
    "default_collate",
    "item_generator",
    "load_digits",
    "load_mnist",
    "make_blobs",
    "make_moons",
    "make_regression",
    "make_shapes",
    "make_sines",
    "make_spirals",
    "random_split",
    "read_csv",
    "read_idx",
    "read_image",
    "read_npy",
    "read_npz",
    "read_parquet",
    "shard",
    "transforms",
    "worker_info",
    "write_idx",
]
