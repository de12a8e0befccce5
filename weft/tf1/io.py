"""`tf.io`: files, and what is parsed of them."""

from .file_ops import (
    matching_files,
    read_file,
    write_file,
)
from .parsing import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    VarLenFeature,
    decode_csv,
    decode_image,
    decode_jpeg,
    decode_png,
    decode_raw,
    parse_example,
    parse_single_example,
)
from .python_io import (
    TFRecordCompressionType,
    TFRecordOptions,
    TFRecordWriter,
    tf_record_iterator,
)
from .queues import (
    FIFOQueue,
    PaddingFIFOQueue,
    QueueBase,
    RandomShuffleQueue,
)

__all__ = [
    "FIFOQueue",
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "PaddingFIFOQueue",
    "QueueBase",
    "RandomShuffleQueue",
    "TFRecordCompressionType",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "decode_csv",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_raw",
    "matching_files",
    "parse_example",
    "parse_single_example",
    "read_file",
    "tf_record_iterator",
    "write_file",
]
