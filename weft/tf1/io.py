"""`tf.io`: files, and what is parsed of them."""

from .file_ops import matching_files as matching_files
from .file_ops import read_file as read_file
from .file_ops import write_file as write_file
from .parsing import FixedLenFeature as FixedLenFeature
from .parsing import FixedLenSequenceFeature as FixedLenSequenceFeature
from .parsing import VarLenFeature as VarLenFeature
from .parsing import decode_csv as decode_csv
from .parsing import decode_image as decode_image
from .parsing import decode_jpeg as decode_jpeg
from .parsing import decode_png as decode_png
from .parsing import decode_raw as decode_raw
from .parsing import parse_example as parse_example
from .parsing import parse_single_example as parse_single_example
from .python_io import TFRecordCompressionType as TFRecordCompressionType
from .python_io import TFRecordOptions as TFRecordOptions
from .python_io import TFRecordWriter as TFRecordWriter
from .python_io import tf_record_iterator as tf_record_iterator
from .queues import FIFOQueue as FIFOQueue
from .queues import PaddingFIFOQueue as PaddingFIFOQueue
from .queues import QueueBase as QueueBase
from .queues import RandomShuffleQueue as RandomShuffleQueue
