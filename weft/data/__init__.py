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
from .structures import (
    ATOMS,
    EmptyNode,
    Molecule,
    MultiwordToken,
    Parse,
    Sentence,
    Token,
    Tree,
    arc_standard,
    make_molecules,
    make_parses,
    make_trees,
    parse_brackets,
    parse_conllu,
    read_brackets,
    read_conllu,
    read_json_trees,
    replayed,
)
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
    "ATOMS",
    "BatchSampler",
    "ConcatDataset",
    "CsvDataset",
    "DataFileError",
    "DataFileMissingError",
    "DataLoader",
    "Dataset",
    "EmptyNode",
    "ImageFolder",
    "IterableDataset",
    "IterableSource",
    "Molecule",
    "MultiwordToken",
    "NpzDataset",
    "PadCollate",
    "ParquetDataset",
    "Parse",
    "RandomSampler",
    "Sampler",
    "Sentence",
    "SequentialSampler",
    "ShardSampler",
    "Subset",
    "SubsetRandomSampler",
    "Table",
    "TableDataset",
    "TensorDataset",
    "TextLines",
    "Token",
    "TokenWindows",
    "Tree",
    "Vocabulary",
    "WeightedRandomSampler",
    "WorkerError",
    "WorkerInfo",
    "WorkerTimeoutError",
    "arc_standard",
    "default_collate",
    "item_generator",
    "load_digits",
    "load_mnist",
    "make_blobs",
    "make_molecules",
    "make_moons",
    "make_parses",
    "make_regression",
    "make_shapes",
    "make_sines",
    "make_spirals",
    "make_trees",
    "parse_brackets",
    "parse_conllu",
    "random_split",
    "read_brackets",
    "read_conllu",
    "read_csv",
    "read_idx",
    "read_image",
    "read_json_trees",
    "read_npy",
    "read_npz",
    "read_parquet",
    "replayed",
    "shard",
    "transforms",
    "worker_info",
    "write_idx",
]
