"""Data: datasets, streams, samplers, readers, transforms, and the DataLoader over them.

Enter: files, arrays, or anything with a length and items. Leave: batches of tensors, in an order
and with random numbers that follow from a seed alone. Imports core; pillow, pyarrow and
scikit-learn are loaded by the functions that need them.
"""

from . import transforms
from .cifar import CifarDataset, load_cifar10, load_cifar100
from .collate import PadCollate, default_collate
from .csvfile import CsvDataset, read_csv
from .dataset import ConcatDataset, Dataset, Subset, random_split
from .digits import load_digits
from .errors import DataFileError, DataFileMissingError, WorkerError, WorkerTimeoutError
from .example import encode_example, parse_example
from .examples import ExampleDataset
from .idx import load_mnist, read_idx, write_idx
from .imagefolder import ImageFolder, read_image
from .iterable import IterableDataset, IterableSource, shard
from .loader import DataLoader
from .numpyfile import NpzDataset, read_npy, read_npz
from .parquet import ParquetDataset, read_parquet
from .recordio import (
    ImageRecordDataset,
    RecordHeader,
    RecordIODataset,
    pack_record,
    read_recordio,
    unpack_record,
    write_recordio,
)
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
    collate_structures,
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
from .tfrecord import (
    TFRecordDataset,
    TFRecordStream,
    TFRecordWriter,
    read_tfrecords,
    write_tfrecords,
)

__all__ = [
    "ATOMS",
    "BatchSampler",
    "CifarDataset",
    "ConcatDataset",
    "CsvDataset",
    "DataFileError",
    "DataFileMissingError",
    "DataLoader",
    "Dataset",
    "EmptyNode",
    "ExampleDataset",
    "ImageFolder",
    "ImageRecordDataset",
    "IterableDataset",
    "IterableSource",
    "Molecule",
    "MultiwordToken",
    "NpzDataset",
    "PadCollate",
    "ParquetDataset",
    "Parse",
    "RandomSampler",
    "RecordHeader",
    "RecordIODataset",
    "Sampler",
    "Sentence",
    "SequentialSampler",
    "ShardSampler",
    "Subset",
    "SubsetRandomSampler",
    "TFRecordDataset",
    "TFRecordStream",
    "TFRecordWriter",
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
    "collate_structures",
    "default_collate",
    "encode_example",
    "item_generator",
    "load_cifar10",
    "load_cifar100",
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
    "pack_record",
    "parse_brackets",
    "parse_conllu",
    "parse_example",
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
    "read_recordio",
    "read_tfrecords",
    "replayed",
    "shard",
    "transforms",
    "unpack_record",
    "worker_info",
    "write_idx",
    "write_recordio",
    "write_tfrecords",
]
